package head_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/algos/head"
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

func save(t testing.TB, dir, name string, s head.Spec, models map[string]string) *head.Head {
	t.Helper()
	m := manifest(s)
	m.Models = models
	h, err := head.New(m, made(&s, uint64(len(name))))
	if err == nil {
		err = h.Save(filepath.Join(dir, name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A head is loaded once; one that was damaged is tried again when a person asks for
// it, and one that has changed is not taken for the one in use.
func TestLibrary(t *testing.T) {
	dir := t.TempDir()
	lib := head.NewLibrary(dir, head.Options{})
	if _, err := lib.Get("mine"); err == nil || !strings.Contains(err.Error(), `there is no head "mine"`) {
		t.Error(err)
	}
	save(t, dir, "mine", specs[0], nil)
	if _, err := lib.Get("mine"); err == nil {
		t.Error("an error is not remembered")
	}
	h, err := lib.Fresh("mine")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := lib.Fresh("mine"); err != nil || again != h {
		t.Errorf("loaded twice (%v)", err)
	}
	if names := lib.Names(); !slices.Contains(names, "mine") {
		t.Errorf("the heads are %v", names)
	}
	if m, shipped, err := lib.Manifest("mine"); err != nil || shipped || m.Hash != h.Hash() {
		t.Errorf("%+v %v %v", m, shipped, err)
	}
	if used := lib.Used(); len(used) != 1 || used[0] != h {
		t.Errorf("used: %v", used)
	}
	save(t, dir, "mine", specs[1], nil)
	if err := os.Chtimes(filepath.Join(dir, "mine.json"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := lib.Fresh("mine"); err == nil || !strings.Contains(err.Error(), "have changed since it was loaded") {
		t.Error(err)
	}
	if still, err := lib.Get("mine"); err != nil || still != h {
		t.Errorf("what is in use has changed (%v)", err)
	}
	for _, name := range []string{"", "../query", "a/b", "q\x00", ".query", "a b", strings.Repeat("x", 65)} {
		if _, err := lib.Get(name); err == nil || !strings.Contains(err.Error(), "is no name of a head") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What ships can be used as it is.
func TestShippedHeads(t *testing.T) {
	lib := head.NewLibrary(t.TempDir(), head.Options{})
	for _, name := range lib.Names() {
		h, err := lib.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, shipped, err := lib.Manifest(name); !shipped || err != nil || h.Unproven() || h.Manifest().Data == "" {
			t.Errorf("%s: %+v (%v)", name, h.Manifest(), err)
		}
		if m := h.Manifest(); m.Threshold == 0 || m.Share == 0 || m.HeldOut == 0 || m.Label == "" {
			t.Errorf("%s: threshold %v for a share of %v, labels %q, held out %v", name, m.Threshold, m.Share, m.Label, m.HeldOut)
		}
	}
}

// A threshold is known of a head that is of use here and was calibrated, of no other.
func TestThreshold(t *testing.T) {
	dir := t.TempDir()
	hash := strings.Repeat("a", 64)
	plain := save(t, dir, "plain", specs[0], map[string]string{"small": hash})
	seed := func(n uint64) *uint64 { return &n }
	tuned := plain.WithThreshold(0.25, 0.1, seed(3)).WithThreshold(0.375, 0.2, seed(4))
	if err := tuned.Save(filepath.Join(dir, "tuned")); err != nil {
		t.Fatal(err)
	}
	m := tuned.Manifest()
	if want := append(slices.Clone(plain.Manifest().Seeds), head.Seed{For: "threshold", Seed: 4}); !slices.Equal(m.Seeds, want) || m.Share != 0.2 {
		t.Errorf("%+v, want the seeds %v", m, want)
	}
	if plain.Manifest().Threshold == 0.375 {
		t.Error("the head that it was made of has changed")
	}
	lib := head.NewLibrary(dir, head.Options{})
	for _, c := range []struct {
		name, hash string
		want       float64
		ok         bool
	}{
		{"tuned", hash, 0.375, true}, {"plain", hash, 0, false}, {"nobody", hash, 0, false}, {"tuned", strings.Repeat("b", 64), 0, false},
	} {
		s := head.NewScorer(lib, "small", map[string]head.Model{"small": {Hash: c.hash, Hidden: specs[0].Hidden}}, &fakeRow{}, nil)
		if got, ok := s.Threshold(c.name); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %v %v, want %v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// Many may ask for a head at the same time: it is loaded once.
func TestLibraryIsShared(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "h", specs[4], nil)
	lib := head.NewLibrary(dir, head.Options{})
	synctest.Test(t, func(t *testing.T) {
		got := make([]*head.Head, 8)
		for i := range got {
			go func() { got[i], _ = lib.Fresh("h") }()
		}
		synctest.Wait()
		for _, h := range got {
			if h == nil || h != got[0] {
				t.Fatalf("%v", got)
			}
		}
	})
}

// fakeRow is a runner's newest row.
type fakeRow struct{ hidden, logits, embedding []float32 }

func (f *fakeRow) Hidden(_ event.ReqID, dst []float32) ([]float32, bool) {
	return append(dst[:0], f.hidden...), f.hidden != nil
}

func (f *fakeRow) TopLogits(_ event.ReqID, k int, dst []float32) ([]float32, bool) {
	return append(dst[:0], f.logits[:min(k, len(f.logits))]...), true
}

func (f *fakeRow) Embedding(_ event.Token, dst []float32) ([]float32, bool) {
	return append(dst[:0], f.embedding...), true
}

// A scorer reads the row's features, says what it lacks, and warns once of a head
// that nothing but its width ties to the model.
func TestScorer(t *testing.T) {
	dir := t.TempDir()
	s := head.Spec{Kind: "mlp", Features: []string{"signals", "logits:3", "hidden", "embedding"}, Hidden: 4, Widths: []int{5}}
	small, large := strings.Repeat("a", 64), strings.Repeat("b", 64)
	h := save(t, dir, "free", s, map[string]string{})
	save(t, dir, "tied", s, map[string]string{"small": small, "large": large})
	save(t, dir, "rival", s, map[string]string{"small": small, "large": strings.Repeat("c", 64)})
	wide := s
	wide.Hidden = 8
	save(t, dir, "wide", wide, map[string]string{})
	lib := head.NewLibrary(dir, head.Options{})
	models := map[string]head.Model{"small": {Hash: small, Hidden: 4}, "large": {Hash: large, Hidden: 99}}
	row := &fakeRow{hidden: []float32{1, 2, 3, 4}, logits: []float32{9, 8, 7, 6}, embedding: []float32{0.1, 0.2, 0.3, 0.4}}
	var warned []string
	sc := head.NewScorer(lib, "small", models, row, func(text string) { warned = append(warned, text) })
	out := &event.Output{Entropy: 1, Top1: 0.5, Top2: 0.25, LogSumExp: 10}
	got, err := sc.Score("free", &scripting.Row{Output: out})
	want, _ := h.Score(&head.Workspace{}, &head.Input{Hidden: row.hidden, Logits: row.logits[:3], Embedding: row.embedding, Signals: []float32{1, 0.5, 0.25, 10}})
	if err != nil || got != want {
		t.Errorf("%v, want %v (%v)", got, want, err)
	}
	for name, want := range map[string]string{
		"free": "", "tied": "",
		"rival": "was made for another large model: its hash is cccccccccccc, that of the model here bbbbbbbbbbbb",
		"wide":  "hidden states of 8 values, those of the small model have 4",
		"tide":  `there is no head "tide"; did you mean "tied"?`,
	} {
		if err := sc.Check(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "the head free names no models") {
		t.Errorf("warned of %q", warned)
	}
	other := head.NewScorer(lib, "large", models, row, nil)
	if err := other.Check("tied"); err != nil {
		t.Error(err)
	}
	if _, err := other.Score("tied", &scripting.Row{Output: out}); err == nil || !strings.Contains(err.Error(), `ask only where r.model == "small"`) {
		t.Error(err)
	}
	row.hidden = nil
	if _, err := sc.Score("free", &scripting.Row{Output: out}); err == nil || !strings.Contains(err.Error(), scripting.ErrNoModel.Error()) {
		t.Error(err)
	}
}

// idRow gives every request features of its own and notes who is asked about; those
// of request 9 are gone.
type idRow struct{ asked []event.ReqID }

func (r *idRow) Hidden(id event.ReqID, dst []float32) ([]float32, bool) {
	r.asked = append(r.asked, id)
	x := float32(id)
	return append(dst[:0], x, -x, 1/x, 1), id != 9
}

func (r *idRow) TopLogits(event.ReqID, int, []float32) ([]float32, bool) { return nil, false }

func (r *idRow) Embedding(event.Token, []float32) ([]float32, bool) { return nil, false }

// Rows of a step are evaluated together by a large head, whichever of them the
// router asks about; each score is that of the row alone.
func TestRowsOfAStepTogether(t *testing.T) {
	dir := t.TempDir()
	s := head.Spec{Kind: "mlp", Features: []string{"hidden"}, Hidden: 4, Widths: []int{4096, 80}}
	h := save(t, dir, "h", s, map[string]string{})
	row := &idRow{}
	sc := head.NewScorer(head.NewLibrary(dir, head.Options{}), "small", map[string]head.Model{"small": {Hidden: 4}}, row, nil)
	want := func(id event.ReqID) float64 {
		in := head.Input{Hidden: []float32{float32(id), -float32(id), 1 / float32(id), 1}}
		x, err := h.Score(&head.Workspace{}, &in)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range []struct {
		step, ask, evaluated []event.ReqID
	}{
		{[]event.ReqID{1, 2, 3}, []event.ReqID{1, 2, 3}, []event.ReqID{1, 2, 3}},
		{[]event.ReqID{1, 2, 3, 4}, []event.ReqID{2, 4, 4, 3, 1}, []event.ReqID{2, 3, 4, 1, 2, 3, 4}},
		{[]event.ReqID{5}, []event.ReqID{5}, []event.ReqID{5}},
		{[]event.ReqID{8, 7, 9, 6}, []event.ReqID{8, 7, 6}, []event.ReqID{8, 7, 9, 6}},
		{[]event.ReqID{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, []event.ReqID{11, 12, 14, 18, 19}, []event.ReqID{11, 12, 13, 14, 18, 19, 20}},
		{[]event.ReqID{1, 2}, []event.ReqID{3}, []event.ReqID{3}}, // a row that nobody told of
	} {
		row.asked = nil
		outs := map[event.ReqID]*event.Output{}
		var step []scripting.StepRow
		for _, id := range c.step {
			outs[id] = &event.Output{}
			step = append(step, scripting.StepRow{Req: id, Output: outs[id]})
		}
		sc.Step(step)
		for _, id := range c.ask {
			if outs[id] == nil {
				outs[id] = &event.Output{}
			}
			if got, err := sc.Score("h", &scripting.Row{Req: id, Output: outs[id]}); err != nil || got != want(id) {
				t.Errorf("step %v, request %d: %v, alone %v (%v)", c.step, id, got, want(id), err)
			}
		}
		if !slices.Equal(row.asked, c.evaluated) {
			t.Errorf("step %v, asked %v: evaluated %v, want %v", c.step, c.ask, row.asked, c.evaluated)
		}
	}
	// Who asks about one row of many gets it evaluated alone, but now and then.
	evaluated := 0
	for range 100 {
		row.asked = nil
		o := &event.Output{}
		sc.Step([]scripting.StepRow{{Req: 1, Output: o}, {Req: 2}, {Req: 3}, {Req: 4}})
		if got, err := sc.Score("h", &scripting.Row{Req: 1, Output: o}); err != nil || got != want(1) {
			t.Errorf("%v (%v)", got, err)
		}
		evaluated += len(row.asked)
	}
	if evaluated > 120 {
		t.Errorf("%d rows were evaluated for 100 scores", evaluated)
	}
	gone := &event.Output{}
	sc.Step([]scripting.StepRow{{Req: 9, Output: gone}, {Req: 1, Output: &event.Output{}}})
	if _, err := sc.Score("h", &scripting.Row{Req: 9, Output: gone}); err == nil || !strings.Contains(err.Error(), scripting.ErrNoModel.Error()) {
		t.Error(err)
	}
}
