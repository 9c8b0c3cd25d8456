package collm_test

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/algos/collm"
	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

var (
	//go:embed router.lua
	router string
	//go:embed no_weights.lua
	noWeights string
	//go:embed draft.lua
	draft string
	//go:embed compose.lua
	compose string
)

func notTop1(_ event.Peer, o event.Output) float64 { return 1 - float64(o.Top1) }

func TestTwin(t *testing.T) {
	routertest.Twin{
		File: "collm.lua", Text: router, Thresholds: []float64{0, 0.1, 0.25, 0.5, math.Nextafter(0.25, 0)},
		Signal: routertest.Head, Rule: collm.Rule,
	}.Check(t)
	top1 := routertest.Field(func(o *event.Output, v float32) { o.Top1 = v })
	routertest.Twin{
		File: "collm_no_weights.lua", Text: noWeights, Thresholds: []float64{0, 0.125, 0.25, 0.5},
		Signal: func(o *event.Output, head *routertest.Fixed, v float64, toward int) float64 {
			return 1 - top1(o, head, 1-v, -toward)
		},
		Rule: collm.Rule,
	}.Check(t)
	// With one token to a draft, a draft ends at every row.
	routertest.Twin{
		File: "collm_draft.lua", Text: oneToken(draft), Thresholds: []float64{0, 0.1, 0.25, 0.5},
		Signal: routertest.Head,
		Rule: func(d float64, self event.Peer, threshold float64) (event.Peer, event.Action) {
			dest, action, _ := new(collm.Draft).DraftRule(d, self, 9, false, threshold, 1)
			return dest, action
		},
	}.Check(t)
	// Compose defers as the others do.
	routertest.Twin{
		File: "collm_compose.lua", Text: compose, Thresholds: []float64{0, 0.1, 0.25, 0.5},
		Signal: routertest.Head, Rule: collm.Rule,
	}.Check(t)
}

// Drafts carry their count and their first position over the threshold from row to
// row: 10,000 rows of drafts against the rule, with ties.
func TestDraftTwin(t *testing.T) {
	cuts := 0
	for _, k := range []int{1, 2, 3, 10, 16} {
		head := &routertest.Fixed{}
		vms := routertest.Load(t, "collm_draft.lua", draft, 2, 1, map[string]float64{"k": float64(k), "threshold": 0.5}, head)
		var state []byte
		var want collm.Draft
		pos := 5
		for i := range routertest.Rows / 5 {
			key := rng.Key{Seed: 8, Req: uint64(k), Pos: i}
			o := routertest.Signals(key)
			switch head.Value = routertest.Score(0, o) / 1.5; i % 4 { // mostly below
			case 0:
				head.Value = 0.5
			case 1:
				head.Value = float64(math.Nextafter32(0.5, float32(i%3)))
			}
			last := key.Uint64(40)%8 == 0
			dest, action, at := want.DraftRule(head.Value, 0, pos, last, 0.5, k)
			d := vms[0].Route(&scripting.Row{Output: &o, Pos: pos, PromptLen: 5, Emitted: max(5, pos-15), State: state, Last: last})
			if d.Fault != "" || d.Dest != dest || d.Action != action || d.At != at {
				t.Fatalf("k = %d, row %d: %+v, want %d %s %d", k, i, d, dest, action, at)
			}
			if state = d.State; action == event.Truncate {
				cuts, pos = cuts+1, at
			}
			pos++
		}
	}
	if cuts < 1000 {
		t.Errorf("only %d drafts were cut; the test has lost its sense", cuts)
	}
}

// What home makes of both models' lists is the rule's mixture, on 10,000 pairs of
// lists with many equal probabilities.
func TestComposeTwin(t *testing.T) {
	head := &routertest.Fixed{}
	vms := routertest.Load(t, "collm_compose.lua", compose, 2, 1, map[string]float64{"threshold": 0}, head)
	won := map[bool]int{}
	for i := range routertest.Rows {
		base, ref := routertest.Signals(rng.Key{Seed: 1, Req: uint64(i)}), routertest.Signals(rng.Key{Seed: 2, Req: uint64(i)})
		head.Value = []float64{0.5, 1, float64(float32(1+i%99) / 100)}[i%3]
		row := scripting.Row{Req: event.ReqID(i), Output: &base, Pos: 9, PromptLen: 5}
		d := vms[0].Route(&row)
		_, fields, fault := vms[0].Send(&row, 1)
		if d.Action != event.Drop || fault != "" {
			t.Fatalf("%+v %s", d, fault)
		}
		row.Output, row.Fields = &ref, fields
		if d = vms[1].Route(&row); d.Action != event.Drop || d.Dest != 0 {
			t.Fatalf("%+v", d)
		}
		_, fields, fault = vms[1].Send(&row, 0)
		v := vms[0].Receive(&event.PeerReq{ID: row.Req, From: 1, Loc: 9, Status: event.Alive, Fields: fields}, make([]event.Token, 9))
		want := collm.Compose(head.Value, base.TopK, ref.TopK)
		if fault != "" || v.Fault != "" || v.Kind != event.Append || len(v.Ids) != 1 || v.Ids[0] != want {
			t.Fatalf("row %d: %+v %s, want %d", i, v, fault, want)
		}
		won[want == base.TopK[0].Token]++
	}
	if won[true] < 1000 || won[false] < 1000 {
		t.Errorf("the base model's token won %d times, another %d", won[true], won[false])
	}
}

// Ids, writers and dropped candidates equal those of the reference loops.
func TestReference(t *testing.T) {
	type algorithm struct {
		file, text string
		set        map[string]float64
		loop       func(reference.Run) reference.Result
	}
	for _, tau := range []float64{0.125, 0.5} {
		list := []algorithm{
			{"collm.lua", router, nil, func(r reference.Run) reference.Result { return collm.Reference(r, tau, routertest.Score) }},
			{"collm_no_weights.lua", noWeights, nil, func(r reference.Run) reference.Result { return collm.Reference(r, tau, notTop1) }},
			{"collm_compose.lua", compose, nil, func(r reference.Run) reference.Result { return collm.ComposeReference(r, tau, routertest.Score) }},
		}
		for _, k := range []int{1, 2, 5, 10, 16} {
			list = append(list, algorithm{"collm_draft.lua", draft, map[string]float64{"k": float64(k)}, func(r reference.Run) reference.Result {
				return collm.DraftReference(r, tau, k, routertest.Score)
			}})
		}
		for _, c := range list {
			set := map[string]float64{"threshold": tau, "k": c.set["k"]}
			if c.set == nil {
				delete(set, "k")
			}
			dropped := 0
			for _, r := range routertest.Equal(t, routertest.Load(t, c.file, c.text, 2, routertest.Seed, set), 40, c.loop) {
				dropped += len(r.Dropped)
			}
			if dropped < 100 {
				t.Errorf("%s at %v: only %d candidates were dropped", c.file, tau, dropped)
			}
		}
	}
}

// Drafts change how much is written in vain, and no token.
func TestDraftsWriteTheSame(t *testing.T) {
	for req := range 100 {
		run := routertest.Run(2, req)
		want := collm.Reference(run, 0.5, routertest.Score)
		waste := len(want.Dropped)
		for k := 1; k <= 16; k++ {
			got := collm.DraftReference(run, 0.5, k, routertest.Score)
			if fmt.Sprint(got.Tokens, got.Writers) != fmt.Sprint(want.Tokens, want.Writers) {
				t.Fatalf("request %d, k = %d: %v by %v, want %v by %v", req, k, got.Tokens, got.Writers, want.Tokens, want.Writers)
			}
			if k == 1 && len(got.Dropped) != waste || len(got.Dropped) < waste {
				t.Errorf("request %d, k = %d: %d in vain, %d without drafts", req, k, len(got.Dropped), waste)
			}
		}
	}
}

// Interleaved requests draft as each does alone (case F2).
func TestInterleaved(t *testing.T) {
	for file, text := range map[string]string{"collm_draft.lua": draft, "collm_compose.lua": compose} {
		routertest.Interleaved(t, routertest.Load(t, file, text, 2, routertest.Seed, map[string]float64{"threshold": 0.375}), 30)
	}
}

// A draft by hand: the first position over the threshold cuts the rest, also where
// the draft had come to its end token; a tie stays.
func TestDraftByHand(t *testing.T) {
	small := said(1, 0.2, 2, 0.9, 3, 0.9, 4, 0.5, float64(routertest.EOS), 0.1)
	large := said(11, 0, 12, 0, 13, 0, 14, 0, 15, 0)
	score := func(_ event.Peer, o event.Output) float64 { return float64(o.Top1) }
	run := reference.Run{Models: []reference.Model{small, large}, MaxTokens: 9, EOS: []event.Token{routertest.EOS}}
	want := reference.Result{
		Tokens:  []event.Token{1, 12, 13, 4, routertest.EOS},
		Writers: []event.Peer{0, 1, 1, 0, 0},
		Dropped: dropped(1, 2, 2, 3, 3, 4, 2, 3, 3, 4, 4, 0),
	}
	if diff := cmp.Diff(want, collm.DraftReference(run, 0.5, 4, score)); diff != "" {
		t.Error(diff)
	}
	run.MaxTokens = 3 // ends the second draft at its first token
	want.Tokens, want.Writers = want.Tokens[:3], want.Writers[:3]
	want.Dropped = dropped(1, 2, 2, 3, 2, 3)
	if diff := cmp.Diff(want, collm.DraftReference(run, 0.5, 4, score)); diff != "" {
		t.Error(diff)
	}
}

// dropped is positions and tokens of the small model.
func dropped(list ...int) (out []reference.Dropped) {
	for i := 0; i < len(list); i += 2 {
		out = append(out, reference.Dropped{Pos: list[i], Token: event.Token(list[i+1])})
	}
	return out
}

// said is a model: tokens with the probability that they are deferred.
func said(list ...float64) (s routertest.Script) {
	for i := 0; i < len(list); i += 2 {
		s = append(s, event.Output{Token: event.Token(list[i]), Top1: float32(list[i+1])})
	}
	return s
}

// The mixture by hand.
func TestCompose(t *testing.T) {
	list := func(tokens ...event.Token) (out []event.TokenProb) {
		for i, id := range tokens {
			out = append(out, event.TokenProb{Token: id, Logprob: float32(-i)})
		}
		return out
	}
	for _, c := range []struct {
		d         float64
		base, ref []event.TokenProb
		want      event.Token
	}{
		{0.9, list(1, 2), list(3, 4), 3},
		{0.1, list(1, 2), list(3, 4), 1},
		{0.5, list(1, 2), list(3, 4), 1},             // a tie: the base model's
		{0.5, list(1, 2), list(3, 2), 1},             // 0.5 against twice 0.18
		{0.5, list(1, 2), list(2), 2},                // 0.5 against 0.68
		{0.5, list(9, 1, 2, 8), list(7, 1, 2, 6), 9}, // 0.5 against 0.37
	} {
		if got := collm.Compose(c.d, c.base, c.ref); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// oneToken is the text of draft.lua with k = 1 for its default.
func oneToken(text string) string { return strings.Replace(text, "default = 10", "default = 1", 1) }
