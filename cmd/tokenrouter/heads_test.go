package main

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tokenrouter/algos/head"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/scripting"
	"tokenrouter/sessions/store"
)

// putHead FILE MODEL: saves a linear head with random weights for an embedded model,
// or for any of its width where the model is "width".
func putHead(ts *testscript.TestScript, _ bool, args []string) {
	m, err := tiny.Load(tiny.Names()[0])
	ts.Check(err)
	models := map[string]string{}
	switch args[1] {
	case "width":
	case "other":
		models["small"] = strings.Repeat("0", 64)
	default:
		models["small"] = m.Hash()
	}
	s := head.Spec{Kind: "linear", Features: []string{"hidden", "logits:8"}, Hidden: m.Config.Hidden}
	r := rand.New(rand.NewPCG(1, 1))
	w := make([]float32, s.Inputs())
	for i := range m.Config.Hidden {
		w[i] = float32(r.NormFloat64() / 4)
	}
	h, err := head.New(head.Manifest{Spec: s, Name: "h", Meaning: "large", Models: models, Data: "none"}, map[string][]float32{"weight": w})
	ts.Check(err)
	ts.Check(h.Save(ts.MkAbs(filepath.FromSlash(args[0]))))
}

// Scores of a recording are a head's only where nothing else can have given them.
func TestWhoseScores(t *testing.T) {
	const route = "function route(r)\n  %s\n  return STAY\nend\n"
	heads := func(names ...string) (out []store.Head) {
		for _, n := range names {
			out = append(out, store.Head{Name: n, Hash: "h-" + n})
		}
		return out
	}
	closed := &store.Closed{}
	for _, c := range []struct {
		body  string
		heads []store.Head
		ended *store.Closed
		want  string
	}{
		{`local s = r.score("a")`, heads("a"), closed, "a"},
		{`local n = "a" local s = r.score(n)`, heads("a"), closed, "a"},      // there is no other
		{`local n = "a" local s = r.score(n)`, heads("a"), nil, ""},          // a later router may have had
		{`local s = r.score("a")`, heads("a"), nil, "a"},                     // killed, but named
		{`local s = r.score("a") + r.score('a')`, heads("a", "b"), nil, "a"}, // another router asked b
		{`local s = r.score("a") + r.score("b")`, heads("a", "b"), closed, ""},
		{`local n = "b" local s = r.score("a") + r.score(n)`, heads("a", "b"), closed, ""},
		{`local s = r.score("a") local ok, s = pcall(r.score, "b")`, heads("a", "b"), closed, ""},
		{`local s = r.score("c")`, heads("a", "b"), closed, ""}, // whose weights nobody wrote down
		{`local s = r.score("a"`, heads("a", "b"), closed, ""},
		{`local s = r:score("a") -- not r.score`, heads("a", "b"), nil, "a"},
		{`local f = r.score local s = r.score("a")`, heads("a", "b"), closed, ""},
		{`local s = r.score("a") + r["score"]("b")`, heads("a", "b"), closed, ""},
	} {
		text := strings.Replace(route, "%s", c.body, 1)
		r := newRecordedHeads("s", &store.Opened{Manifest: store.Manifest{
			Router: store.Router{Hash: "x", Text: text}, Heads: c.heads, Closed: c.ended,
		}})
		if got := r.headOf("x"); got != c.want || r.headOf("x") != got || (r.unclear == "") != (c.want != "") {
			t.Errorf("%s of %v, closed %v: %q, want %q; unclear %q", c.body, c.heads, c.ended != nil, got, c.want, r.unclear)
		}
		if got := r.headOf("y"); got != "" && len(c.heads) > 1 {
			t.Errorf("a router that the session does not hold asks %q", got)
		}
	}
}

// oneHead is a recording in which the head a was asked about the small model's rows.
type oneHead struct{}

func (oneHead) Heads() []string { return []string{"a"} }

func (oneHead) Scores(model int, head string) int {
	if model == 0 && head == "a" {
		return 3
	}
	return 0
}

func (oneHead) Score(int, string, event.ReqID, int) (float64, error) { return 0.25, nil }

// Of a recorded head the threshold and the hash are those of the recording, and only
// what was asked for is listed as used.
func TestRecordedHeads(t *testing.T) {
	r := newRecordedHeads("s", &store.Opened{Manifest: store.Manifest{Heads: []store.Head{{Name: "a", Hash: "h", Threshold: 0.375}, {Name: "b", Threshold: 0.5}}}}).over(oneHead{})
	models := []store.Model{{Role: "small"}, {Role: "large"}}
	small, large := r.scorer(models, 0).(*recordedScorer), r.scorer(models, 1).(*recordedScorer)
	if len(r.heads()) != 0 {
		t.Errorf("used before it is asked: %v", r.heads())
	}
	if err := large.Check("b"); err == nil || !strings.Contains(err.Error(), `no score of the head "b", only of a`) {
		t.Error(err)
	}
	if x, ok := small.Threshold("b"); ok {
		t.Errorf("the threshold %v of a head without scores", x)
	}
	if x, ok := large.Threshold("a"); x != 0.375 || !ok {
		t.Errorf("threshold %v, %v", x, ok)
	}
	if used := r.heads(); len(used) != 1 || used[0].Hash != "h" {
		t.Errorf("used: %v", used)
	}
	if x, err := small.Score("a", &scripting.Row{}); x != 0.25 || err != nil {
		t.Error(x, err)
	}
	const want = "the small model's rows, this one is of the large"
	if _, err := large.Score("a", &scripting.Row{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if err := small.Reads("a", "large"); err == nil || !strings.Contains(err.Error(), want) || small.Reads("a", "small") != nil || small.Reads("a", "middle") == nil {
		t.Error(err)
	}
}
