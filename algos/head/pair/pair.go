package pair

import (
	"fmt"
	"slices"

	"tokenrouter/kernels"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
)

// Pair is two models with one vocabulary. It belongs to one goroutine.
type Pair struct {
	EOS   []int32 // tokens that end an answer, of whichever model
	Vocab int     // tokens below it may be written

	sides [2]side
}

// side is one model at work.
type side struct {
	model *model.Model
	pool  *model.Pool
	ws    model.Workspace
	users []int32 // of each block: texts that have it
	free  []int32
	rows  []model.Row
}

// maxBlocks bounds the KV of a model, in blocks; memory is taken as they are used.
const maxBlocks = 1 << 20

// splitFrom is the number of weights from which a model is worth more than one
// core.
const splitFrom = 1 << 19

// New makes a pair that computes on cores; nil is the calling goroutine alone.
func New(small, large *model.Model, cores *team.Cores) (*Pair, error) {
	if a, b := small.Tokenizer.Hash(), large.Tokenizer.Hash(); a != b {
		return nil, fmt.Errorf("%s and %s have different vocabularies (%.12s and %.12s): no token of one means the same to the other", small.Name, large.Name, a, b)
	}
	p := &Pair{Vocab: min(small.Config.Vocab, large.Config.Vocab, small.Tokenizer.Size())}
	for i, m := range []*model.Model{small, large} {
		p.sides[i].model, p.sides[i].pool = m, m.NewPool(maxBlocks)
		if cores != nil && m.Params() >= splitFrom {
			p.sides[i].ws.Seat = cores.Seat()
		}
		p.EOS = append(p.EOS, m.EOS()...)
	}
	slices.Sort(p.EOS)
	p.EOS = slices.Compact(p.EOS)
	return p, nil
}

// Close gives the memory of the KV back; the models stay.
func (p *Pair) Close() error {
	err := p.sides[Small].pool.Close()
	if e := p.sides[Large].pool.Close(); err == nil {
		err = e
	}
	return err
}

// Model is the model of a side.
func (p *Pair) Model(s Side) *model.Model { return p.sides[s].model }

// Ends says that a token ends an answer.
func (p *Pair) Ends(token int32) bool { return slices.Contains(p.EOS, token) }

// Want is what is asked of a step beside the candidate and its signals.
type Want struct{ Hidden, Logits bool }

// Step is what a model says of the next position of a text. What it refers to
// holds until the next step of that model.
type Step struct {
	Token   int32 // the most likely one
	Signals *kernels.Signals
	Hidden  []float32 // of the last position, after the final norm
	Logits  []float32 // of all rows of the vocabulary
}

// Tokens that are fed in one step at most, unless a single text has more.
const stepTokens = 512

// Next asks a model for the candidate behind each text and calls each with what it
// says, in order. What the model has not seen of a text is fed first.
func (p *Pair) Next(side Side, texts []*Text, want Want, each func(i int, s *Step) error) error {
	s := &p.sides[side]
	for from := 0; from < len(texts); {
		to, tokens := from, 0
		s.rows = s.rows[:0]
		for ; to < len(texts); to++ {
			t := texts[to]
			c := &t.kv[side]
			start := min(c.fed, len(t.Tokens)-1) // what was seen to its end is asked again
			if tokens += len(t.Tokens) - start; tokens > stepTokens && to > from {
				break
			}
			s.reserve(c, len(t.Tokens))
			s.rows = append(s.rows, model.Row{
				Blocks: c.blocks, Start: start, Tokens: t.Tokens[start:], Signals: true, Hidden: want.Hidden, Logits: want.Logits,
			})
		}
		if err := s.model.Forward(&s.ws, s.pool, s.rows); err != nil {
			return fmt.Errorf("%s: %w", s.model.Name, err)
		}
		for i := range s.rows {
			texts[from+i].kv[side].fed = len(texts[from+i].Tokens)
			out, err := p.step(s, i)
			if err == nil {
				err = each(from+i, out)
			}
			if err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// step is what row i gave.
func (p *Pair) step(s *side, i int) (*Step, error) {
	signals, err := s.ws.Signals(i)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.model.Name, err)
	}
	out := &Step{Token: -1, Signals: signals, Hidden: s.ws.Hidden(i), Logits: s.ws.Logits(i)}
	for _, t := range signals.TopK {
		if int(t.ID) < p.Vocab {
			out.Token = t.ID
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: the %d most likely tokens are no text (the vocabulary has %d tokens): its weights and its tokenizer do not go together", s.model.Name, len(signals.TopK), p.Vocab)
}

// Largest writes the k largest logits, falling, to dst: what a head reads as
// logits:K.
func Largest(dst, logits []float32, k int) []float32 {
	dst = dst[:0]
	for _, l := range logits {
		n := len(dst)
		if n == k && l <= dst[n-1] {
			continue
		}
		if n < k {
			dst = append(dst, l)
		} else {
			n--
		}
		for ; n > 0 && dst[n-1] < l; n-- {
			dst[n] = dst[n-1]
		}
		dst[n] = l
	}
	return dst
}
