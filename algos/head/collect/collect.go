package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/pair"
)

// Problem is one to collect rows from.
type Problem struct {
	Prompt    []int32
	MaxTokens int
	// Right judges an answer. It is not asked for labels of mismatch.
	Right func(output []int32) bool
}

// Text says who writes the texts that rows are of.
type Text struct {
	Kind      string  // one of the kinds below
	Threshold float64 // of TextEntropy, in nats
}

// The kinds of texts. What is trained on the first sees only prefixes that the
// large model would have written; the others give what a router makes.
const (
	TextLarge   = "large"   // the large model's greedy text (R2R)
	TextRepair  = "repair"  // the small model's, but for tokens labelled 1
	TextEntropy = "entropy" // the small model's, but for positions of H >= Threshold
)

func (t Text) String() string {
	if t.Kind == TextEntropy {
		return fmt.Sprintf("%s:%v", t.Kind, t.Threshold)
	}
	return t.Kind
}

// Options say what is collected.
type Options struct {
	Label Label
	// Texts are taken by turns: problem n has that of n modulo their number.
	Texts     []Text
	TopLogits int // largest logits that a row keeps, at least one
	Embedding bool
	At        int // problems under way at a time
	// Progress is told of problems that are done and of rows so far.
	Progress func(problems, rows int)
}

// Label is dataset.Label.
type Label = dataset.Label

// Check says what is wrong with options.
func (o *Options) Check() error {
	switch {
	case !slices.Contains(dataset.Labels(), o.Label):
		return fmt.Errorf("there are no labels %q; there are %v", o.Label, dataset.Labels())
	case len(o.Texts) == 0 && o.Label != dataset.Query:
		return errors.New("nobody writes the texts; give large, repair or entropy:H")
	case o.TopLogits < 1:
		return fmt.Errorf("%d logits a row; give at least 1", o.TopLogits)
	}
	for _, t := range o.Texts {
		switch t.Kind {
		case TextLarge, TextEntropy:
		case TextRepair:
			if o.Label == dataset.Mismatch {
				return errors.New("a text that is repaired where labels say so, with labels of mismatch, is the large model's: give large")
			}
		default:
			return fmt.Errorf("there are no texts %q; there are %s, %s and %s:H", t.Kind, TextLarge, TextRepair, TextEntropy)
		}
	}
	return nil
}

// Run collects rows of problems. On a cancelled context it gives the context's
// error and no rows. Of the result's Meta the caller fills in what only it knows.
func Run(ctx context.Context, p *pair.Pair, problems []Problem, o Options) (*dataset.Rows, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	small := p.Model(pair.Small)
	if o.TopLogits > small.Config.Vocab {
		return nil, fmt.Errorf("%d logits a row, %s has %d", o.TopLogits, small.Name, small.Config.Vocab)
	}
	if o.Label == dataset.Query {
		return query(ctx, p, problems, &o)
	}
	c := &collector{p: p, o: &o, problems: problems, finished: make([]*dataset.Rows, len(problems))}
	defer c.free()
	for len(c.walks) > 0 || c.next < len(problems) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.round(); err != nil {
			return nil, err
		}
	}
	out := c.empty()
	for _, r := range c.finished {
		out.Append(r)
	}
	return out, nil
}

// collector has the problems under way.
type collector struct {
	p        *pair.Pair
	o        *Options
	problems []Problem
	next     int
	walks    []*walk
	finished []*dataset.Rows
	done     int
	rows     int

	// Of a round.
	ready []*walk
	texts []*pair.Text
	top   []float32
}

// empty is no rows, of the collector's shape.
func (c *collector) empty() *dataset.Rows { return emptyRows(c.p, c.o) }

func emptyRows(p *pair.Pair, o *Options) *dataset.Rows {
	small, large := p.Model(pair.Small), p.Model(pair.Large)
	texts := make([]string, len(o.Texts))
	for i, t := range o.Texts {
		texts[i] = t.String()
	}
	return &dataset.Rows{Meta: dataset.Meta{
		Text:   strings.Join(texts, ","),
		Models: map[string]string{"small": small.Name, "large": large.Name},
		Hashes: map[string]string{"small": small.Hash(), "large": large.Hash()},
		Hidden: small.Config.Hidden, Vocab: small.Config.Vocab, TopK: o.TopLogits, Embedded: o.Embedding, Label: o.Label,
	}}
}

func (c *collector) free() {
	for _, w := range c.walks {
		w.free(c.p)
	}
}

// round lets every text that waits for nothing go on by one token, and every
// rollout as well: one step of each model.
func (c *collector) round() error {
	for len(c.walks) < max(c.o.At, 1) && c.next < len(c.problems) {
		c.walks = append(c.walks, c.begin(c.next))
		c.next++
	}
	c.ready, c.texts = c.ready[:0], c.texts[:0]
	for _, w := range c.walks {
		if w.roll == nil {
			c.ready, c.texts = append(c.ready, w), append(c.texts, w.text)
		}
	}
	if err := c.p.Next(pair.Small, c.texts, pair.Want{Hidden: true, Logits: true}, func(i int, s *pair.Step) error {
		c.note(c.ready[i], s)
		return nil
	}); err != nil {
		return err
	}
	for _, w := range c.walks {
		if w.roll != nil {
			c.ready, c.texts = append(c.ready, w), append(c.texts, w.roll)
		}
	}
	if err := c.p.Next(pair.Large, c.texts, pair.Want{}, func(i int, s *pair.Step) error {
		if w := c.ready[i]; w.roll != nil {
			c.rolled(w, s.Token)
		} else {
			c.met(w, s.Token)
		}
		return nil
	}); err != nil {
		return err
	}
	left := c.walks[:0]
	for _, w := range c.walks {
		if !w.over {
			left = append(left, w)
			continue
		}
		w.free(c.p)
		c.finished[w.problem] = w.rows
		c.done++
		c.rows += w.rows.Len()
		if c.o.Progress != nil {
			c.o.Progress(c.done, c.rows)
		}
	}
	clear(c.walks[len(left):])
	c.walks = left
	return nil
}

// note writes down what the small model says of a text; labels follow.
func (c *collector) note(w *walk, s *pair.Step) {
	c.top = appendRow(w.rows, c.p, c.top, w.problem, len(w.text.Tokens), s)
}

func appendRow(r *dataset.Rows, p *pair.Pair, top []float32, problem, pos int, s *pair.Step) []float32 {
	r.Problem, r.Pos, r.Token = append(r.Problem, int32(problem)), append(r.Pos, int32(pos)), append(r.Token, s.Token)
	r.States = append(r.States, s.Hidden...)
	if r.Embedded {
		e, _ := p.Model(pair.Small).Embedding(s.Token, nil) // it wrote the token
		r.Embeddings = append(r.Embeddings, e...)
	}
	top = pair.Largest(top, s.Logits, r.TopK)
	r.Logits = append(r.Logits, top...)
	g := s.Signals
	r.Measures = append(r.Measures, g.Entropy, g.Top1, g.Top2, g.LogSumExp)
	return top
}
