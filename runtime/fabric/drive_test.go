package fabric_test

import (
	"fmt"

	"tokenrouter/runtime/event"
)

// move is what could happen next: a link delivers, a batch ends, a core
// dispatches.
type move struct {
	deliver  bool
	from, to event.Peer
	finish   bool
}

func (w *world) moves() []move {
	var out []move
	n := event.Peer(w.f.Len())
	for from := range n {
		for to := range n {
			if _, ok := w.f.Next(from, to); ok {
				out = append(out, move{deliver: true, from: from, to: to})
			}
		}
	}
	for p := range n {
		if w.f.Core(p).Running() != nil {
			out = append(out, move{finish: true, to: p})
		} else if w.f.Core(p).Load().Ready > 0 {
			out = append(out, move{to: p})
		}
	}
	return out
}

func (w *world) make(m move) error {
	switch {
	case m.deliver:
		return w.deliver(m.from, m.to)
	case m.finish:
		return w.finish(m.to)
	default:
		return w.step(m.to, event.Event{Kind: event.Dispatch})
	}
}

// drain lets everything run to its end, choosing among the moves by pick. Time
// passes by tick with each move. Where nobody can move but by a timer, time
// jumps to it if timers is set; else that is a deadlock.
func (w *world) drain(pick func(n int) int, tick int64, timers bool) error {
	quiet := 0
	for limit := 200_000; limit > 0; limit-- {
		ms := w.moves()
		if len(ms) == 0 && w.f.Idle() {
			return nil
		}
		if len(ms) > 0 {
			batches := w.running()
			m := ms[pick(len(ms))]
			w.now += tick
			if err := w.make(m); err != nil {
				return err
			}
			if m.deliver || m.finish || w.running() != batches {
				quiet = 0
				continue
			}
			if quiet++; quiet < 50*len(ms) || busy(ms) {
				continue
			}
		}
		if !timers {
			return fmt.Errorf("INV-7: nothing moves but by a timer:\n%s", w.loads())
		}
		if err := w.fire(); err != nil {
			return err
		}
		quiet = 0
	}
	return fmt.Errorf("no end in sight:\n%s", w.loads())
}

// fire lets the earliest timer pass and dispatches.
func (w *world) fire() error {
	first := -1
	for p, c := range w.wake {
		if c.Kind == event.WakeAt && (first < 0 || c.At < w.wake[first].At) {
			first = p
		}
	}
	if first < 0 {
		return fmt.Errorf("INV-8: everybody waits and no timer is out:\n%s", w.loads())
	}
	c := w.wake[first]
	w.now = max(w.now, c.At)
	p := event.Peer(first)
	if err := w.step(p, event.Event{Kind: event.Wake, Gen: c.Gen}); err != nil {
		return err
	}
	return w.step(p, event.Event{Kind: event.Dispatch})
}
