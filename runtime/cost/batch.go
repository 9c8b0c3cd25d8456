package cost

import "tokenrouter/runtime/event"

// Batch is what a step's time may depend on: counts and sums over its rows, each
// with p prefill tokens, d = 0 or 1 decode tokens and c positions of context
// before them.
type Batch struct {
	Decode  int // D: rows that decode
	Prefill int // P: tokens of prompts, and what resumed rows feed beyond one
	Rows    int

	DecodeCtx   float64 // sum of c x d
	PrefillCtx  float64 // sum of p x c
	PrefillSq   float64 // sum of p^2
	Ctx         float64 // sum of c + p + d, the context with the new tokens
	CtxSq       float64 // sum of its square
	PrefillTri  float64 // sum of p (p+1) / 2
	LongestRow  int     // most tokens of a row
	LongestSeen int     // largest context with the new tokens
}

// Of takes the sums over a batch.
func Of(b *event.Batch) (s Batch) {
	for i := range b.Rows {
		row := &b.Rows[i]
		s.Add(len(row.Tokens), row.Start, !Decodes(row))
	}
	return s
}

// Decodes says whether a row has a decode token: it samples, behind KV of its
// request that its subserver held before. The last part of a prefill is counted
// so too, as nothing in the row tells it from a request that is back; the parts
// before it sample nothing and are prefill from end to end.
func Decodes(row *event.Row) bool { return row.Sample && !row.Prefill }

// Add counts a row that feeds n tokens behind start positions of context.
// prefill says that none of them is a decode token.
func (s *Batch) Add(n, start int, prefill bool) {
	p, d := n, 0
	if !prefill {
		p, d = n-1, 1
	}
	s.Rows++
	s.Decode += d
	s.Prefill += p
	c, pf := float64(start), float64(p)
	end := c + pf + float64(d)
	s.DecodeCtx += c * float64(d)
	s.PrefillCtx += pf * c
	s.PrefillSq += pf * pf
	s.Ctx += end
	s.CtxSq += end * end
	s.PrefillTri += pf * (pf + 1) / 2
	s.LongestRow = max(s.LongestRow, n)
	s.LongestSeen = max(s.LongestSeen, start+n)
}

// Decoding is a batch of rows that decode behind ctx positions each.
func Decoding(rows, ctx int) (s Batch) {
	for range rows {
		s.Add(1, ctx, false)
	}
	return s
}
