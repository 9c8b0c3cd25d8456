package metrics_test

import (
	"testing"
	"time"

	"tokenrouter/runtime/metrics"
)

func TestSeries(t *testing.T) {
	b := metrics.NewBoard(2)
	s := newScript(b)
	same(t, "before", len(b.Series(1000*ms, 10, time.Second)), 0)
	s.arrive(600*ms, 1, 0)
	w := &stream{s: s, id: 1, at: 1000 * ms}
	w.second(30, true)
	w.second(60, false)
	w.second(90, true)
	bins := b.Series(3500*ms, 10, time.Second)
	same(t, "bins", len(bins), 4)
	want := []metrics.Bin{
		{At: 600 * ms, Dur: 400 * time.Millisecond},
		{At: 1000 * ms, Dur: time.Second, Tokens: 30, Large: 10},
		{At: 2000 * ms, Dur: time.Second, Tokens: 60},
		{At: 3000 * ms, Dur: 500 * time.Millisecond, Tokens: 90, Large: 30},
	}
	for i := range want {
		same(t, "at", bins[i].At, want[i].At)
		same(t, "tokens", bins[i].Tokens, want[i].Tokens)
		same(t, "large", bins[i].Large, want[i].Large)
		same(t, "by peer", bins[i].ByPeer[0]+bins[i].ByPeer[1], want[i].Tokens)
	}
	same(t, "first", bins[0].Dur, want[0].Dur)
	near(t, "rate", bins[1].Rate(), 30, 1e-9)

	// Asked for fewer, the latest; asked for finer than it is kept, 250 ms.
	bins = b.Series(4200*ms, 2, time.Second)
	same(t, "bins", len(bins), 2)
	same(t, "tokens", bins[0].Tokens, 90)
	same(t, "tokens of the open bin", bins[1].Tokens, 0)
	same(t, "its length", bins[1].Dur, 200*time.Millisecond)
	bins = b.Series(4000*ms, 4, time.Millisecond)
	same(t, "finest", bins[0].Dur, 250*time.Millisecond)
}

// The series forgets what is older than its ring and shows nothing twice.
func TestSeriesForgets(t *testing.T) {
	b := metrics.NewBoard(1)
	s := newScript(b)
	s.arrive(0, 1, 0)
	s.emit(100*ms, 0, 1, 0)
	const hour = 3600_000 * ms
	s.emit(hour, 0, 1, 1)
	bins := b.Series(hour+1000*ms, 100_000, time.Second)
	total := 0
	for _, bin := range bins {
		total += bin.Tokens
	}
	same(t, "tokens", total, 1)
	if len(bins) > 1026 {
		t.Errorf("%d bins of a second are more than 17 minutes", len(bins))
	}
	b.Add(&s.all[len(s.all)-1]) // the same position again is no token
	bins = b.Series(hour, 1, time.Second)
	same(t, "tokens", bins[0].Tokens, 1)
}
