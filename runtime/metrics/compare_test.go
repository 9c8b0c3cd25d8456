package metrics_test

import (
	"math"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// stream emits at a rate that differs from second to second.
type stream struct {
	s   *script
	id  event.ReqID
	pos int
	at  int64
}

// second writes n tokens evenly over the next second, every third by the large
// model if asked.
func (w *stream) second(n int, large bool) {
	for i := range n {
		core := event.Front
		if large && i%3 == 0 {
			core = 1
		}
		w.s.emit(w.at+int64(i)*1000*ms/int64(n), core, w.id, w.pos)
		w.pos++
	}
	w.at += 1000 * ms
}

var (
	slow = []int{100, 96, 104, 98, 102, 100, 97, 103, 99, 101}
	fast = []int{120, 126, 114, 123, 117, 120}
)

func floats(xs []int) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = float64(x)
	}
	return out
}

func TestCompare(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	s.arrive(0, 1, 0)
	w := &stream{s: s, id: 1}
	w.second(500, false) // warm-up of the run, in no bin
	for _, n := range slow {
		w.second(n, false)
	}
	same(t, "nothing changed", b.Compare(w.at).Ready, false)

	s.host(w.at, &tape.Router{Phase: tape.RouterLoaded, File: "r2r.lua", Hash: "3f2a77"})
	w.second(100, false) // still the old one: swapped, not live
	live := w.at
	s.host(live, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "3f2a77"})
	c := b.Compare(live + 300*ms)
	same(t, "label", c.Label, "r2r.lua@3f2a")
	same(t, "at", c.At, live)
	same(t, "age", c.Age, 300*time.Millisecond)
	same(t, "need", c.Need, "warm-up, 0.7 s")
	same(t, "seconds before", c.Before.Seconds, 11)
	near(t, "before", c.Before.TokensPerS, 100, 1e-9)

	w.second(700, true) // the second after the change, left out
	for i, n := range fast[:4] {
		w.second(n, true)
		c = b.Compare(w.at)
		same(t, "seconds after", c.After.Seconds, i+1)
		same(t, "ready", c.Ready, false)
	}
	same(t, "need", c.Need, "4 of 5 s after the change")
	near(t, "after so far", c.After.TokensPerS, 120.75, 1e-9)
	for _, n := range fast[4:] {
		w.second(n, true)
	}
	c = b.Compare(w.at + 999*ms) // the open bin does not count
	same(t, "ready", c.Ready, true)
	same(t, "need", c.Need, "")
	near(t, "after", c.After.TokensPerS, 120, 1e-9)
	near(t, "large before", c.Before.LargeShare, 0, 0)
	near(t, "large after", c.After.LargeShare, 1.0/3, 1e-9)
	rel, half := metrics.WelchRatio(floats(append(slow, 100)), floats(fast))
	near(t, "delta", c.Delta, 0.2, 1e-9)
	near(t, "delta", c.Delta, rel, 1e-12)
	near(t, "interval", c.DeltaCI, half, 1e-12)

	near(t, "change of the large share", c.LargeDelta, 1.0/3, 1e-9)
	near(t, "its interval, every third token in every bin", c.LargeDeltaCI, 0, 1e-9)

	// A stalled second is a second, whether records come or not.
	c = b.Compare(w.at + 1000*ms)
	near(t, "after a stall", c.After.TokensPerS, 720.0/7, 1e-9)
	marks := b.Marks()
	same(t, "marks", len(marks), 1)
	same(t, "mark", marks[0], metrics.Mark{At: live, Kind: metrics.MarkRouter, Label: "r2r.lua@3f2a"})
}

// Case K6: a pause is in no rate, no gap and no age.
func TestPauseIsNotCounted(t *testing.T) {
	run := func(pause int64) (metrics.Snapshot, metrics.Comparison, metrics.Summary, []metrics.Bin, []metrics.Mark) {
		b, r := metrics.NewBoard(2), metrics.NewRun(2)
		s := newScript(b, r)
		s.arrive(0, 1, 0)
		w := &stream{s: s, id: 1}
		for range 7 {
			w.second(100, false)
		}
		s.event(w.at, 0, event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}}})
		for range 4 {
			w.second(120, false)
		}
		if pause > 0 {
			s.host(w.at, &tape.Setting{Setting: "paused", Old: "false", New: "true"})
			mid := b.Snapshot(w.at + pause/2)
			same(t, "paused", mid.Paused, true)
			near(t, "tokens/s in the pause", mid.TokensPerS, 120, 1e-9)
			w.at += pause
			s.host(w.at, &tape.Setting{Setting: "paused", Old: "true", New: "false"})
		}
		for range 4 {
			w.second(120, false)
		}
		return b.Snapshot(w.at), b.Compare(w.at), r.Summary(w.at), b.Series(w.at, 100, time.Second), b.Marks()
	}
	s1, c1, r1, bins1, _ := run(0)
	s2, c2, r2, bins2, marks := run(3600_000 * ms)
	same(t, "window", s2.Window, s1.Window)
	same(t, "paused", s2.Paused, false)
	near(t, "tokens/s", s2.TokensPerS, s1.TokensPerS, 1e-9)
	same(t, "ITL", s2.ITL, s1.ITL)
	same(t, "comparison", c2, c1)
	same(t, "ready", c2.Ready, true)
	same(t, "label", c2.Label, "B eager -> 1,3")
	near(t, "delta", c2.Delta, 0.2, 1e-9)
	near(t, "run tokens/s", r2.TokensPerS, r1.TokensPerS, 1e-9)
	same(t, "run ITL", r2.ITLms, r1.ITLms)
	near(t, "elapsed", r2.ElapsedS-r1.ElapsedS, 3600, 1e-9)
	same(t, "bins", len(bins2), len(bins1))
	for i := range bins1 {
		same(t, "tokens in bin", bins2[i].Tokens, bins1[i].Tokens)
		same(t, "length of bin", bins2[i].Dur, bins1[i].Dur)
	}
	same(t, "last bin at", bins2[15].At-bins1[15].At, 3600_000*ms)
	same(t, "first bin at", bins2[0].At, bins1[0].At)
	same(t, "marks", len(marks), 2)
	same(t, "mark", marks[1].Label, "paused 1h0m0s")
}

// Moves of one knob in a row are one change, from the first value to the last;
// what changed meanwhile belongs to it, too.
func TestChangesAddUp(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	s.arrive(0, 1, 0)
	w := &stream{s: s, id: 1}
	for range 8 {
		w.second(100, false)
	}
	for i, to := range []float64{0.4, 0.3, 0.2} {
		s.host(w.at+int64(i)*100*ms, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: to + 0.1, New: to})
	}
	c := b.Compare(w.at + 500*ms)
	same(t, "label", c.Label, "threshold 0.5 -> 0.2")
	same(t, "at", c.At, w.at+200*ms)
	same(t, "seconds before", c.Before.Seconds, 7)
	same(t, "marks", len(b.Marks()), 1)
	same(t, "mark", b.Marks()[0].Label, "threshold 0.5 -> 0.2")
	w.second(100, false)
	w.second(100, false)
	s.host(w.at, &tape.Setting{Setting: "speed", Old: "1x", New: "2x"})
	c = b.Compare(w.at)
	same(t, "label", c.Label, "threshold 0.5 -> 0.2; speed 1x -> 2x")
	same(t, "seconds before", c.Before.Seconds, 7)
	s.host(w.at, &tape.Setting{Setting: "speed", Old: "2x", New: "1x"})
	same(t, "label, the speed as before", b.Compare(w.at).Label, "threshold 0.5 -> 0.2")
	for range 7 {
		w.second(150, false)
	}
	same(t, "ready", b.Compare(w.at).Ready, true)
	s.event(w.at, 0, event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 3}}})
	c = b.Compare(w.at)
	same(t, "label", c.Label, "B eager -> 1,3")
	near(t, "before", c.Before.TokensPerS, 150, 1e-9)
}

// After a change the requests that began before it run out: the warm-up is the
// mean time of a request where that is longer than a second.
func TestWarmUpIsARequestLong(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	for i := range int64(5) {
		id := event.ReqID(i + 1)
		s.arrive(i*3000*ms, id, 0)
		s.emit(i*3000*ms+10*ms, 0, id, 0)
		s.finish(i*3000*ms+3000*ms, id, 1)
	}
	s.host(15_000*ms, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 1, New: 2})
	c := b.Compare(16_500 * ms)
	same(t, "warm-up", c.WarmUp, 3*time.Second)
	same(t, "need", c.Need, "warm-up, 1.5 s")
}

func TestShortBefore(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	s.arrive(0, 1, 0)
	w := &stream{s: s, id: 1}
	w.second(10, false)
	w.second(10, false)
	w.second(10, false)
	s.host(w.at, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 1, New: 2})
	for range 9 {
		w.second(10, false)
	}
	c := b.Compare(w.at)
	same(t, "ready", c.Ready, false)
	same(t, "need", c.Need, "only 2 s of 5 before the change")
	if c.Delta != 0 || c.DeltaCI != 0 || c.LargeDelta != 0 {
		t.Errorf("a comparison that is not ready says %v ± %v", c.Delta, c.DeltaCI)
	}
}

// The interval holds the true change about as often as it says: 1,000 draws of
// two sides with a true change of 20 %.
func TestCompareCovers(t *testing.T) {
	rnd := newNormal(7)
	hit := 0
	const draws = 1000
	for range draws {
		a, b := make([]float64, 9), make([]float64, 14)
		for i := range a {
			a[i] = 100 + 5*rnd()
		}
		for i := range b {
			b[i] = 120 + 12*rnd()
		}
		if rel, half := metrics.WelchRatio(a, b); math.Abs(rel-0.2) <= half {
			hit++
		}
	}
	// 950 expected, standard deviation 7.
	if hit < 925 || hit > 975 {
		t.Errorf("the interval held the change in %d of %d draws", hit, draws)
	}
}
