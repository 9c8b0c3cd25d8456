package controls

import (
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// OnlyReference lets one model write everything. What another than the small one
// writes begins with a candidate of the small one that is dropped, since every
// request begins there.
func OnlyReference(run reference.Run, m event.Peer) reference.Result {
	w := run.Begin()
	if m != reference.Small {
		w.Drop(reference.Small, w.Next(reference.Small))
	}
	for w.Commit(m, w.Next(m)) {
		continue
	}
	return w.Result
}

// RandomReference draws for every token whether the large model writes it.
func RandomReference(run reference.Run, share float64) reference.Result {
	key := rng.Key{Seed: run.Seed, Req: uint64(run.Req), Pos: len(run.Prompt) - 1, Purpose: rng.Router}
	return reference.Rewrite(run, func(event.Output) bool {
		key.Pos++
		return key.Float64(0) < share
	})
}

// OracleReference asks both models for every token. Where they agree it is the
// small model's, else the large one's.
func OracleReference(run reference.Run) reference.Result {
	w := run.Begin()
	for {
		small := w.Next(reference.Small)
		w.Drop(reference.Small, small)
		large := w.Next(reference.Large)
		writer := reference.Large
		if large.Token == small.Token {
			w.Drop(reference.Large, large)
			writer = reference.Small
		}
		if !w.Append(writer, large.Token) {
			return w.Result
		}
	}
}

// HandoverReference lets the large model write a span of tokens from each position
// on at which the small model's entropy, in nats, is at or above the threshold.
func HandoverReference(run reference.Run, threshold float64, tokens int) reference.Result {
	return reference.Spans(run,
		func(o event.Output) bool { return float64(o.Entropy) >= threshold },
		func(_ event.Output, n int) bool { return n == tokens },
	)
}

// HysteresisReference lets the large model write from where the small model's
// entropy is at or above up to where its own is at or below down, in nats.
func HysteresisReference(run reference.Run, up, down float64) reference.Result {
	return reference.Spans(run,
		func(o event.Output) bool { return float64(o.Entropy) >= up },
		func(o event.Output, _ int) bool { return float64(o.Entropy) <= down },
	)
}

// HysteresisRule is one decision of hysteresis.lua: where the request goes after a
// step of model self, and whether its candidate is kept.
func HysteresisRule(entropy float64, self event.Peer, up, down float64) (event.Peer, event.Action) {
	switch {
	case self == reference.Small && entropy >= up:
		return reference.Large, event.Drop
	case self != reference.Small && entropy > down:
		return self, event.Keep
	}
	return reference.Small, event.Keep
}

// WindowReference cuts the text back to the worst position of a window whose mean
// entropy is at or above the threshold, and lets the large model write a span of
// tokens from there.
func WindowReference(run reference.Run, threshold float64, window, tokens int) reference.Result {
	w := run.Begin()
	var seen Window
	for {
		o := w.Next(reference.Small)
		at, cut := seen.Rule(float64(o.Entropy), w.Pos(), threshold, window)
		if !cut {
			if !w.Commit(reference.Small, o) {
				return w.Result
			}
			continue
		}
		w.Truncate(reference.Small, o, at)
		for range tokens {
			if !w.Commit(reference.Large, w.Next(reference.Large)) {
				return w.Result
			}
		}
	}
}

// Window is the entropies of the small model's last tokens in a row.
type Window struct{ h []float64 }

// Rule adds the candidate at a position. It says whether the window is full and
// its mean at or above the threshold, and where its highest entropy is then: the
// first of equals. The window is then empty.
func (s *Window) Rule(entropy float64, pos int, threshold float64, window int) (at int, cut bool) {
	s.h = append(s.h, entropy)
	if n := len(s.h) - window; n > 0 {
		s.h = s.h[n:]
	}
	if len(s.h) < window {
		return 0, false
	}
	sum, top := 0.0, 0
	for i, x := range s.h {
		sum += x
		if x > s.h[top] {
			top = i
		}
	}
	if sum/float64(window) < threshold {
		return 0, false
	}
	s.h = nil
	return pos - (window - 1) + top, true
}
