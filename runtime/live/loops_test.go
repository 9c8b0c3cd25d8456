package live_test

import (
	"context"
	"testing"

	"tokenrouter/algos/me"
	"tokenrouter/algos/r2r"
	"tokenrouter/algos/reference"
	"tokenrouter/algos/rstitch"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/workload"
)

// loopModel is one model for a single-loop reference: one request at a time, no
// scheduler, no messages; its KV is what it has fed itself.
type loopModel struct {
	t        testing.TB
	run      *native.Runner
	fed      map[event.ReqID][]event.Token
	sampling event.Sampling
}

func newLoopModel(t testing.TB, run *native.Runner, sampling event.Sampling) *loopModel {
	return &loopModel{t: t, run: run, fed: map[event.ReqID][]event.Token{}, sampling: sampling}
}

func (m *loopModel) Next(tokens []event.Token, req event.ReqID, pos int) event.Output {
	const block = 16
	before, fed := m.fed[req], 0
	for fed < min(len(before), pos-1) && before[fed] == tokens[fed] { // what stands of it: text may have been cut
		fed++
	}
	row := event.Row{Req: req, Start: fed, Tokens: tokens[fed:], Sample: true, Prefill: len(before) == 0, Sampling: m.sampling}
	for id := fed / block; id <= (len(tokens)-1)/block; id++ {
		row.Blocks = append(row.Blocks, event.Block(id))
	}
	b := &event.Batch{Rows: []event.Row{row}}
	out, err := m.run.Run(context.Background(), b, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	m.fed[req] = append(before[:fed], tokens[fed:]...)
	return out[0]
}

// loopAnswers runs the reference of an algorithm over tasks.
func loopAnswers(t testing.TB, s setup, loop func(reference.Run) reference.Result) map[event.ReqID]*answer {
	t.Helper()
	var ms []reference.Model
	for i, name := range s.models {
		ms = append(ms, newLoopModel(t, native.New(loadModel(t, name), i), s.sampling))
	}
	front := loadModel(t, s.models[0])
	out := map[event.ReqID]*answer{}
	for i, task := range s.tasks {
		prompt, err := front.Tokenizer.EncodeChat([]tokenizer.Message{{Role: "user", Content: task.Question}})
		if err != nil {
			t.Fatal(err)
		}
		id := event.ReqID(i + 1)
		res := loop(reference.Run{
			Models: ms, Req: id, Prompt: prompt, MaxTokens: 160, EOS: front.EOS(), Seed: s.sampling.Seed,
		})
		out[id] = &answer{ids: res.Tokens, writers: res.Writers}
		for _, m := range ms {
			m.(*loopModel).run.Free(id)
		}
	}
	return out
}

// TestSingleLoopReferences holds the runtime against the algorithms as plain
// loops: the same ids by the same writers.
func TestSingleLoopReferences(t *testing.T) {
	problems, err := workload.NewGenerator(20261129, workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	var tasks []workload.Task
	for range referenceLoop {
		task, _ := problems.Next()
		tasks = append(tasks, task)
	}
	for _, tc := range []struct {
		name   string
		params map[string]float64
		loop   func(reference.Run) reference.Result
	}{
		{"r2r", map[string]float64{"threshold": 0.2}, func(r reference.Run) reference.Result { return r2r.Reference(r, 0.2) }},
		{"rstitch", map[string]float64{"threshold": 0.01}, func(r reference.Run) reference.Result { return rstitch.Reference(r, 0.01) }},
		{"me", nil, func(r reference.Run) reference.Result { return me.Reference(r, []float64{1, 1}) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := setup{models: loopModels, router: tc.name, params: tc.params, tasks: tasks, concurrency: 8}
			if tc.name == "me" {
				s.sampling = event.Sampling{Temperature: 1, Seed: 11}
			}
			got, _ := run(t, s)
			sameAnswers(t, tc.name, loopAnswers(t, s, tc.loop), got)
		})
	}
}
