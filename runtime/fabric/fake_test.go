package fabric_test

import (
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

func hash(parts ...uint64) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		h = (h ^ p) * 1099511628211
		h ^= h >> 29
	}
	return h
}

// fakeRouter is a model and a router in one: token and decision depend on
// request, text, model and seed and on nothing else, as real ones do. The
// runner has proved that the KV holds that text.
func fakeRouter(seed uint64, n int) func(event.Peer, sched.View) event.RowResult {
	return func(p event.Peer, v sched.View) event.RowResult {
		h := hash(seed, uint64(v.ID), uint64(len(v.Tokens)), uint64(p))
		for _, t := range v.Tokens {
			h = hash(h, uint64(t))
		}
		r := event.RowResult{Output: event.Output{Token: event.Token(h % 23)}, Dest: event.Peer(h >> 8 % uint64(n))}
		if h>>20%3 == 0 {
			r.Action = event.Drop
		}
		if h>>24%3 == 0 {
			r.Budget = int(h >> 28 % 4)
		}
		if h>>32%11 == 0 {
			r.Dest = event.Peer(n)
		}
		return r
	}
}

// holdRouter is a fakeRouter that holds tokens back, at times more and at times
// less, as one does that is reloaded, and takes some back: rightly, or against
// each of the rules. With calm it obeys those that a router can see.
func holdRouter(seed uint64, n, most int, calm bool) func(event.Peer, sched.View) event.RowResult {
	decide := fakeRouter(seed, n)
	return func(p event.Peer, v sched.View) event.RowResult {
		r := decide(p, v)
		h := hash(seed, uint64(r.Output.Token), uint64(len(v.Tokens)), uint64(p), uint64(r.Dest), 77)
		r.Hold = most
		if h%5 == 0 {
			r.Hold = int(h >> 4 % uint64(most+2))
		}
		if h>>12%3 == 0 {
			r.Action = event.Truncate
			r.At = v.Emitted - 1 + int(h>>20%uint64(len(v.Tokens)-v.Emitted+3))
			if calm && (r.Dest == p || int(r.Dest) >= n) {
				r.Dest = (p + 1) % event.Peer(n)
			}
			if calm {
				r.At = min(max(r.At, v.Emitted), len(v.Tokens))
			}
		}
		return r
	}
}

// dice draws a number from 0 to n-1: by rapid, which shrinks what fails, or by
// a seeded generator, which is even.
type dice func(n int) int

// wildRouter adds what only a broken router does.
func wildRouter(roll dice, n int) func(event.Peer, sched.View) event.RowResult {
	hold := roll(3) * roll(6)
	return func(_ event.Peer, v sched.View) event.RowResult {
		r := event.RowResult{
			Output: event.Output{Token: event.Token(roll(24))},
			Dest:   event.Peer(roll(n)),
			Action: event.Action(roll(4) / 3),
			Budget: roll(4) - 1,
			Hold:   hold,
		}
		if hold > 0 && roll(4) == 0 {
			r.Action, r.At = event.Truncate, len(v.Tokens)+1-roll(hold+3)
		}
		if roll(30) == 0 {
			r.Hold = roll(9) - 1
		}
		if roll(6) == 0 {
			r.Stop = len(v.Tokens) + 2 - roll(5) // one too far, and before the prompt's end
		}
		switch roll(20) {
		case 0:
			r.Fault = "fault"
		case 1:
			r.Dest = event.Peer(n)
		case 2:
			r.Dest = -1
		}
		return r
	}
}

// wildReceive sometimes appends, rightly or against what was emitted.
func wildReceive(roll dice) fabric.Receive {
	return func(_ event.Peer, m *event.PeerReq, _ sched.View) event.Verdict {
		var more []event.Token
		switch roll(12) {
		case 0:
			more = slices.Clone(m.Suffix)
		case 1:
		case 2:
			return event.Verdict{Fault: "fault"}
		default:
			return event.Verdict{}
		}
		for range roll(4) {
			more = append(more, event.Token(roll(24)))
		}
		return event.Verdict{Kind: event.Append, Ids: more}
	}
}
