package replay_test

import (
	"context"
	"fmt"
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
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting/library"
	"tokenrouter/sessions/store"
)

// setup is one session to record.
type setup struct {
	models      []string // default tiny-37k and tiny-114k
	router      string
	params      map[string]float64
	policy      string // default eager
	concurrency int    // default 4
	requests    int    // default 6
	core        live.CoreOptions
	kvTokens    int // default 16384
	sampling    event.Sampling
	stops       []string
	virtual     bool
	during      func(t testing.TB, rt *live.Runtime, sub *tape.Sub) // beside the run; returning closes it
}

func (s *setup) fill() {
	if s.models == nil {
		s.models = []string{"tiny-37k", "tiny-114k"}
	}
	if s.policy == "" {
		s.policy = "eager"
	}
	for _, d := range []struct {
		v     *int
		value int
	}{{&s.concurrency, 4}, {&s.requests, 6}, {&s.kvTokens, 16384}} {
		if *d.v == 0 {
			*d.v = d.value
		}
	}
}

// loaded models are read-only.
var loaded sync.Map

func load(t testing.TB, name string) *model.Model {
	t.Helper()
	if m, ok := loaded.Load(name); ok {
		return m.(*model.Model)
	}
	m, err := tiny.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Store(name, m)
	return m
}

// record runs a setup as the command line does and returns its session.
func record(t testing.TB, s setup) *store.Opened {
	t.Helper()
	s.fill()
	front := load(t, s.models[0])
	tok := front.Tokenizer
	profile, err := cost.Lookup("a100-r2r")
	if err == nil {
		profile, err = profile.For(len(s.models))
	}
	if err != nil {
		t.Fatal(err)
	}
	policy, err := live.ParsePolicy(s.policy, len(s.models))
	if err != nil {
		t.Fatal(err)
	}
	source, err := workload.NewGenerator(rng.Key{Seed: 3, Purpose: rng.Workload}.Uint64(0), workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	m := store.Manifest{
		Program: "test", StartedAt: time.Unix(0, 0), Router: store.Router{File: s.router + ".lua", Hash: "0"}, Seats: 32, KVTokens: s.kvTokens,
		Core: store.Core{
			Block: model.BlockLen, Chunk: s.core.Chunk, Budget: s.core.Budget, NoPrefix: s.core.NoPrefix, Overcommit: s.core.Overcommit,
			MaxActive: s.core.MaxActive, Resubmit: s.core.Resubmit, Timeout: int64(s.core.Timeout),
		},
	}
	pacer := paced.NewPacer()
	cfg := live.Config{
		Pacer: pacer, Profile: &profile, Virtual: s.virtual, Vocab: front.Config.Vocab,
		Prompt: func(q string) ([]event.Token, error) {
			return tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: q}})
		},
		TokenBytes: func(id event.Token) ([]byte, bool) { return tok.Bytes(id), tok.IsSpecial(id) },
		TokenText:  func(id event.Token) string { return string(tok.Bytes(id)) },
		EOS:        front.EOS(), Context: front.Config.MaxPos, Seats: m.Seats, KVTokens: s.kvTokens, MaxTokens: 160, Core: s.core,
		Sampling: s.sampling, Stops: s.stops, Policy: policy, Concurrency: s.concurrency, Source: source, Limit: s.requests,
		Library: library.Library{Dir: "testdata", Embedded: algos.Routers()}, Router: s.router, Params: s.params,
		Tape:  tape.New(),
		Guard: guard.New("", func(c guard.Crash) { t.Errorf("%s panicked: %v\n%s", c.Name, c.Value, c.Stack) }),
	}
	if s.virtual {
		cfg.Pacer = nil
	}
	for i, name := range s.models {
		md := load(t, name)
		var run runner.Runner = native.NewWithBlocks(md, i, s.kvTokens/model.BlockLen)
		if !s.virtual {
			run = paced.New(run, pacer, i)
		}
		sm := store.Model{Role: event.Role(event.Peer(i), len(s.models)), Name: name, Hash: md.Hash(), Vocab: md.Tokenizer.Hash()}
		m.Models = append(m.Models, sm)
		cfg.Runners, cfg.Domains = append(cfg.Runners, run), append(cfg.Domains, sm.Domain())
	}
	rt, err := live.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	session, err := store.Create(t.TempDir(), m, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	session.Record(cfg.Tape)
	sub := cfg.Tape.Subscribe()
	defer sub.Close()
	rt.Start()
	if s.during != nil {
		s.during(t, rt, sub)
	} else {
		sub.Close()
		<-rt.Done()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := rt.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := session.Close("finished"); err != nil {
		t.Fatal(err)
	}
	return open(t, session.Path())
}

func open(t testing.TB, path string) *store.Opened {
	t.Helper()
	o, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// await reads the tape until a record satisfies ok.
func await(sub *tape.Sub, ok func(*tape.Record) bool) {
	for {
		recs := sub.Next(nil, 1)
		if len(recs) == 0 {
			<-sub.Ready()
		}
		for i := range recs {
			if ok(&recs[i]) {
				return
			}
		}
	}
}

// seen counts what a session has: kinds of events, commands, notes, and what
// batches and settings show.
func seen(t testing.TB, o *store.Opened, into map[string]int) {
	t.Helper()
	for r, err := range o.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if ev := r.Event; ev != nil {
			into[ev.Kind.String()]++
			if ev.Kind == event.SetPolicy {
				into["policy "+ev.Policy.Kind.String()]++
			}
			if ev.Kind == event.StepDone {
				for i := range ev.Step.Rows {
					into["action "+ev.Step.Rows[i].Action.String()]++
				}
			}
		}
		if c := r.Command; c != nil {
			into["order "+c.Kind.String()]++
			if c.Kind == event.Emit && c.Wrote > 0 {
				into["emit for another"]++
			}
			if c.Kind == event.Finish {
				into["end "+c.Reason.String()]++
			}
			if c.Kind == event.RunBatch {
				into["rule "+c.Batch.Rule.String()]++
				into[fmt.Sprintf("subserver %d", r.Core)]++
				for i := range c.Batch.Rows {
					if !c.Batch.Rows[i].Sample {
						into["chunk"]++
					}
					if c.Batch.Rows[i].Cached > 0 {
						into["prefix hit"]++
					}
					into["recomputed"] += c.Batch.Rows[i].Recomputed
				}
			}
		}
	}
}
