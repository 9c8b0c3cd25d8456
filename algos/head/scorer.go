package head

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/scripting"
)

// Model is what a session runs in a role, as far as heads are concerned.
type Model struct {
	Hash   string // as model.Model.Hash gives it
	Hidden int    // width of its hidden states
}

// Scorer evaluates the heads of a library on what a subserver's runner has computed.
// It implements scripting.StepScorer, and belongs to one goroutine.
type Scorer struct {
	lib    *Library
	role   string
	models map[string]Model
	row    runner.Features
	warn   func(text string)

	ready map[string]*Head // that are of use here
	ws    Workspace
	in    [together]Input

	rows  []scripting.StepRow // of the step that is routed
	ahead []ahead
	alone int // steps whose rows are evaluated one by one
}

// A head that does not stay in a core's cache is evaluated for several rows of a
// step at a time, as its weights are then read once for all of them: four take 1.3 to
// 2 times as long as one. A router that does not ask about most of them is not looked
// ahead of for a while.
const (
	together = 4
	large    = 1 << 20 // bytes
	lonely   = 32      // steps
)

// ahead is a score that was evaluated with another row's.
type ahead struct {
	head  *Head
	row   *event.Output
	score float64
	asked bool
}

// NewScorer makes the scorer of the subserver of a role, among the models of the
// session. Features are those of its runner; warn, which may be nil, is told once
// of every head that only widths tie to a model.
func NewScorer(l *Library, role string, models map[string]Model, f runner.Features, warn func(string)) *Scorer {
	return &Scorer{lib: l, role: role, models: models, row: f, warn: warn, ready: map[string]*Head{}}
}

var _ scripting.StepScorer = (*Scorer)(nil)

// Check says why a head is of no use in this session: it is not known, is damaged,
// or was made for other models.
func (s *Scorer) Check(name string) error {
	h, err := s.lib.Fresh(name)
	if err != nil {
		return err
	}
	return s.check(h)
}

func (s *Scorer) check(h *Head) error {
	m := h.Manifest()
	roles := slices.Sorted(maps.Keys(s.models))
	if _, ok := s.models[m.Reads()]; !ok {
		return fmt.Errorf("the head %s reads rows of %q; the models of this session are %s", m.Name, m.Reads(), strings.Join(roles, ", "))
	}
	for _, role := range roles {
		if err := h.Fits(role, s.models[role].Hash, s.models[role].Hidden); err != nil {
			return err
		}
	}
	if h.Unproven() && s.warn != nil && s.lib.warnOnce(m.Name) {
		s.warn(fmt.Sprintf("the manifest of the head %s names no models: that it belongs to this one, only its width of %d says", m.Name, m.Spec.Hidden))
	}
	return nil
}

// Score evaluates a head on the row that is routed.
func (s *Scorer) Score(name string, row *scripting.Row) (float64, error) {
	h := s.ready[name]
	if h == nil {
		var err error
		if h, err = s.lib.Get(name); err != nil {
			return 0, err
		}
		if err = s.check(h); err != nil {
			return 0, err
		}
		if err = h.reads(s.role); err != nil {
			return 0, err
		}
		s.ready[name] = h
	}
	if h.bytes >= large && len(s.rows) > 1 && s.alone == 0 {
		return s.scoreAhead(h, row)
	}
	if err := s.gather(&s.in[0], h, row.Req, row.Output); err != nil {
		return 0, err
	}
	return h.Score(&s.ws, &s.in[0])
}

// Step implements scripting.StepScorer.
func (s *Scorer) Step(rows []scripting.StepRow) {
	s.rows = append(s.rows[:0], rows...)
	s.alone = max(0, s.alone-1)
	unasked := 0
	for i := range s.ahead {
		if !s.ahead[i].asked {
			unasked++
		}
	}
	if 2*unasked > len(s.ahead) {
		s.alone = lonely
	}
	clear(s.ahead)
	s.ahead = s.ahead[:0]
}

// scoreAhead is Score for a row and those that are routed after it.
func (s *Scorer) scoreAhead(h *Head, row *scripting.Row) (float64, error) {
	for i := range s.ahead {
		if a := &s.ahead[i]; a.head == h && a.row == row.Output {
			a.asked = true
			if a.score != a.score {
				return 0, h.noNumber()
			}
			return a.score, nil
		}
	}
	rest := []scripting.StepRow{{Req: row.Req, Output: row.Output}} // a row that nobody told of
	if i := slices.IndexFunc(s.rows, func(r scripting.StepRow) bool { return r.Output == row.Output }); i >= 0 {
		rest = s.rows[i:min(i+together, len(s.rows))]
	}
	n := 0
	for n < len(rest) {
		if err := s.gather(&s.in[n], h, rest[n].Req, rest[n].Output); err != nil {
			if n == 0 {
				return 0, err
			}
			break // it is said when that row is asked about
		}
		n++
	}
	scores, err := h.Scores(&s.ws, s.in[:n])
	if err != nil {
		return 0, err
	}
	for i, x := range scores {
		s.ahead = append(s.ahead, ahead{h, rest[i].Output, x, i == 0})
	}
	if scores[0] != scores[0] {
		return 0, h.noNumber()
	}
	return scores[0], nil
}

// Threshold is what a head that is of use in this session was calibrated for, false
// where its manifest says nothing.
func (s *Scorer) Threshold(name string) (threshold float64, ok bool) {
	h, err := s.lib.Fresh(name)
	if err != nil || s.check(h) != nil {
		return 0, false
	}
	t := h.Manifest().Threshold
	return t, t > 0
}

// Reads says that a head is asked about rows of a role that it does not read.
func (s *Scorer) Reads(name, role string) error {
	h, err := s.lib.Get(name)
	if err != nil {
		return err
	}
	return h.reads(role)
}

func (h *Head) reads(role string) error {
	if reads := h.m.Reads(); reads != role {
		return fmt.Errorf("the head reads rows of the %s model, this one is of the %s; ask only where r.model == %q", reads, role, reads)
	}
	return nil
}

// gather reads what a head wants of a request's newest row.
func (s *Scorer) gather(in *Input, h *Head, id event.ReqID, o *event.Output) error {
	for _, r := range h.pieces {
		ok := true
		switch r.name {
		case "hidden":
			in.Hidden, ok = s.row.Hidden(id, in.Hidden)
		case "embedding":
			in.Embedding, ok = s.row.Embedding(o.Token, in.Embedding)
		case "logits":
			in.Logits, ok = s.row.TopLogits(id, r.n, in.Logits)
		case "signals":
			in.Signals = AppendSignals(in.Signals[:0], o)
		}
		if !ok {
			return scripting.ErrNoModel
		}
	}
	return nil
}

// AppendSignals appends the values of the feature signals.
func AppendSignals(dst []float32, o *event.Output) []float32 {
	return append(dst, o.Entropy, o.Top1, o.Top2, o.LogSumExp)
}
