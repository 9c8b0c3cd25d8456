package query_test

import (
	"embed"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/query"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

//go:embed *.lua
var files embed.FS

func load(t *testing.T, name string, set map[string]float64, scorer ...scripting.Scorer) []*scripting.VM {
	t.Helper()
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return routertest.Load(t, "query_"+name+".lua", string(text), 2, routertest.Seed, set, scorer...)
}

type set = map[string]float64

// Ids, writers and dropped candidates equal those of the reference loops; both
// models answer requests, and each answer has one writer.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		name string
		set  set
		loop func(reference.Run) reference.Result
	}{
		{"mix", set{"share": 0.4}, func(r reference.Run) reference.Result { return query.MixReference(r, 0.4) }},
		{"length", set{"length": 2}, func(r reference.Run) reference.Result { return query.LengthReference(r, 2) }},
		{"head", set{"threshold": 0.5}, func(r reference.Run) reference.Result { return query.HeadReference(r, 0.5, routertest.Score) }},
		{"probe", set{"threshold": 1, "tokens": 1}, func(r reference.Run) reference.Result { return query.ProbeReference(r, 1, 1) }},
		{"probe", set{"threshold": 1, "tokens": 4}, func(r reference.Run) reference.Result { return query.ProbeReference(r, 1, 4) }},
		{"probe", set{"threshold": 1, "tokens": 16}, func(r reference.Run) reference.Result { return query.ProbeReference(r, 1, 16) }},
		{"probe", set{"threshold": 1.05, "tokens": 32}, func(r reference.Run) reference.Result { return query.ProbeReference(r, 1.05, 32) }},
	} {
		var answers [2]int
		for req, r := range routertest.Equal(t, load(t, c.name, c.set), 200, c.loop) {
			answers[r.Writers[0]]++
			for _, m := range r.Writers {
				if m != r.Writers[0] {
					t.Fatalf("query_%s %v, request %d: written by %v", c.name, c.set, req, r.Writers)
				}
			}
		}
		if answers[0] < 20 || answers[1] < 20 {
			t.Errorf("query_%s %v: %v answers of the models", c.name, c.set, answers)
		}
	}
}

// Single decisions on 10,000 rows (case I9): at the first position by the rule, ties
// included; at later ones by what was decided, whatever they show.
func TestTwin(t *testing.T) {
	head := &routertest.Fixed{}
	heads, mixes, lengths := load(t, "head", set{"threshold": 0.5}, head), load(t, "mix", set{"share": 0.25}), load(t, "length", set{"length": 6})
	for i := range routertest.Rows {
		row := scripting.Row{Req: event.ReqID(i), Output: &event.Output{}, Pos: 4 + i%4, PromptLen: 4 + i%4}
		routertest.Head(nil, head, []float64{0.5, routertest.Score(0, routertest.Signals(rng.Key{Req: uint64(i)}))}[i%2], i/2%3-1)
		key := rng.Key{Seed: routertest.Seed, Req: uint64(i), Pos: row.Pos, Purpose: rng.Router}
		for name, c := range map[string]struct {
			vms   []*scripting.VM
			large bool
		}{
			"head":   {heads, head.Value >= 0.5},
			"mix":    {mixes, key.Float64(0) < 0.25},
			"length": {lengths, row.Pos >= 6},
		} {
			d := c.vms[0].Route(&row)
			if d.Fault != "" || (d.Dest == 1) != c.large || (d.Action == event.Drop) != c.large {
				t.Fatalf("query_%s, row %d: %+v, want large: %v", name, i, d, c.large)
			}
			// Later tokens, and the large model's, show nothing that matters.
			head.Value = 1 - head.Value
			later := row
			later.Pos, later.State = row.Pos+1+i%9, d.State
			if d := c.vms[0].Route(&later); d.Fault != "" || d.Dest != 0 || d.Action != event.Keep {
				t.Fatalf("query_%s, row %d, later: %+v", name, i, d)
			}
			if head.Value = 1 - head.Value; !c.large {
				continue
			}
			_, fields, fault := c.vms[0].Send(&row, 1)
			later.Fields = fields
			for _, row := range []*scripting.Row{&later, {Req: row.Req, Output: row.Output, Pos: row.Pos, PromptLen: row.Pos, Fields: fields}} {
				if d := c.vms[1].Route(row); fault != "" || d.Fault != "" || d.Dest != 1 || d.Action != event.Keep {
					t.Fatalf("query_%s, row %d, at the large model: %+v %s", name, i, d, fault)
				}
			}
		}
	}
}

// The probe by hand: a tie goes to the large model, an answer that ends within the
// probe is judged by what it has, and an end token is cut like any other.
func TestProbeByHand(t *testing.T) {
	said := func(first event.Token, entropy ...float32) (s routertest.Script) {
		for i, h := range entropy {
			s = append(s, event.Output{Token: first + event.Token(i), Entropy: h})
		}
		return s
	}
	small, large := said(1, 0.25, 0.5, 0.75, 0, 0), said(11, 0, 0, 0, 0, 0)
	run := reference.Run{Models: []reference.Model{small, large}, MaxTokens: 4, EOS: []event.Token{3}}
	all := reference.Result{
		Tokens: []event.Token{11, 12, 13, 14}, Writers: []event.Peer{1, 1, 1, 1},
		Dropped: []reference.Dropped{{Pos: 0, Token: 1}, {Pos: 1, Token: 2}, {Pos: 2, Token: 3}},
	}
	if diff := cmp.Diff(all, query.ProbeReference(run, 0.5, 4)); diff != "" {
		t.Error(diff)
	}
	mine := reference.Result{Tokens: []event.Token{1, 2, 3}, Writers: []event.Peer{0, 0, 0}}
	if diff := cmp.Diff(mine, query.ProbeReference(run, math.Nextafter(0.5, 1), 4)); diff != "" {
		t.Error(diff)
	}
	run.EOS = nil
	all.Dropped = all.Dropped[:2]
	if diff := cmp.Diff(all, query.ProbeReference(run, 0.375, 2)); diff != "" {
		t.Error(diff)
	}
}

// Interleaved requests are decided one by one (case F2).
func TestInterleaved(t *testing.T) {
	for name, knobs := range map[string]set{
		"mix": {"share": 0.4}, "length": {"length": 2}, "head": nil, "probe": {"threshold": 1, "tokens": 6},
	} {
		routertest.Interleaved(t, load(t, name, knobs), 30)
	}
}

// A request that another router began is not cut: its first tokens are out.
func TestProbeTakenOver(t *testing.T) {
	vms := load(t, "probe", set{"threshold": 1, "tokens": 2})
	var state []byte
	for pos := 60; pos < 64; pos++ {
		d := vms[0].Route(&scripting.Row{Output: &event.Output{Entropy: 4}, Pos: pos, PromptLen: 5, Step: pos - 5, Emitted: pos - 31, State: state})
		if d.Fault != "" || d.Dest != 0 || d.Action != event.Keep {
			t.Fatalf("at %d: %+v", pos, d)
		}
		state = d.State
	}
}
