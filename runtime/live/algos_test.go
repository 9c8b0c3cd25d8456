package live_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/algos/citer"
	"tokenrouter/algos/collm"
	"tokenrouter/algos/controls"
	"tokenrouter/algos/head"
	"tokenrouter/algos/me"
	"tokenrouter/algos/query"
	"tokenrouter/algos/r2r"
	"tokenrouter/algos/reference"
	"tokenrouter/algos/rstitch"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting"
)

// algorithm is a shipped router with knobs that make it hand over often, and its
// reference. Models are the pair unless there are some.
type algorithm struct {
	router   string
	params   map[string]float64
	models   []string
	sampling event.Sampling
	shipped  string // the shipped head that it asks, at its threshold; "": one with drawn weights
	loop     func(run reference.Run, score func(head string) reference.Score) reference.Result
}

func (a *algorithm) String() string {
	s := a.router
	if a.shipped != "" {
		s += " shipped"
	}
	if len(a.models) > 0 {
		s += fmt.Sprint(" ", len(a.models), " models")
	}
	for _, k := range []string{"k", "window", "tokens"} {
		if v, ok := a.params[k]; ok {
			s += fmt.Sprint(" ", k, " ", v)
		}
	}
	return s
}

// algorithms are all shipped routers but chance, which is no algorithm over models.
func algorithms() []algorithm {
	type run = reference.Run
	type result = reference.Result
	type heads = func(string) reference.Score
	type set = map[string]float64
	sampled := event.Sampling{Temperature: 1, Seed: 11}
	plain := func(loop func(run) result) func(run, heads) result {
		return func(r run, _ heads) result { return loop(r) }
	}
	top1 := func(_ event.Peer, o event.Output) float64 { return float64(o.Top1) }
	other := func(_ event.Peer, o event.Output) float64 { return 1 - float64(o.Top1) }
	return []algorithm{
		{router: "r2r", params: set{"threshold": 0.2}, loop: plain(func(r run) result { return r2r.Reference(r, 0.2) })},
		{router: "rstitch", params: set{"threshold": 0.01}, loop: plain(func(r run) result { return rstitch.Reference(r, 0.01) })},
		{router: "me", sampling: sampled, loop: plain(func(r run) result { return me.Reference(r, []float64{1, 1}) })},
		{
			router: "me", sampling: sampled, models: threeModels, params: set{"small": 2, "middle": 1, "large": 0.5},
			loop: plain(func(r run) result { return me.Reference(r, []float64{2, 1, 0.5}) }),
		},
		{router: "citer", params: set{"threshold": 0.1}, loop: func(r run, h heads) result { return citer.Reference(r, 0.1, h("citer")) }},
		{router: "collm", params: set{"threshold": 0.8}, loop: func(r run, h heads) result { return collm.Reference(r, 0.8, h("collm")) }},
		{router: "r2r_neural", params: set{"threshold": 0.6}, loop: func(r run, h heads) result { return r2r.NeuralReference(r, 0.6, h("r2r")) }},
		{router: "collm_compose", params: set{"threshold": 0.7}, loop: func(r run, h heads) result { return collm.ComposeReference(r, 0.7, h("collm")) }},
		{router: "collm_draft", params: set{"threshold": 0.8, "k": 4}, loop: func(r run, h heads) result { return collm.DraftReference(r, 0.8, 4, h("collm")) }},
		{router: "collm_draft", params: set{"threshold": 0.9, "k": 16}, loop: func(r run, h heads) result { return collm.DraftReference(r, 0.9, 16, h("collm")) }},
		{router: "citer_no_weights", loop: plain(func(r run) result { return citer.Reference(r, 0.9, top1) })},
		{router: "collm_no_weights", params: set{"threshold": 0.1}, loop: plain(func(r run) result { return collm.Reference(r, 0.1, other) })},
		{router: "oracle", loop: plain(controls.OracleReference)},
		{router: "window", params: set{"threshold": 0.1, "window": 8, "tokens": 4}, loop: plain(func(r run) result { return controls.WindowReference(r, 0.1, 8, 4) })},
		{router: "window", params: set{"threshold": 0.1, "window": 16, "tokens": 1}, loop: plain(func(r run) result { return controls.WindowReference(r, 0.1, 16, 1) })},
		{router: "hysteresis", params: set{"up": 0.3, "down": 0.001}, loop: plain(func(r run) result { return controls.HysteresisReference(r, 0.3, 0.001) })},
		{router: "handover", params: set{"threshold": 0.3, "tokens": 5}, loop: plain(func(r run) result { return controls.HandoverReference(r, 0.3, 5) })},
		{router: "random", loop: plain(func(r run) result { return controls.RandomReference(r, 0.2) })},
		{router: "small_only", loop: plain(func(r run) result { return controls.OnlyReference(r, 0) })},
		{router: "large_only", loop: plain(func(r run) result { return controls.OnlyReference(r, 1) })},
		{router: "query_mix", loop: plain(func(r run) result { return query.MixReference(r, 0.2) })},
		{router: "query_length", params: set{"length": 58}, loop: plain(func(r run) result { return query.LengthReference(r, 58) })},
		{router: "query_probe", params: set{"threshold": 0.13, "tokens": 16}, loop: plain(func(r run) result { return query.ProbeReference(r, 0.13, 16) })},
		{router: "query_head", params: set{"threshold": 0.0004}, loop: func(r run, h heads) result { return query.HeadReference(r, 0.0004, h("query")) }},
		{router: "citer", shipped: "citer", loop: func(r run, h heads) result { return citer.Reference(r, threshold("citer"), h("citer")) }},
		{router: "collm", shipped: "collm", loop: func(r run, h heads) result { return collm.Reference(r, threshold("collm"), h("collm")) }},
		{router: "r2r_neural", shipped: "r2r", loop: func(r run, h heads) result { return r2r.NeuralReference(r, threshold("r2r"), h("r2r")) }},
		{router: "r2r_outcome", shipped: "outcome", loop: func(r run, h heads) result { return r2r.NeuralReference(r, threshold("outcome"), h("outcome")) }},
		{router: "query_head", shipped: "query", params: set{"threshold": 0.5}, loop: func(r run, h heads) result { return query.HeadReference(r, 0.5, h("query")) }},
	}
}

// threshold is what the knob of a router that asks a shipped head begins at: the
// threshold of the head's manifest.
func threshold(name string) float64 {
	m, _, err := head.NewLibrary("", head.Options{}).Manifest(name)
	if err != nil || m.Threshold == 0 {
		return math.NaN()
	}
	return m.Threshold
}

// algoCell is how a cluster is run, and on which of the algoBlocks of problems.
type algoCell struct {
	policy      event.Policy
	chunk       int
	concurrency int
	block       int
}

func (c algoCell) String() string {
	return fmt.Sprintf("%v, chunk %d, concurrency %d, block %d", c.policy.Kind, c.chunk, c.concurrency, c.block)
}

// shippedFor are the models that the shipped heads were trained on.
var shippedFor = []string{"tiny-37k", "tiny-3.7m"}

// TestAlgorithms: every shipped router writes on the real models what its reference
// writes, token for token by the same model, whatever the batches are. The
// references run once; problems lie in blocks, and a cell runs one of them.
func TestAlgorithms(t *testing.T) {
	problems, err := workload.NewGenerator(workload.EvaluationSeed, workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([][]workload.Task, algoBlocks)
	for i := range algoProblems {
		task, _ := problems.Next()
		b := i * algoBlocks / algoProblems
		blocks[b] = append(blocks[b], task)
	}
	lib := head.NewLibrary(fixedHeads(t, loopModels[0]), head.Options{})
	for _, a := range algorithms() {
		t.Run(a.String(), func(t *testing.T) {
			s := setup{models: a.models, router: a.router, params: a.params, sampling: a.sampling}
			switch {
			case a.shipped != "":
				s.models = shippedFor
			case s.models == nil:
				s.models = loopModels
			}
			s.scorer = headScorer(t, s.models, lib)
			if a.shipped != "" {
				s.scorer = headScorer(t, s.models, head.NewLibrary(t.TempDir(), head.Options{}))
				if err := s.scorer(nativeRunners(t, s))(event.Front).Check(a.shipped); err != nil {
					t.Fatal(err)
				}
			}
			want := make([]map[event.ReqID]*answer, algoBlocks)
			for b, tasks := range blocks {
				s.tasks = tasks
				want[b] = loopAnswersScored(t, s, a.loop)
			}
			hasSense(t, a, want)
			for _, c := range algoCells(policies()) {
				s.policy, s.concurrency, s.core, s.tasks = c.policy, c.concurrency, live.CoreOptions{Chunk: c.chunk}, blocks[c.block]
				got, recs := run(t, s)
				sameAnswers(t, c.String(), want[c.block], got)
				noFaults(t, c.String(), recs)
			}
		})
	}
}

// hasSense fails where an algorithm has not been put to use: but for those that let
// one model write, at least two do, over all requests.
func hasSense(t *testing.T, a algorithm, blocks []map[event.ReqID]*answer) {
	t.Helper()
	by, tokens, requests := map[event.Peer]int{}, 0, 0
	for _, want := range blocks {
		for _, w := range want {
			requests++
			for _, m := range w.writers {
				by[m]++
				tokens++
			}
		}
	}
	t.Logf("%d requests, %d tokens, by model %v", requests, tokens, by)
	if one := strings.HasSuffix(a.router, "_only") || a.router == "collm_compose"; !one && len(by) < 2 {
		t.Errorf("tokens by %v; the test has lost its sense", by)
	}
}

func noFaults(t *testing.T, what string, recs []tape.Record) {
	t.Helper()
	for i := range recs {
		ev := recs[i].Event
		switch {
		case ev == nil:
		case ev.Kind == event.StepDone:
			for _, row := range ev.Step.Rows {
				if row.Fault != "" {
					t.Fatalf("%s: %s", what, row.Fault)
				}
			}
		case ev.Verdict.Fault != "":
			t.Fatalf("%s: %s", what, ev.Verdict.Fault)
		}
	}
}

// loopAnswersScored is loopAnswers with heads: each is evaluated on what the model
// that made the candidate has computed last.
func loopAnswersScored(t *testing.T, s setup, loop func(reference.Run, func(string) reference.Score) reference.Result) map[event.ReqID]*answer {
	t.Helper()
	var ms []*loopModel
	runs := nativeRunners(t, s)
	for _, r := range runs {
		ms = append(ms, newLoopModel(t, r.(*native.Runner), s.sampling))
	}
	scorer := s.scorer(runs)(event.Front)
	front := loadModel(t, s.models[0])
	out := map[event.ReqID]*answer{}
	for i, task := range s.tasks {
		prompt, err := front.Tokenizer.EncodeChat([]tokenizer.Message{{Role: "user", Content: task.Question}})
		if err != nil {
			t.Fatal(err)
		}
		r := reference.Run{Req: event.ReqID(i + 1), Prompt: prompt, MaxTokens: 160, EOS: front.EOS(), Seed: s.sampling.Seed}
		for _, m := range ms {
			r.Models = append(r.Models, m)
		}
		res := loop(r, func(name string) reference.Score {
			return func(_ event.Peer, o event.Output) float64 {
				v, err := scorer.Score(name, &scripting.Row{Req: r.Req, Output: &o})
				if err != nil {
					t.Fatal(err)
				}
				return float64(float32(v)) // as r.score gives it
			}
		})
		out[r.Req] = &answer{ids: res.Tokens, writers: res.Writers}
		for _, m := range ms {
			m.run.Free(r.Req)
			delete(m.fed, r.Req)
		}
	}
	return out
}

func nativeRunners(t testing.TB, s setup) (runs []runner.Runner) {
	for i, name := range s.models {
		runs = append(runs, native.New(loadModel(t, name), i))
	}
	return runs
}

// headScorer evaluates the heads of a library on what runners of models compute.
func headScorer(t testing.TB, names []string, lib *head.Library) func([]runner.Runner) func(event.Peer) scripting.Scorer {
	models := map[string]head.Model{}
	for i, name := range names {
		m := loadModel(t, name)
		models[event.Role(event.Peer(i), len(names))] = head.Model{Hash: m.Hash(), Hidden: m.Config.Hidden}
	}
	return func(runs []runner.Runner) func(event.Peer) scripting.Scorer {
		return func(p event.Peer) scripting.Scorer {
			f, ok := runner.FeaturesOf(runs[p])
			if !ok {
				t.Fatal("the runner computes no features")
			}
			return head.NewScorer(lib, event.Role(p, len(runs)), models, f, nil)
		}
	}
}

// fixedHeads writes heads for a model, of every kind of network and input, with
// weights that are drawn: what they say is about evenly spread and means nothing.
func fixedHeads(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	of := loadModel(t, name)
	for _, m := range []head.Manifest{
		{Name: "r2r", Meaning: "large", Spec: head.Spec{Kind: "r2r", Features: []string{"hidden", "embedding", "logits:20"}, Widths: []int{24, 24}, Expansion: 2}},
		{Name: "citer", Meaning: "small", Spec: head.Spec{Kind: "citer", Features: []string{"hidden"}}},
		{Name: "collm", Meaning: "large", Spec: head.Spec{Kind: "linear", Features: []string{"hidden"}}},
		{Name: "query", Meaning: "large", Spec: head.Spec{Kind: "mlp", Features: []string{"hidden", "signals"}, Widths: []int{16}}},
	} {
		m.Models, m.Spec.Hidden = map[string]string{"small": of.Hash()}, of.Config.Hidden
		tensors := map[string][]float32{}
		for k, tensor := range m.Spec.Tensors() {
			key := rng.Key{Seed: 6, Req: uint64(k), Purpose: rng.Workload}
			v := make([]float32, tensor.Len())
			for i := range v {
				u := 2*key.Float64(i) - 1
				switch {
				case len(tensor.Shape) > 1:
					v[i] = float32(u * math.Sqrt(6/float64(tensor.Shape[1])))
				case strings.HasSuffix(tensor.Name, "running_var"), strings.HasSuffix(tensor.Name, "weight"):
					v[i] = 1
				default:
					v[i] = float32(u / 10)
				}
			}
			tensors[tensor.Name] = v
		}
		h, err := head.New(m, tensors)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Save(filepath.Join(dir, m.Name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
