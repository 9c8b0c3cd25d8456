package calibrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/pair"
	"tokenrouter/runtime/model"
)

// Score is what a rule compares with its threshold.
type Score struct {
	Name string
	// Small says that a high score speaks for the small model: the large one writes
	// where the score is below the threshold (CITER), and not where it is at or above
	// it (R2R).
	Small bool
	// Once says that the score is asked for at the first token of an answer alone,
	// which then has one writer.
	Once bool
	Of   func(s *pair.Step) (float64, error)
	Want pair.Want
}

// Signals lists the scores that need no head.
func Signals() []string { return []string{"entropy", "entropy_norm", "top1", "margin"} }

// Signal is the score of a routing signal.
func Signal(name string) (Score, bool) {
	of := map[string]func(s *pair.Step) float64{
		"entropy":      func(s *pair.Step) float64 { return float64(s.Signals.Entropy) },
		"entropy_norm": func(s *pair.Step) float64 { return float64(s.Signals.EntropyNorm) },
		"top1":         func(s *pair.Step) float64 { return float64(s.Signals.Top1) },
		"margin":       func(s *pair.Step) float64 { return float64(s.Signals.Top1 - s.Signals.Top2) },
	}[name]
	if of == nil {
		return Score{}, false
	}
	return Score{Name: name, Small: name == "top1" || name == "margin", Of: func(s *pair.Step) (float64, error) { return of(s), nil }}, true
}

// Head is the score of a head on rows of a model. It is for one goroutine.
func Head(h *head.Head, small *model.Model) Score {
	m := h.Manifest()
	var ws head.Workspace
	var in head.Input
	k := m.Spec.TopLogits()
	return Score{
		Name: m.Name, Small: m.Meaning == "small", Once: m.Label == string(dataset.Query), Want: pair.Want{Hidden: true, Logits: k > 0},
		Of: func(s *pair.Step) (float64, error) {
			in.Hidden = s.Hidden
			if m.Spec.Has("embedding") {
				in.Embedding, _ = small.Embedding(s.Token, in.Embedding) // it wrote the token
			}
			if k > 0 {
				in.Logits = pair.Largest(in.Logits, s.Logits, k)
			}
			g := s.Signals
			in.Signals = append(in.Signals[:0], g.Entropy, g.Top1, g.Top2, g.LogSumExp)
			return h.Score(&ws, &in)
		},
	}
}

// large says whether the large model writes under a threshold.
func (s *Score) large(score, threshold float64) bool {
	if s.Small {
		return score < threshold
	}
	return score >= threshold
}

// Rule is the comparison in words.
func (s *Score) Rule() string {
	rule := s.Name + " >= threshold"
	if s.Small {
		rule = s.Name + " < threshold"
	}
	if s.Once {
		rule += " at the first token"
	}
	return rule
}

// Routed is what came of tasks under a threshold.
type Routed struct {
	Large, Tokens []int // by task
	Right         []bool
	Scores        []float64 // of every candidate of the small model that was asked about, in no order
}

// Share is the large model's share of the tokens.
func (r *Routed) Share() float64 { return float64(sum(r.Large)) / float64(max(sum(r.Tokens), 1)) }

func sum(x []int) (n int) {
	for _, v := range x {
		n += v
	}
	return n
}

// Tasks are answers to write, and how they are judged.
type Tasks struct {
	Tasks []pair.Task
	At    int // at a time
	Right func(task int, output []int32) bool
}

// Under routes tasks under a threshold.
func (t *Tasks) Under(ctx context.Context, p *pair.Pair, s Score, threshold float64) (*Routed, error) {
	n := len(t.Tasks)
	out := &Routed{Large: make([]int, n), Tokens: make([]int, n), Right: make([]bool, n)}
	asked, large := make([]bool, n), make([]bool, n)
	err := p.Route(ctx, t.Tasks, t.At, s.Want, func(i int, step *pair.Step) (bool, error) {
		if s.Once && asked[i] {
			return large[i], nil
		}
		v, err := s.Of(step)
		if err == nil && v != v {
			err = fmt.Errorf("%s is no number", s.Name)
		}
		out.Scores = append(out.Scores, v)
		asked[i], large[i] = true, s.large(v, threshold)
		return large[i], err
	}, func(i int, a *pair.Answer) error {
		out.Large[i], out.Tokens[i] = a.Large(), len(a.Tokens)
		out.Right[i] = t.Right != nil && t.Right(i, a.Tokens)
		return nil
	})
	return out, err
}

// Unknown is the error for a name that is no signal.
func Unknown(name string) error {
	return fmt.Errorf("%s is no signal (%s)", name, strings.Join(slices.Sorted(slices.Values(Signals())), ", "))
}
