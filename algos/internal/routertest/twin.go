package routertest

import (
	"math"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

// Twin holds a router with one threshold against its rule on rows of both models
// of a pair.
type Twin struct {
	File, Text string
	Thresholds []float64
	Signal     Signal
	Rule       func(signal float64, self event.Peer, threshold float64) (event.Peer, event.Action)
}

// Signal puts a value where a router reads it: near to v, or the next one above or
// below, toward -1 or 1. It says which value the router sees.
type Signal func(o *event.Output, head *Fixed, v float64, toward int) float64

// Head is the signal of a router that asks a head; a score has 32 bits.
func Head(_ *event.Output, head *Fixed, v float64, toward int) float64 {
	x := next32(v, toward)
	head.Value = float64(x)
	return head.Value
}

// Field is the signal of a router that reads a field of 32 bits.
func Field(set func(o *event.Output, v float32)) Signal {
	return func(o *event.Output, _ *Fixed, v float64, toward int) float64 {
		x := next32(v, toward)
		set(o, x)
		return float64(x)
	}
}

func next32(v float64, toward int) float32 {
	if x := float32(v); toward != 0 {
		return min(max(math.Nextafter32(x, x+float32(toward)), 0), 64)
	}
	return float32(v)
}

// Rows is how many rows a twin is tried on at the least.
const Rows = 10_000

// Check runs 10,000 rows, half of them on a threshold or next to it (case I9).
func (c Twin) Check(t *testing.T) {
	t.Helper()
	head := &Fixed{}
	ties, routed := 0, 0
	for _, threshold := range c.Thresholds {
		vms := Load(t, c.File, c.Text, 2, 1, map[string]float64{"threshold": threshold}, head)
		for i := range Rows/len(c.Thresholds) + 1 {
			o := Signals(rng.Key{Seed: 5, Req: uint64(i)})
			v, toward := Score(0, o), 0
			switch i % 8 {
			case 0, 4:
				v = threshold
			case 1:
				v, toward = threshold, -1
			case 5:
				v, toward = threshold, 1
			}
			signal := c.Signal(&o, head, v, toward)
			if signal == threshold {
				ties++
			}
			for self := range event.Peer(2) {
				dest, action := c.Rule(signal, self, threshold)
				if action != event.Keep {
					routed++
				}
				d := vms[self].Route(&scripting.Row{Req: event.ReqID(i), Output: &o, Pos: 9, PromptLen: 5})
				if d.Fault != "" || d.Dest != dest || d.Action != action {
					t.Fatalf("%s: signal %v at %d, threshold %v: %+v, want %d %s", c.File, signal, self, threshold, d, dest, action)
				}
			}
		}
	}
	if ties < Rows/10 || routed < Rows/10 {
		t.Errorf("%s: %d ties and %d routed of %d rows; the test has lost its sense", c.File, ties, routed, Rows)
	}
}
