package live_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
)

const scoreRouter = `
function route(r)
  if r.model == "large" then return HOME end
  local name = r.pos % 7 == 0 and "row" or "joined"
  if r.pos < 0 then return r.score("row") + r.score("joined") end -- names them, for the check at load
  if r.score(name) >= 0.5 then return to("large"), DROP end
  return STAY
end
function send(req, dest)
  if dest == "large" then return { budget = 1, fields = { s = req.score("joined") } } end
end
`

// randomHead saves a head with random weights for tiny-37k.
func randomHead(t testing.TB, dir, name string, spec head.Spec, models map[string]string) *head.Head {
	t.Helper()
	r := rand.New(rand.NewPCG(3, uint64(len(name))))
	tensors := map[string][]float32{}
	for _, x := range spec.Tensors() {
		v := make([]float32, x.Len())
		for i := range v {
			v[i] = float32(r.NormFloat64() / math.Sqrt(float64(x.Shape[len(x.Shape)-1])))
			if x.Name == "logits_projection.weight" {
				v[i] /= 50 // logits are large and much the same
			}
		}
		tensors[x.Name] = v
	}
	h, err := head.New(head.Manifest{Name: name, Spec: spec, Meaning: "large", Models: models}, tensors)
	if err == nil {
		err = h.Save(filepath.Join(dir, name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var (
	// Large enough that rows of a step are evaluated together.
	joinedSpec = head.Spec{Kind: "r2r", Features: []string{"hidden", "embedding", "logits:20"}, Hidden: 32, Widths: []int{256, 200}}
	rowSpec    = head.Spec{Kind: "linear", Features: []string{"hidden", "signals"}, Hidden: 32}
)

// headSetup is a cluster whose router asks two heads.
func headSetup(t testing.TB, n int) (setup, map[string]*head.Head) {
	t.Helper()
	s := setup{models: []string{"tiny-37k", "tiny-842k"}, concurrency: 8, tasks: referenceTasks(t, n), dir: t.TempDir()}
	hashes := map[string]string{}
	models := map[string]head.Model{}
	for i, name := range s.models {
		m := loadModel(t, name)
		hashes[event.Role(event.Peer(i), 2)] = m.Hash()
		models[event.Role(event.Peer(i), 2)] = head.Model{Hash: m.Hash(), Hidden: m.Config.Hidden}
	}
	heads := map[string]*head.Head{
		"joined": randomHead(t, s.dir, "joined", joinedSpec, hashes),
		"row":    randomHead(t, s.dir, "row", rowSpec, nil),
	}
	lib := head.NewLibrary(s.dir, head.Options{})
	s.scorer = func(runs []runner.Runner) func(event.Peer) scripting.Scorer {
		return func(p event.Peer) scripting.Scorer {
			f, ok := runner.FeaturesOf(runs[p])
			if !ok {
				t.Errorf("runner %d has no features", p)
			}
			return head.NewScorer(lib, event.Role(p, 2), models, f, nil)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "heads.lua"), []byte(scoreRouter), 0o600); err != nil {
		t.Fatal(err)
	}
	s.router = "heads"
	return s, heads
}

// routedRow is a row of the small model as the tape has it.
type routedRow struct {
	pos int
	res *event.RowResult
}

func routedRows(recs []tape.Record) map[event.ReqID][]routedRow {
	out := map[event.ReqID][]routedRow{}
	var running *event.Batch
	for i := range recs {
		switch r := &recs[i]; {
		case r.Core != event.Front:
		case r.Kind == tape.KindCommand && r.Command.Kind == event.RunBatch:
			running = r.Command.Batch
		case r.Kind == tape.KindEvent && r.Event.Kind == event.StepDone:
			k := 0
			for j := range running.Rows {
				if row := &running.Rows[j]; row.Sample {
					res := &r.Event.Step.Rows[k]
					out[row.Req] = append(out[row.Req], routedRow{row.Start + len(row.Tokens), res})
					k++
				}
			}
		}
	}
	return out
}

func prompts(recs []tape.Record) map[event.ReqID][]event.Token {
	out := map[event.ReqID][]event.Token{}
	for i := range recs {
		if r := &recs[i]; r.Kind == tape.KindEvent && r.Event.Kind == event.Arrive {
			out[r.Event.Req] = r.Event.Arrival.Prompt
		}
	}
	return out
}

// Scores of rows that ran in batches, beside requests that come, go and are handed
// over, are those of the row's tokens computed alone, bit for bit.
func TestScoresAreOfTheRow(t *testing.T) {
	for _, virtual := range []bool{false, true} {
		t.Run(fmt.Sprint("virtual ", virtual), func(t *testing.T) {
			s, heads := headSetup(t, 10)
			s.virtual = virtual
			got, recs := run(t, s)
			ids := prompts(recs)
			m := loadModel(t, "tiny-37k")
			solo := native.NewWithBlocks(m, 0, 64)
			var blocks []event.Block
			for b := range 64 {
				blocks = append(blocks, event.Block(b))
			}
			scored, toLarge := 0, 0
			for id, rows := range routedRows(recs) {
				text := append(append([]event.Token(nil), ids[id]...), got[id].ids...)
				for _, row := range rows {
					if row.res.Fault != "" {
						t.Fatalf("request %d at %d: %s", id, row.pos, row.res.Fault)
					}
					if row.pos > len(text) {
						continue // written after the answer had ended
					}
					if !row.res.Scored {
						t.Fatalf("request %d at %d has no score", id, row.pos)
					}
					scored++
					if row.res.Dest == 1 {
						toLarge++
					}
					asked := "joined"
					if row.pos%7 == 0 {
						asked = "row"
					}
					if want := alone(t, solo, blocks, heads[asked], text[:row.pos], &row.res.Output); want != row.res.Score {
						t.Fatalf("request %d at %d: score %v, alone %v", id, row.pos, row.res.Score, want)
					}
				}
			}
			if scored < 300 || toLarge < 50 || toLarge > scored-50 {
				t.Errorf("%d rows were scored, %d of them went to the large model: too one-sided to say anything", scored, toLarge)
			}
		})
	}
}

// alone computes the score of a text's last position in a batch of its own.
func alone(t *testing.T, run *native.Runner, blocks []event.Block, h *head.Head, text []event.Token, o *event.Output) float32 {
	t.Helper()
	_, err := run.Run(t.Context(), &event.Batch{Rows: []event.Row{{
		Req: 1, Prefill: true, Tokens: text, Sample: true,
		Blocks: blocks[:(len(text)+model.BlockLen-1)/model.BlockLen],
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var in head.Input
	in.Hidden, _ = run.Hidden(1, nil)
	in.Logits, _ = run.TopLogits(1, h.Manifest().Spec.TopLogits(), nil)
	in.Embedding, _ = run.Embedding(o.Token, nil)
	in.Signals = head.AppendSignals(nil, o)
	score, err := h.Score(&head.Workspace{}, &in)
	if err != nil {
		t.Fatal(err)
	}
	return float32(score)
}

// A head that is not there, or that belongs to another model, keeps a router from
// being taken over; the one that runs goes on.
func TestHeadsAreCheckedAtLoad(t *testing.T) {
	s, _ := headSetup(t, 4)
	other := map[string]string{"small": strings.Repeat("0", 64)}
	randomHead(t, s.dir, "stranger", rowSpec, other)
	rt := newRuntime(t, s)
	rt.Start()
	defer closeRuntime(t, rt)
	for name, want := range map[string]string{
		"jonied":   `x.lua:2: there is no head "jonied"; did you mean "joined"?`,
		"stranger": "x.lua:2: the head stranger was made for another small model: its hash is 000000000000, that of the model here " + loadModel(t, "tiny-37k").Hash()[:12] + "; train a head",
	} {
		path := filepath.Join(s.dir, "x.lua")
		if err := os.WriteFile(path, []byte("function route(r)\n  if r.score(\""+name+"\") > 2 then return HOME end\n  return STAY\nend\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := rt.SetRouter(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if file := rt.Status().RouterFile; file != "heads.lua" {
		t.Errorf("%s is live now", file)
	}
}

// Where no model computes, a router that names a head is refused with the cure.
func TestHeadsNeedModels(t *testing.T) {
	s, _ := headSetup(t, 1)
	s.scorer = nil
	_, err := tryRuntime(t, s)
	if err == nil || !strings.Contains(err.Error(), "heads.lua:5: "+scripting.ErrNoModel.Error()) {
		t.Error(err)
	}
}

// A router that asks for a head by a name that it puts together gets its error as
// a fault.
func TestUnknownHeadIsAFault(t *testing.T) {
	s, _ := headSetup(t, 1)
	text := "local n = \"jo\"\nfunction route(r)\n  if r.model == \"small\" and r.score(n .. \"ined2\") > 0.5 then return to(\"large\") end\n  return HOME\nend\n"
	if err := os.WriteFile(filepath.Join(s.dir, "heads.lua"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := tryRuntime(t, s)
	if err == nil || !strings.Contains(err.Error(), `heads.lua:3: r.score("joined2"): there is no head "joined2"; did you mean "joined"?`) {
		t.Error(err)
	}
}

// The record of a row is explained with the score that it was decided by.
func TestExplainGoesByTheRecordedScore(t *testing.T) {
	s, _ := headSetup(t, 2)
	s.tape = tape.New()
	sub := s.tape.Subscribe()
	rt := newRuntime(t, s)
	rt.Start()
	<-rt.Done()
	defer closeRuntime(t, rt)
	explained := 0
	for id, rows := range routedRows(sub.Next(nil, 0)) {
		for _, row := range rows {
			if row.res.Dest != 1 || row.pos%7 == 0 {
				continue
			}
			_, line, src, err := rt.Explain(0, row.res, &scripting.Row{Req: id, Output: &row.res.Output, Pos: row.pos, PromptLen: 1}, nil)
			if err != nil || line != 6 || !strings.Contains(src, `r.score(name)`) {
				t.Fatalf("request %d at %d: line %d %q, %v", id, row.pos, line, src, err)
			}
			explained++
		}
	}
	if explained == 0 {
		t.Error("no row went to the large model")
	}
}

// orderly sees that KV is dropped only while no row waits to be routed: heads read
// what the runner holds of it.
type orderly struct {
	runner.Runner
	runner.Features
	t     *testing.T
	began chan *event.Batch
	leave chan struct{}

	mu    sync.Mutex
	rows  int // of the last step, not asked about yet
	freed int
}

func (o *orderly) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	o.began <- b
	<-o.leave
	out, err := o.Runner.Run(ctx, b, out)
	o.mu.Lock()
	o.rows = len(out)
	o.mu.Unlock()
	return out, err
}

func (o *orderly) Free(id event.ReqID) {
	o.mu.Lock()
	if o.freed++; o.rows > 0 {
		o.t.Errorf("request %d is freed while %d rows wait to be routed", id, o.rows)
	}
	o.mu.Unlock()
	o.Runner.Free(id)
}

func (o *orderly) Hidden(id event.ReqID, dst []float32) ([]float32, bool) {
	o.mu.Lock()
	o.rows--
	o.mu.Unlock()
	return o.Features.Hidden(id, dst)
}

// A request that is cancelled during a step it has no part in is freed when the
// rows of the step have been routed, not beside that.
func TestFreesWaitForTheRouter(t *testing.T) {
	s, _ := headSetup(t, 60)
	text := `function route(r)
  if r.model == "large" then return HOME end
  if r.score("row") >= 0 and r.pos % 3 == 0 then return to("large") end
  return STAY
end`
	if err := os.WriteFile(filepath.Join(s.dir, "heads.lua"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var o *orderly
	s.wrap = func(r runner.Runner) runner.Runner {
		if o != nil {
			return r
		}
		f, _ := runner.FeaturesOf(r)
		o = &orderly{Runner: r, Features: f, t: t, began: make(chan *event.Batch), leave: make(chan struct{})}
		return o
	}
	s.tape = tape.New()
	sub := s.tape.Subscribe()
	rt := newRuntime(t, s)
	rt.Start()
	open := map[event.ReqID]bool{} // that have been in a step here and have not ended
	cancelled := 0
	for cancelled < 20 {
		b := <-o.began
		id := event.ReqID(0)
		for r := range open {
			if !slices.ContainsFunc(b.Rows, func(row event.Row) bool { return row.Req == r }) {
				id = max(id, r)
			}
		}
		if id > 0 {
			cancelled++
			rt.Cancel(id)
			await(sub, func(r *tape.Record) bool {
				if r.Kind == tape.KindCommand && r.Command.Kind == event.Finish {
					delete(open, r.Command.Req)
				}
				return !open[id]
			})
		}
		for i := range b.Rows {
			open[b.Rows[i].Req] = true
		}
		o.leave <- struct{}{}
	}
	go func() {
		for range o.began {
			o.leave <- struct{}{}
		}
	}()
	<-rt.Done()
	closeRuntime(t, rt)
	close(o.began)
	if o.freed < 20 {
		t.Errorf("%d requests were freed", o.freed)
	}
}
