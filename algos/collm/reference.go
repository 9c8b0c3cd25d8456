package collm

import (
	"math"

	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
)

// Reference runs a request over two models, strategy defer with one token a call:
// score gives the probability of deferring at the small model's candidate. With
// 1 minus the largest probability for score it is the reference of no_weights.lua.
func Reference(run reference.Run, threshold float64, score reference.Score) reference.Result {
	return reference.Rewrite(run, func(o event.Output) bool { return score(reference.Small, o) > threshold })
}

// DraftReference is strategy defer with k tokens a call: the small model drafts k
// tokens, fewer where the answer ends; from the first of them that is over the
// threshold on the draft is cut, and the large model writes that position.
func DraftReference(run reference.Run, threshold float64, k int, score reference.Score) reference.Result {
	w := run.Begin()
	for {
		over := -1
		var o event.Output
		for n := 1; ; n++ {
			o = w.Next(reference.Small)
			if over < 0 && score(reference.Small, o) > threshold {
				over = w.Pos()
			}
			if n == k || w.Last(o) {
				break
			}
			w.Commit(reference.Small, o)
		}
		writer := reference.Small
		if over >= 0 {
			w.Truncate(reference.Small, o, over)
			writer, o = reference.Large, w.Next(reference.Large)
		}
		if !w.Commit(writer, o) {
			return w.Result
		}
	}
}

// ComposeReference is strategy compose: where the small model defers, both models
// make a candidate and neither is written as such, but the token of Compose is,
// in the small model's name.
func ComposeReference(run reference.Run, threshold float64, score reference.Score) reference.Result {
	w := run.Begin()
	for {
		base := w.Next(reference.Small)
		d := score(reference.Small, base)
		t := base.Token
		if d > threshold {
			w.Drop(reference.Small, base)
			ref := w.Next(reference.Large)
			w.Drop(reference.Large, ref)
			t = Compose(d, base.TopK, ref.TopK)
		}
		if !w.Append(reference.Small, t) {
			return w.Result
		}
	}
}

// Compose is the most likely token of the mixture (1-d)*base + d*ref. A token that
// a list lacks counts as improbable there; of equals the first wins, the base
// model's list before the other's.
func Compose(d float64, base, ref []event.TokenProb) event.Token {
	best, most := event.Token(-1), math.Inf(-1)
	try := func(t event.Token) {
		p := 0.0
		for _, b := range base {
			if b.Token == t {
				p += (1 - d) * math.Exp(float64(b.Logprob))
			}
		}
		for _, r := range ref {
			if r.Token == t {
				p += float64(d * math.Exp(float64(r.Logprob))) // rounded as in Lua, not fused
			}
		}
		if p > most {
			best, most = t, p
		}
	}
	for _, b := range base {
		try(b.Token)
	}
	for _, r := range ref {
		try(r.Token)
	}
	return best
}

// Rule is one decision of the defer strategy: where the request goes after a step
// of model self with that probability of deferring, and whether its candidate is
// kept.
func Rule(d float64, self event.Peer, threshold float64) (event.Peer, event.Action) {
	if self == reference.Small && d > threshold {
		return reference.Large, event.Drop
	}
	return reference.Small, event.Keep
}

// Draft is what a request carries between decisions of draft.lua.
type Draft struct {
	N    int // candidates of this draft so far
	Over int // first position over the threshold, 0 none
}

// DraftRule is one decision of draft.lua after a step of model self at position
// pos: where the request goes, what happens to its candidate, and the position
// that a truncation names. last says that the candidate would end the answer.
func (s *Draft) DraftRule(d float64, self event.Peer, pos int, last bool, threshold float64, k int) (event.Peer, event.Action, int) {
	if self != reference.Small {
		return reference.Small, event.Keep, 0
	}
	s.N++
	if s.Over == 0 && d > threshold {
		s.Over = pos
	}
	if s.N < k && !last {
		return reference.Small, event.Keep, 0
	}
	over := s.Over
	*s = Draft{}
	if over > 0 {
		return reference.Large, event.Truncate, over
	}
	return reference.Small, event.Keep, 0
}
