package controls_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/controls"
	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

// Ids, writers and dropped candidates equal those of the reference loops.
func TestReference(t *testing.T) {
	type set = map[string]float64
	for _, c := range []struct {
		name  string
		peers int
		set   set
		loop  func(reference.Run) reference.Result
		drops int // at least so many in all
	}{
		{"small_only", 2, nil, func(r reference.Run) reference.Result { return controls.OnlyReference(r, 0) }, 0},
		{"large_only", 2, nil, func(r reference.Run) reference.Result { return controls.OnlyReference(r, 1) }, 80},
		{"large_only", 3, nil, func(r reference.Run) reference.Result { return controls.OnlyReference(r, 2) }, 80},
		{"random", 2, set{"share": 0.3}, func(r reference.Run) reference.Result { return controls.RandomReference(r, 0.3) }, 300},
		{"oracle", 2, nil, controls.OracleReference, 2000},
		{"handover", 2, set{"threshold": 1, "tokens": 1}, func(r reference.Run) reference.Result { return controls.HandoverReference(r, 1, 1) }, 300},
		{"handover", 2, set{"threshold": 1, "tokens": 5}, func(r reference.Run) reference.Result { return controls.HandoverReference(r, 1, 5) }, 100},
		{"handover", 2, set{"threshold": 2, "tokens": 64}, func(r reference.Run) reference.Result { return controls.HandoverReference(r, 2, 64) }, 50},
		{"hysteresis", 2, set{"up": 1.5, "down": 0.3}, func(r reference.Run) reference.Result { return controls.HysteresisReference(r, 1.5, 0.3) }, 200},
		{"hysteresis", 2, set{"up": 0.3, "down": 1.5}, func(r reference.Run) reference.Result { return controls.HysteresisReference(r, 0.3, 1.5) }, 200},
		{"window", 2, set{"threshold": 1.2, "window": 1, "tokens": 1}, func(r reference.Run) reference.Result { return controls.WindowReference(r, 1.2, 1, 1) }, 200},
		{"window", 2, set{"threshold": 1, "window": 4, "tokens": 1}, func(r reference.Run) reference.Result { return controls.WindowReference(r, 1, 4, 1) }, 200},
		{"window", 2, set{"threshold": 1.1, "window": 8, "tokens": 3}, func(r reference.Run) reference.Result { return controls.WindowReference(r, 1.1, 8, 3) }, 200},
		{"window", 2, set{"threshold": 1.1, "window": 16, "tokens": 2}, func(r reference.Run) reference.Result { return controls.WindowReference(r, 1.1, 16, 2) }, 200},
	} {
		dropped := 0
		for _, r := range routertest.Equal(t, load(t, c.name, c.peers, c.set), 80, c.loop) {
			dropped += len(r.Dropped)
		}
		if dropped < c.drops {
			t.Errorf("%s %v: %d candidates were dropped, want %d at the least", c.name, c.set, dropped, c.drops)
		}
	}
}

// The oracle's text is the large model's, with a token of the small one's wherever
// that would have written the same.
func TestOracleWritesTheLargeText(t *testing.T) {
	small := 0
	for req := range 60 {
		run := routertest.Run(2, req)
		run.Models[1] = echo{run.Models[0], run.Models[1]}
		got, want := controls.OracleReference(run), controls.OnlyReference(run, 1)
		if !slices.Equal(got.Tokens, want.Tokens) {
			t.Fatalf("request %d: %v, the large model writes %v", req, got.Tokens, want.Tokens)
		}
		for i, m := range got.Writers {
			before := append(slices.Clone(run.Prompt), got.Tokens[:i]...)
			o := run.Models[0].Next(before, run.Req, len(before))
			if (m == 0) != (o.Token == got.Tokens[i]) {
				t.Errorf("request %d, token %d: written by %d, the small model has %d for %d", req, i, m, o.Token, got.Tokens[i])
			}
			small += 1 - int(m)
		}
	}
	if small < 500 {
		t.Errorf("the small model wrote %d tokens; the test has lost its sense", small)
	}
}

// echo says what the first model says at two positions of three.
type echo struct{ often, other reference.Model }

func (e echo) Next(tokens []event.Token, req event.ReqID, pos int) event.Output {
	if pos%3 > 0 {
		return e.often.Next(tokens, req, pos)
	}
	return e.other.Next(tokens, req, pos)
}

// Single decisions on 10,000 rows, ties included (case I9): handover and hysteresis
// at each threshold, the window row by row.
func TestTwins(t *testing.T) {
	entropy := routertest.Field(func(o *event.Output, v float32) { o.Entropy = v })
	text := func(name string) string {
		b, err := files.ReadFile(name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	routertest.Twin{
		File: "handover.lua", Text: text("handover"), Thresholds: []float64{0, 0.1, 0.45, 0.5}, Signal: entropy,
		Rule: func(h float64, self event.Peer, threshold float64) (event.Peer, event.Action) {
			if self == 0 && h >= threshold {
				return 1, event.Drop
			}
			return 0, event.Keep
		},
	}.Check(t)
	vms := load(t, "hysteresis", 2, map[string]float64{"up": 0.5, "down": 0.25})
	for i := range routertest.Rows {
		o := routertest.Signals(rng.Key{Seed: 4, Req: uint64(i)})
		entropy(&o, nil, []float64{0.5, 0.25, float64(o.Entropy)}[i%3], i/3%3-1)
		for self := range event.Peer(2) {
			dest, action := controls.HysteresisRule(float64(o.Entropy), self, 0.5, 0.25)
			d := vms[self].Route(&scripting.Row{Output: &o, Pos: 9, PromptLen: 5})
			if d.Fault != "" || d.Dest != dest || d.Action != action {
				t.Fatalf("H = %v at %d: %+v, want %d %s", o.Entropy, self, d, dest, action)
			}
		}
	}
}

// A window carries its entropies from row to row, also over a cut and where another
// model has written in between.
func TestWindowTwin(t *testing.T) {
	cuts := 0
	for _, window := range []int{1, 2, 5, 8, 16} {
		vms := load(t, "window", 2, map[string]float64{"window": float64(window), "threshold": 1})
		var state []byte
		var want controls.Window
		pos := 5
		for i := range routertest.Rows / 5 {
			o := routertest.Signals(rng.Key{Seed: 8, Req: uint64(window), Pos: i})
			if i%3 == 0 {
				o.Entropy = 1 // equals, and means on the threshold
			}
			at, cut := want.Rule(float64(o.Entropy), pos, 1, window)
			d := vms[0].Route(&scripting.Row{Output: &o, Pos: pos, PromptLen: 5, Emitted: max(5, pos-15), State: state})
			if d.Fault != "" || (d.Action == event.Truncate) != cut || d.At != at {
				t.Fatalf("window of %d, row %d: %+v, want %v to %d", window, i, d, cut, at)
			}
			if state = d.State; cut {
				cuts, pos = cuts+1, at+i%4
			}
			pos++
		}
	}
	if cuts < 500 {
		t.Errorf("only %d windows were cut; the test has lost its sense", cuts)
	}
}

// The window by hand.
func TestWindowByHand(t *testing.T) {
	said := func(first event.Token, entropy ...float32) (s routertest.Script) {
		for i, h := range entropy {
			s = append(s, event.Output{Token: first + event.Token(i), Entropy: h})
		}
		return s
	}
	run := reference.Run{
		Models:    []reference.Model{said(1, 0, 0.1, 0.5, 0.5, 0.3, 0, 2, 0.1, 0), said(11, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		MaxTokens: 9,
	}
	want := reference.Result{
		// The mean of positions 1 to 4 is 0.35: back to 2, the first of equals. Then
		// 4 to 7 have 0.6, with the highest at 6.
		Tokens:  []event.Token{1, 2, 13, 14, 5, 6, 17, 18, 9},
		Writers: []event.Peer{0, 0, 1, 1, 0, 0, 1, 1, 0},
		Dropped: []reference.Dropped{
			{Pos: 2, Token: 3}, {Pos: 3, Token: 4}, {Pos: 4, Token: 5}, {Pos: 6, Token: 7}, {Pos: 7, Token: 8},
		},
	}
	if diff := cmp.Diff(want, controls.WindowReference(run, 0.35, 4, 2)); diff != "" {
		t.Error(diff)
	}
}

// Interleaved requests keep their windows apart (case F2).
func TestInterleaved(t *testing.T) {
	for name, set := range map[string]map[string]float64{
		"window": {"threshold": 1, "window": 5}, "oracle": nil, "handover": {"threshold": 1}, "hysteresis": nil, "random": nil, "chance": nil,
	} {
		routertest.Interleaved(t, load(t, name, 2, set), 20)
	}
}

// A router that takes a request over from another one reads no state of its own.
func TestWindowTakenOver(t *testing.T) {
	vms := load(t, "window", 2, map[string]float64{"threshold": 1, "window": 3})
	row := func(pos int, h float32, state []byte) scripting.Decision {
		return vms[0].Route(&scripting.Row{Output: &event.Output{Entropy: h}, Pos: pos, PromptLen: 5, Emitted: max(5, pos-15), State: state})
	}
	state := row(20, 4, row(19, 4, nil).State).State
	// Another router writes 20 to 39; at 40 the window is empty.
	if d := row(40, 4, state); d.Action != event.Keep || d.Fault != "" {
		t.Errorf("%+v; positions 19 and 20 do not lie before 40", d)
	}
	if d := row(21, 4, state); d.Action != event.Truncate || d.At != 19 {
		t.Errorf("%+v", d)
	}
	if d := vms[1].Route(&scripting.Row{Output: &event.Output{}, Pos: 9, PromptLen: 5}); d.Dest != event.Front {
		t.Errorf("%+v: the large model was not asked by this router", d)
	}
}
