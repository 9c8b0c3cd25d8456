package emulated

import (
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// Vocab is a vocabulary as far as a law needs it.
type Vocab struct {
	Rows   int           // of the logits
	Tokens []event.Token // that may be drawn
}

// Printable is the part of a vocabulary that makes good text whatever stands
// before: no special token, none of eos, no piece of a character, no control
// code. bytes gives the bytes of a token and whether it is special.
func Printable(rows int, bytes func(event.Token) (b []byte, special bool), eos []event.Token) Vocab {
	v := Vocab{Rows: rows}
	for id := range event.Token(rows) {
		b, special := bytes(id)
		if !special && len(b) > 0 && !slices.Contains(eos, id) && prints(b) {
			v.Tokens = append(v.Tokens, id)
		}
	}
	return v
}

func prints(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
		b = b[n:]
	}
	return true
}

// Law draws what models say. Signals come as whole rows of a measurement of the
// embedded family (law.csv), so entropy, probabilities and logsumexp fit one
// another and a router at its usual thresholds hands over a usual share; models
// between small and large share one law. Positions are drawn independently of
// one another: that real ones come in runs is not in it, nor that models agree
// about a token. Tokens are uniform.
type Law struct {
	seed   uint64
	vocab  Vocab
	logV   float64
	tables []table // by model
}

// NewLaw returns the law of a number of models under a seed.
func NewLaw(seed uint64, vocab Vocab, models int) (*Law, error) {
	measured, err := tables()
	if err != nil {
		return nil, err
	}
	switch {
	case models < 1:
		return nil, fmt.Errorf("a law of %d models; give at least 1", models)
	case len(vocab.Tokens) < topN:
		return nil, fmt.Errorf("the vocabulary has %d tokens that can be drawn, a row lists the %d most likely", len(vocab.Tokens), topN)
	case vocab.Rows < len(vocab.Tokens):
		return nil, fmt.Errorf("the vocabulary has %d rows and %d tokens that can be drawn", vocab.Rows, len(vocab.Tokens))
	}
	l := &Law{seed: seed, vocab: vocab, logV: math.Log(float64(vocab.Rows))}
	for m := range models {
		k := 1 // between small and large
		if m == 0 {
			k = 0
		} else if m == models-1 {
			k = 2
		}
		l.tables = append(l.tables, measured[k])
	}
	return l, nil
}

// Draws of a row's key, by number. One serves for two where 32 bits do.
const (
	drawHard  = iota // whether the position is as hard as for the small model, or else how hard
	drawPlace        // which of the likely tokens is sampled
	drawIDs          // and behind: two tokens each
)

// shared is the stream of a position, the same for all models.
const shared = rng.Law + 1

// Answer implements Tokens.
func (l *Law) Answer(model int, b *event.Batch, out []event.Output) ([]event.Output, error) {
	if model < 0 || model >= len(l.tables) {
		return out, fmt.Errorf("the law is of %d models, there is no model %d", len(l.tables), model)
	}
	slab := make([]event.TokenProb, topN*samples(b))
	for i := range b.Rows {
		row := &b.Rows[i]
		if !row.Sample {
			continue
		}
		key := rng.Key{Seed: l.seed, Req: uint64(row.Req), Pos: row.Start + len(row.Tokens), Model: model, Purpose: rng.Law}
		out = append(out, l.output(key, &row.Sampling, slab[:topN:topN]))
		slab = slab[topN:]
	}
	return out, nil
}

func (l *Law) output(key rng.Key, p *event.Sampling, top []event.TokenProb) event.Output {
	t := &l.tables[key.Model]
	s := t.at(hardness(t, key))
	entropy := min(float64(s.entropy), l.logV)
	o := event.Output{
		Entropy: float32(entropy), EntropyNorm: float32(entropy / l.logV),
		Top1: s.top1, Top2: s.top2, LogSumExp: s.logsumexp, TopK: top,
	}
	var used [topN + 1]uint32
	for k := 0; k < topN; k += 2 {
		draw := key.Uint64(drawIDs + k/2)
		top[k] = event.TokenProb{Token: l.token(uint32(draw>>32), k, &used), Logprob: s.logprob[k]}
		if k+1 < topN {
			top[k+1] = event.TokenProb{Token: l.token(uint32(draw), k+1, &used), Logprob: s.logprob[k+1]}
		}
	}
	if k := place(s, p, l.vocab.Rows, key); k < topN {
		o.Token = top[k].Token
	} else if len(l.vocab.Tokens) > topN {
		o.Token = l.token(uint32(key.Uint64(drawIDs+topN)), topN, &used)
	} else {
		o.Token = top[topN-1].Token
	}
	return o
}

// hardness is the quantile of a row's entropy.
func hardness(t *table, key rng.Key) float64 {
	const unit = 0x1p-32
	if t.tie < 1 {
		draw := key.Uint64(drawHard)
		if float64(uint32(draw))*unit >= t.tie {
			return float64(draw>>32) * unit
		}
	}
	return rng.Key{Seed: key.Seed, Req: key.Req, Pos: key.Pos, Purpose: shared}.Float64(0)
}

// token gives the k-th token of a row, another one than the k before: from a
// uniform place on to the next that is free, which leaves every token equally
// likely.
func (l *Law) token(draw uint32, k int, used *[topN + 1]uint32) event.Token {
	n := uint32(len(l.vocab.Tokens))
	i := uint32(uint64(draw) * uint64(n) >> 32)
	for slices.Contains(used[:k], i) {
		if i++; i == n {
			i = 0
		}
	}
	used[k] = i
	return l.vocab.Tokens[i]
}

// place is which of the most likely tokens is sampled, topN for one behind them.
// Of those behind only the sum of their probabilities is known: they count as
// equally likely.
func place(s *signals, p *event.Sampling, rows int, key rng.Key) int {
	if p.Temperature <= 0 || p.TopK == 1 {
		return 0
	}
	var weight [topN + 1]float64
	listed, rest := topN, 1.0
	heat := 1 / float64(p.Temperature)
	for i, lp := range s.logprob {
		weight[i] = math.Exp(float64(lp) * heat)
		rest -= math.Exp(float64(lp))
	}
	kept := rows
	if p.TopK > 0 {
		kept = min(rows, p.TopK)
		listed = min(topN, kept)
	}
	if kept > topN && rest > 0 {
		weight[topN] = float64(kept-topN) * math.Pow(rest/float64(rows-topN), heat)
		listed = topN + 1
	}
	total := 0.0
	for _, w := range weight[:listed] {
		total += w
	}
	if p.TopP > 0 && p.TopP < 1 {
		total, listed = cut(weight[:listed], total*float64(p.TopP))
	}
	x := key.Float64(drawPlace) * total
	for i, w := range weight[:listed] {
		if x < w {
			return i
		}
		x -= w
	}
	return listed - 1
}

// cut keeps the smallest set of tokens with the weight asked for. Those behind
// the listed ones are many, so of them a part is kept.
func cut(weight []float64, want float64) (total float64, listed int) {
	for i, w := range weight {
		total += w
		if total >= want {
			if i == topN {
				weight[i] -= total - want
				total = want
			}
			return total, i + 1
		}
	}
	return total, len(weight)
}
