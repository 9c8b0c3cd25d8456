package main

import (
	"errors"
	"fmt"
	"math"
	"os"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting/checker"
)

// loadFlags say which requests come and how their tokens are drawn.
type loadFlags struct {
	Seed     uint64 `default:"1" help:"Seed of requests, arrivals and draws."`
	Workload string `default:"light" enum:"${workloads}" help:"Which requests: light, heavy or multi-turn; for models problems of 3-6 equations, of 8-12 (which the embedded ones get wrong), and stories that go on; for drawn tokens lengths like the paper's. For models also one family of problems (${families}), or mixture: all of them by turns."`
	Check    string `placeholder:"FILE.lua" help:"Judge answers by function check(task, text, answer) of a Lua file, which returns true or false, instead of by the tasks' own answers."`
	Arrivals string `default:"closed" placeholder:"HOW" help:"When requests come: closed (a new one when one has ended, -n at a time), poisson:QPS, uniform:QPS, gamma:QPS,cv=2, mmpp:QPS,r=3,h=0.2,tc=2s, or trace:FILE (default: ${default})."`

	MaxTokens   *int     `placeholder:"N" help:"Most new tokens of a request (default: 160; 1024 with models from disk; with drawn tokens what the workload says)."`
	Greedy      bool     `help:"Take the most likely token. The default, unless --temperature is given or a model from disk comes with settings that ask for another."`
	Temperature *float64 `help:"Sampling temperature; 0 is greedy."`
	TopK        int      `help:"With --temperature: sample from the K most likely tokens; 0 = all."`
	TopP        float64  `default:"1" help:"With --temperature: sample from the smallest set with this probability."`
	Stop        []string `sep:"none" help:"Stop string; may be repeated."`

	maxNew int // --max-tokens, or what stands for it
}

func (f *clusterFlags) checkLoad() error {
	switch {
	case f.maxNew < 1:
		return fmt.Errorf("--max-tokens %d is less than 1", f.maxNew)
	case f.Temperature != nil && !(*f.Temperature >= 0 && *f.Temperature <= 100):
		return fmt.Errorf("--temperature %g is outside 0 to 100", *f.Temperature)
	case f.Greedy && f.Temperature != nil && *f.Temperature != 0:
		return fmt.Errorf("--greedy and --temperature %g exclude each other", *f.Temperature)
	case f.TopK < 0:
		return fmt.Errorf("--top-k %d is negative", f.TopK)
	case !(f.TopP > 0 && f.TopP <= 1):
		return fmt.Errorf("--top-p %g is outside 0 to 1", f.TopP)
	}
	for _, s := range f.Stop {
		if s == "" {
			return errors.New("--stop is empty; an empty stop string would end every request at once")
		}
	}
	for _, s := range []struct {
		flag  string
		given bool
	}{
		{"--greedy", f.Greedy && f.recording()},
		{"--temperature", f.Temperature != nil && f.recording()},
		{"--models", f.Models != "" && f.recording()},
		{f.flag(), f.named() && !f.modelled()},
		{"--weights-format", f.WeightsFormat != "" && !f.modelled()},
		{"--kv-format", f.KVFormat != "" && !f.modelled()},
		{"--workload", f.Workload != workload.PresetLight && f.recording()},
		{"--stop", len(f.Stop) > 0 && f.Tokens == tokensDrawn},
		{"--check", f.Check != "" && f.Tokens == tokensDrawn},
	} {
		if s.given {
			return fmt.Errorf("%s does not go with --tokens %s, which leaves no choice of it; leave it out, or give --tokens models", s.flag, f.Tokens)
		}
	}
	return nil
}

// follow takes how tokens are drawn from what a checkpoint recommends, where no flag
// says it.
func (f *loadFlags) follow(g *model.Generation) {
	if g == nil || !g.DoSample || f.Greedy || f.Temperature != nil {
		return
	}
	t := 1.0 // what who samples without a number means
	if g.Temperature > 0 {
		t = float64(g.Temperature)
	}
	f.Temperature = &t
	if f.TopK == 0 {
		f.TopK = g.TopK
	}
	if f.TopP == 1 && g.TopP > 0 {
		f.TopP = float64(g.TopP)
	}
}

func (f *loadFlags) sampling() event.Sampling {
	// 0 would be no truncation at all, not the strictest.
	s := event.Sampling{TopK: f.TopK, TopP: max(float32(f.TopP), math.SmallestNonzeroFloat32), Seed: f.Seed}
	if f.Temperature != nil {
		s.Temperature = float32(*f.Temperature)
	}
	return s
}

// sourceSeed goes through a key so that no small seed meets a problem that the
// embedded models were trained on.
func (f *loadFlags) sourceSeed() uint64 {
	return rng.Key{Seed: f.Seed, Purpose: rng.Workload}.Uint64(0)
}

// checker is what judges answers from outside, nil where nothing does.
func (f *loadFlags) checker() (workload.Checker, error) {
	if f.Check == "" {
		return nil, nil
	}
	c, err := checker.Read(f.Check, nil)
	if err != nil {
		return nil, fmt.Errorf("--check: %w", err)
	}
	return c.Check, nil
}

// arrivals is when requests come, nil for the closed loop.
func (f *loadFlags) arrivals() (workload.Arrivals, error) {
	a, err := workload.ParseArrivals(f.Arrivals, f.Seed)
	if err != nil {
		return nil, fmt.Errorf("--arrivals: %w", err)
	}
	return a, nil
}

// readTasks reads a file of tasks; "-" is standard input.
func readTasks(path string) ([]workload.Task, error) {
	if path == "-" {
		return workload.ReadTasks(os.Stdin, "standard input")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--tasks: %w", err)
	}
	defer file.Close()
	return workload.ReadTasks(file, path)
}

// closedLoop are the arrivals that follow the ends of requests.
const closedLoop = "closed"

// openLoop is how requests come, "" for the closed loop.
func (f *loadFlags) openLoop() string {
	if f.Arrivals == closedLoop {
		return ""
	}
	return f.Arrivals
}

// source is the requests of --workload, for who writes the answers: problems for
// models, lengths for drawn tokens (those of a trace that has them), and of a
// recording its own requests.
func (f *clusterFlags) source(c *cast, a workload.Arrivals) (workload.Source, error) {
	switch f.Tokens {
	case tokensModels:
		preset, err := workload.NewPreset(f.Workload, f.sourceSeed())
		if err != nil || c.ask == nil {
			return preset, err
		}
		return c.ask(preset, howToAnswer), nil
	case tokensDrawn:
		return f.drawnSource(len(c.vocab), a)
	}
	return f.cap(workload.NewList(c.tasks)), nil
}

// cap holds tasks to --max-tokens, if it was given.
func (f *clusterFlags) cap(s workload.Source) workload.Source {
	if f.MaxTokens == nil {
		return s
	}
	return capped{s, f.maxNew}
}

// capped is a source whose tasks write so many tokens at most. It has no next
// turns.
type capped struct {
	workload.Source
	most int
}

// Next implements workload.Source.
func (c capped) Next() (workload.Task, bool) {
	t, ok := c.Source.Next()
	if t.MaxTokens == 0 || t.MaxTokens > c.most {
		t.MaxTokens = c.most
	}
	return t, ok
}

func (f *clusterFlags) drawnSource(vocab int, a workload.Arrivals) (workload.Source, error) {
	if t, ok := a.(*workload.Trace); ok && t.HasLengths() {
		tasks, err := workload.NewTraceTasks(t, f.sourceSeed(), vocab)
		if err != nil {
			return nil, err
		}
		if n := tasks.Longest(); n > min(drawnContext, *f.KVTokens) {
			return nil, fmt.Errorf("--arrivals %s: its longest request has %d tokens; a KV pool holds %d, a model %d: give --kv-tokens, or another trace", f.Arrivals, n, *f.KVTokens, drawnContext)
		}
		return f.cap(tasks), nil
	}
	shape, err := workload.ShapeOf(f.Workload)
	if err != nil {
		return nil, err
	}
	if f.MaxTokens != nil {
		shape.Output.Max = min(shape.Output.Max, f.maxNew)
		shape.Output.Min = min(shape.Output.Min, shape.Output.Max)
	}
	if n := shape.Longest(); n > *f.KVTokens {
		return nil, fmt.Errorf("--kv-tokens %d holds no request of --workload %s, which needs up to %d; give at least as many", *f.KVTokens, f.Workload, n)
	}
	return workload.NewDrawn(f.sourceSeed(), vocab, shape)
}
