package emulated

import (
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
)

// byName is a router that asks the head of its own name.
func byName(router string) string { return strings.TrimPrefix(router, "none") }

// scored lets a router of a name have scored the last step's rows that have a score
// above 0.
func (s *story) scored(router string, scores ...float32) {
	step := s.recs[len(s.recs)-1].Event.Step
	for i, x := range scores {
		step.Rows[i].Router, step.Rows[i].Score, step.Rows[i].Scored = router, x, x > 0
	}
}

// asked is a session in which the head a was asked about some rows of the small
// model, b about one of the large model's, and one router's scores are nobody's.
func asked() *story {
	s := &story{}
	s.arrive(1)
	s.step(0, 1, 2, 10, 11, 12, eos)
	s.scored("a", 0.25, 0, 0.5, 0.875)
	s.step(1, 1, 4, 40, 41)
	s.scored("b", 0.125)
	s.arrive(2)
	s.step(0, 2, 2, 20, 21, eos)
	s.scored("a", 0.75, 0, 0.0625)
	s.step(0, 2, 3, 22, eos) // asked again: the last counts
	s.scored("none", 0.9, 0)
	return s
}

func scoreOf(t *testing.T, r *Recording, model int, head string, id event.ReqID, pos int) float64 {
	t.Helper()
	x, err := r.Score(model, head, id, pos)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Recorded scores come back. What was not asked has a score of the same kind of row,
// the same one every time, and counts as missing.
func TestScores(t *testing.T) {
	r := record(t, asked())
	if !slices.Equal(r.Heads(), []string{"a", "b"}) || r.Scores(0, "a") != 4 || r.Scores(1, "a") != 0 || r.Scores(1, "b") != 1 || r.Scores(0, "c") != 0 {
		t.Fatalf("%q: %d, %d, %d, %d", r.Heads(), r.Scores(0, "a"), r.Scores(1, "a"), r.Scores(1, "b"), r.Scores(0, "c"))
	}
	for _, c := range []struct {
		req  event.ReqID
		pos  int
		want float64
	}{{1, 2, 0.25}, {1, 4, 0.5}, {1, 5, 0.875}, {2, 2, 0.75}} {
		if got := scoreOf(t, r, 0, "a", c.req, c.pos); got != c.want {
			t.Errorf("request %d at %d: %v, want %v", c.req, c.pos, got, c.want)
		}
	}
	if got := scoreOf(t, r, 1, "b", 1, 4); got != 0.125 || r.Missing() != 0 {
		t.Errorf("%v, %d missing", got, r.Missing())
	}
	n := uint64(0)
	for range 2 { // request 2 has a score of nobody's at 3, and none at its end
		for pos, want := range map[int][]float64{3: {0.25, 0.5, 0.75}, 4: {0.875}} {
			got := scoreOf(t, r, 0, "a", 2, pos)
			if n++; !slices.Contains(want, got) || got != scoreOf(t, r, 0, "a", 2, pos) {
				t.Errorf("at %d: %v", pos, got)
			}
			n++
		}
	}
	if scoreOf(t, r, 1, "b", 1, 5); r.Missing() != n+1 {
		t.Errorf("%d missing, want %d", r.Missing(), n+1)
	}
}

// An answer that is drawn brings the score of its row, and counts once.
func TestScoresOfDrawnAnswers(t *testing.T) {
	r := record(t, asked())
	of := map[event.Token][]float64{10: {0.25}, 12: {0.5}, 20: {0.75}, 11: {0.25, 0.5, 0.75}, 22: {0.25, 0.5, 0.75}}
	seen := map[event.Token]bool{}
	drawn := map[float64]bool{}
	for pos := range 100 {
		o := ask(t, r, 0, decode(7, pos, event.Sampling{}))[0]
		x := scoreOf(t, r, 0, "a", 7, pos)
		if !slices.Contains(of[o.Token], x) {
			t.Errorf("at %d: token %d with the score %v", pos, o.Token, x)
		}
		if seen[o.Token] = true; o.Token == 11 {
			drawn[x] = true
		}
	}
	if len(seen) != len(of) || len(drawn) != 3 || r.Missing() != 100 {
		t.Errorf("%d of %d answers, %d of 3 scores, %d missing", len(seen), len(of), len(drawn), r.Missing())
	}
}

// A request that comes again has the scores of the recorded one.
func TestScoresAgain(t *testing.T) {
	r := record(t, asked())
	o, err := NewOrder([]event.ReqID{1, 2}, 9)
	if err != nil {
		t.Fatal(err)
	}
	a := &Again{Recording: r, Order: o}
	for i := range 6 {
		want := []float64{0.25, 0.75}[o.At(i)]
		if got, err := a.Score(0, "a", event.ReqID(i+1), 2); err != nil || got != want {
			t.Errorf("request %d: %v (%v), want %v", i+1, got, err, want)
		}
	}
	if _, err := a.Score(0, "a", 0, 2); err == nil || r.Missing() != 0 {
		t.Errorf("request 0: %v; %d missing", err, r.Missing())
	}
}

func TestScoresRefused(t *testing.T) {
	r := record(t, asked())
	for _, c := range []struct {
		model int
		head  string
	}{{1, "a"}, {0, "b"}, {0, "c"}, {2, "a"}, {-1, "a"}} {
		if _, err := r.Score(c.model, c.head, 1, 2); err == nil || !strings.Contains(err.Error(), "no score of the head") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	s, err := NewRecording(asked().all(), 2, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Score(0, "a", 1, 2); err == nil || len(s.Heads()) != 0 {
		t.Errorf("scores that nobody named: %q, %v", s.Heads(), err)
	}
}
