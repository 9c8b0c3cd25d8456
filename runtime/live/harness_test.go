package live_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tokenrouter/algos"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
)

// models are loaded once for all tests; they are read-only.
var models sync.Map

func loadModel(t testing.TB, name string) *model.Model {
	if m, ok := models.Load(name); ok {
		return m.(*model.Model)
	}
	m, err := tiny.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	models.Store(name, m)
	return m
}

// setup is a cluster of the tiny family for one test.
type setup struct {
	models      []string
	router      string
	params      map[string]float64
	concurrency int
	policy      event.Policy
	tasks       []workload.Task
	sampling    event.Sampling
	stops       []string
	pacer       *paced.Pacer
	kvTokens    int
	core        live.CoreOptions
	dir         string // routers' folder
	watch       bool
	wrap        func(runner.Runner) runner.Runner
	scorer      func([]runner.Runner) func(event.Peer) scripting.Scorer
	tape        *tape.Tape
	virtual     bool // clock sim
	horizon     time.Duration
}

func newRuntime(t testing.TB, s setup) *live.Runtime {
	t.Helper()
	rt, err := tryRuntime(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// tryRuntime is newRuntime where an error may be what is tested.
func tryRuntime(t testing.TB, s setup) (*live.Runtime, error) {
	t.Helper()
	if s.pacer == nil {
		s.pacer = paced.NewPacer()
		if s.virtual {
			s.pacer.SetSpeed(0)
		}
	}
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	if s.tape == nil {
		s.tape = tape.New()
	}
	if s.kvTokens == 0 {
		s.kvTokens = 16384
	}
	var runs []runner.Runner
	for i, name := range s.models {
		var r runner.Runner = native.NewWithBlocks(loadModel(t, name), i, s.kvTokens/model.BlockLen)
		if s.wrap != nil {
			r = s.wrap(r)
		}
		runs = append(runs, paced.New(r, s.pacer, i))
	}
	var scorer func(event.Peer) scripting.Scorer
	if s.scorer != nil {
		scorer = s.scorer(runs)
	}
	front := loadModel(t, s.models[0])
	tok := front.Tokenizer
	return live.New(live.Config{
		Runners: runs, Pacer: s.pacer, Vocab: front.Config.Vocab,
		Prompt: func(q string) ([]event.Token, error) {
			return tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: q}})
		},
		TokenBytes: func(id event.Token) ([]byte, bool) { return tok.Bytes(id), tok.IsSpecial(id) },
		TokenText:  func(id event.Token) string { return string(tok.Bytes(id)) },
		EOS:        front.EOS(), Context: front.Config.MaxPos, Profile: profile(t, len(s.models)), Seats: 32, KVTokens: s.kvTokens, MaxTokens: 160, Core: s.core,
		Sampling: s.sampling, Stops: s.stops, Policy: s.policy, Concurrency: s.concurrency,
		Source: workload.NewList(s.tasks), Limit: len(s.tasks),
		Library: library.Library{Dir: s.dir, Embedded: algos.Routers()}, Router: s.router,
		Scorer: scorer, Params: s.params, Watch: s.watch, Tape: s.tape, Virtual: s.virtual, Horizon: s.horizon,
		Guard: guard.New("", func(c guard.Crash) { t.Errorf("%s panicked: %v\n%s", c.Name, c.Value, c.Stack) }),
	})
}

func closeRuntime(t testing.TB, rt *live.Runtime) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := rt.Close(ctx); err != nil {
		t.Error(err)
	}
}

// answer is what one request became.
type answer struct {
	ids     []event.Token
	writers []event.Peer
	reason  string
	result  *tape.Result
}

// run executes all tasks and returns the answers by request and the records.
func run(t testing.TB, s setup) (map[event.ReqID]*answer, []tape.Record) {
	t.Helper()
	if s.tape == nil {
		s.tape = tape.New()
	}
	sub := s.tape.Subscribe()
	rt := newRuntime(t, s)
	rt.Start()
	<-rt.Done()
	closeRuntime(t, rt)
	recs := sub.Next(nil, 0)
	return collect(recs), recs
}

func collect(recs []tape.Record) map[event.ReqID]*answer {
	out := map[event.ReqID]*answer{}
	at := func(id event.ReqID) *answer {
		if out[id] == nil {
			out[id] = &answer{}
		}
		return out[id]
	}
	first := map[event.ReqID]int{}
	for i := range recs {
		r := &recs[i]
		switch {
		case r.Kind == tape.KindEvent && r.Event.Kind == event.Arrive:
			first[r.Event.Req] = len(r.Event.Arrival.Prompt)
		case r.Kind == tape.KindCommand && r.Command.Kind == event.Emit:
			c := r.Command
			a, k := at(c.Req), c.Pos-first[c.Req]
			if a.result != nil {
				continue // written before its writer heard of the end
			}
			for len(a.ids) <= k {
				a.ids, a.writers = append(a.ids, -1), append(a.writers, event.None)
			}
			a.ids[k], a.writers[k] = c.Token, r.Writer()
		case r.Kind == tape.KindHost:
			if res, ok := r.Host.(*tape.Result); ok {
				a := at(res.Req)
				a.result, a.reason = res, res.Reason
				a.ids, a.writers = a.ids[:res.Tokens], a.writers[:res.Tokens]
			}
		}
	}
	return out
}

// sameAnswers fails at the first token or writer in which two runs differ.
func sameAnswers(t *testing.T, what string, want, got map[event.ReqID]*answer) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d requests against %d", what, len(want), len(got))
	}
	for id, w := range want {
		g := got[id]
		if g == nil {
			t.Fatalf("%s: request %d is missing", what, id)
		}
		for k := range max(len(w.ids), len(g.ids)) {
			if k >= len(w.ids) || k >= len(g.ids) || w.ids[k] != g.ids[k] || w.writers[k] != g.writers[k] {
				t.Fatalf("%s: request %d parts at token %d:\n want %v %v\n got  %v %v", what, id, k, w.ids, w.writers, g.ids, g.writers)
			}
		}
	}
}

const stored = "../model/tiny/testdata/reference"

// referenceTasks are the first n of the 300 evaluation problems.
func referenceTasks(t testing.TB, n int) []workload.Task {
	t.Helper()
	f, err := os.Open(filepath.Join(stored, "tasks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tasks, err := workload.ReadTasks(f, "tasks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return tasks[:min(n, len(tasks))]
}

// golden is one stored answer of the independent implementation.
type golden struct {
	Problem         int
	IDs             []event.Token
	Src             string
	Correct         bool
	MinMargin       float64  `json:"min_margin"`
	MinThresholdGap *float64 `json:"min_threshold_gap"`
}

func readGolden(t testing.TB, file string) []golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(stored, file))
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	for line := range strings.Lines(string(b)) {
		var g golden
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

func pacedAt(t testing.TB, speed float64) *paced.Pacer {
	t.Helper()
	p := paced.NewPacer()
	p.SetProfile(profile(t, 2))
	p.SetSpeed(speed)
	return p
}

func profile(t testing.TB, models int) *cost.Profile {
	t.Helper()
	c, err := cost.Lookup("a100-r2r")
	if err == nil {
		c, err = c.For(models)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &c
}
