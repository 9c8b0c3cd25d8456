package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tokenrouter/algos/head/collect"
	"tokenrouter/algos/head/pair"
	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/workload"
)

// pairFlags say which two models write which problems, greedily.
type pairFlags struct {
	modelFlags

	Workload    string `default:"light" enum:"${workloads}" help:"Which problems: light, heavy or multi-turn (first turns), one family (${families}), or mixture."`
	Tasks       string `placeholder:"FILE.jsonl" help:"Problems from a file, {id, question, answer} a line, instead of a workload; - is standard input."`
	Seed        uint64 `default:"1" help:"Seed of the problems. Those of one seed are others here than under run and sweep, and others again under calibrate: what is trained, tuned and judged on never meets (default: ${default})."`
	Concurrency int    `short:"n" default:"32" help:"Texts that are written at a time; the result does not depend on it (default: ${default})."`
	MaxTokens   *int   `placeholder:"N" help:"Most new tokens of an answer (default: 160; 1024 with models from disk)."`
}

// Streams of problems of one seed, told apart by the draw that their seed is.
// Stream 0 is that of run and its like.
const (
	streamCollect = 1 + iota
	streamChoose
	streamVerify
)

// Most tokens of an answer, of the embedded models and of others.
const (
	pairTokens    = 160
	pairTokensOwn = 1024
)

// check finds the two models.
func (f *pairFlags) check() error {
	f.settlePair(f.Workload)
	if err := f.settleModels(); err != nil {
		return err
	}
	if n := len(f.origins); n != 2 {
		return fmt.Errorf("%d models are named; a head tells two apart, small first", n)
	}
	if f.Concurrency < 1 || f.Concurrency > 1024 {
		return fmt.Errorf("--concurrency %d is outside 1 to 1024", f.Concurrency)
	}
	if f.MaxTokens != nil && *f.MaxTokens < 1 {
		return fmt.Errorf("--max-tokens %d is less than 1", *f.MaxTokens)
	}
	if f.Tasks != "" && f.Workload != workload.PresetLight {
		return errors.New("--tasks brings the problems along, and so does --workload; give one")
	}
	return nil
}

// loadedPair is the two models, ready to write.
type loadedPair struct {
	*pair.Pair
	shelf *shelf
	most  int // tokens of an answer
	flags *pairFlags
}

// loadPair loads the models.
func (f *pairFlags) loadPair() (*loadedPair, error) {
	plans, err := planLoad(f.origins)
	defer closePlans(plans)
	if err != nil {
		return nil, usage(err)
	}
	p := &loadedPair{shelf: &shelf{origins: f.origins}, most: pairTokens, flags: f}
	if p.shelf.own() {
		p.most = pairTokensOwn
	}
	if f.MaxTokens != nil {
		p.most = *f.MaxTokens
	}
	need := f.Concurrency * 2 * (p.most + 256)
	if _, err := fits(plans, &need); err != nil {
		return nil, err
	}
	if cpu.Current() == cpu.Go {
		fmt.Fprintln(os.Stderr, "tokenrouter:", slowKernels())
	}
	ctx, stop := interruptible()
	defer stop()
	g, bar := guard.New(crashFolder()), newLoadBar(os.Stderr, "loading")
	p.shelf.cores = team.New(f.threads())
	for i := range plans {
		m, err := plans[i].load(ctx, g, roleOf(i, len(plans)), f.threads(), bar)
		if err != nil {
			p.shelf.close()
			return nil, err
		}
		p.shelf.models = append(p.shelf.models, m)
	}
	if p.Pair, err = pair.New(p.shelf.models[0], p.shelf.models[1], p.shelf.cores); err != nil {
		p.shelf.close()
		return nil, err
	}
	return p, nil
}

func (p *loadedPair) close() {
	_ = p.Pair.Close() // its memory goes with the process
	p.shelf.close()
}

// small is the small model.
func (p *loadedPair) small() *model.Model { return p.shelf.models[0] }

// problems are so many of a stream, from the first on.
func (p *loadedPair) problems(stream, first, n int, answers bool) ([]collect.Problem, error) {
	source, err := p.flags.problemSource(stream)
	if err != nil {
		return nil, err
	}
	tok := p.small().Tokenizer
	if p.shelf.own() {
		_, thinks := tok.ID("</think>")
		how := howToAnswer
		if p.flags.Tasks != "" {
			how = ""
		}
		source = &posed{Source: source, how: how, silent: !thinks}
	}
	prompt := p.shelf.prompt()
	context := min(p.small().Config.MaxPos, p.shelf.models[1].Config.MaxPos)
	var out []collect.Problem
	for i := 0; len(out) < n; i++ {
		task, ok := source.Next()
		if !ok {
			break
		}
		if i < first {
			continue
		}
		if answers && !task.HasAnswer {
			return nil, fmt.Errorf("problem %s has no answer that could be judged; give tasks with answers, or --labels mismatch", task.ID)
		}
		ids, err := prompt(task.Question)
		if err != nil {
			return nil, err
		}
		most := min(p.most, context-len(ids))
		if task.MaxTokens > 0 {
			most = min(most, task.MaxTokens)
		}
		if most < 1 {
			return nil, fmt.Errorf("the prompt of problem %s has %d tokens; the models hold %d", task.ID, len(ids), context)
		}
		out = append(out, collect.Problem{Prompt: ids, MaxTokens: most, Right: func(output []int32) bool {
			_, right, _ := task.Judge(tok.Decode(output))
			return right
		}})
	}
	if len(out) == 0 {
		return nil, errors.New("there are no problems left to write: the tasks are fewer than are asked for")
	}
	return out, nil
}

// problemSource is where problems come from.
func (f *pairFlags) problemSource(stream int) (workload.Source, error) {
	if f.Tasks != "" {
		tasks, err := readTasks(f.Tasks)
		if err != nil {
			return nil, err
		}
		return workload.NewList(tasks), nil
	}
	return workload.NewPreset(f.Workload, rng.Key{Seed: f.Seed, Purpose: rng.Workload}.Uint64(stream))
}

// problemName is what the problems are called in files.
func (f *pairFlags) problemName() string {
	if f.Tasks != "" {
		return "tasks"
	}
	return f.Workload
}

// headBar is a line of progress with what is left.
type headBar struct {
	live  liveLine
	begun time.Time
	shown time.Time
}

func newHeadBar() *headBar { return &headBar{live: newLiveLine(os.Stderr), begun: time.Now()} }

// put shows how many of how many are done.
func (b *headBar) put(done, all int, what string) {
	now := time.Now()
	if now.Sub(b.shown) < showEvery && done < all {
		return
	}
	b.shown = now
	const width = 24
	n := 0
	if all > 0 {
		n = min(width*done/all, width)
	}
	bar := string(slices.Repeat([]byte("#"), n)) + string(slices.Repeat([]byte("-"), width-n))
	text := fmt.Sprintf("[%s] %d/%d %s  %.0f s", bar, done, all, what, now.Sub(b.begun).Seconds())
	if past := now.Sub(b.begun); done > 0 && done < all && past > 2*time.Second {
		text += fmt.Sprintf(", about %.0f s to go", past.Seconds()/float64(done)*float64(all-done))
	}
	b.live.put(text)
}

// headsInterrupted is how a command ends that was told to before it had anything.
func headsInterrupted() error {
	return &exitError{exitInterrupted, errors.New("interrupted; nothing was written")}
}
