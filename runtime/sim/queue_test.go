package sim

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

const ms = int64(1e6)

// The queue gives what is due in order of time, then class, then as it was put
// in, dispatches by core, whatever is put in between.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []due
		var now int64
		n := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "moves") {
			if len(want) > 0 && rapid.Bool().Draw(t, "take") {
				slices.SortStableFunc(want, func(a, b due) int {
					by := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.class, b.class))
					if by == 0 && a.class == dispatch {
						return cmp.Compare(a.core, b.core)
					}
					return by
				})
				got := q.take()
				if got.id != want[0].id {
					t.Fatalf("%+v comes before %+v", got, want[0])
				}
				now, want = got.at, want[1:]
				continue
			}
			n++
			d := due{
				at:    now + rapid.Int64Range(0, 3).Draw(t, "at"),
				class: class(rapid.IntRange(0, int(dispatch)).Draw(t, "class")),
				core:  event.Peer(rapid.IntRange(0, 5).Draw(t, "core")),
				id:    n,
			}
			if d.class == dispatch && slices.ContainsFunc(want, func(e due) bool { return e.class == dispatch && e.core == d.core }) {
				continue // a core has one at most
			}
			q.put(d)
			want = append(want, d)
		}
		if len(q.heap) != len(want) {
			t.Fatalf("%d left, want %d", len(q.heap), len(want))
		}
	})
}

// The jitter has mean 1 and the spread asked for, and no step takes no time.
func TestJitterLaw(t *testing.T) {
	for _, cv := range []float64{0.03, 0.3, 1} {
		j := newJitter(cv)
		mean, square := 0.0, 0.0
		for _, f := range j {
			mean += f / quantiles
			square += f * f / quantiles
		}
		if got := math.Sqrt(square-mean*mean) / mean; math.Abs(mean-1) > 1e-9 || math.Abs(got/cv-1) > 0.02 || j[0] <= 0 {
			t.Errorf("cv %v: mean %v, cv %v, least %v", cv, mean, got, j[0])
		}
		if !slices.IsSorted(j) {
			t.Errorf("cv %v: quantiles are out of order", cv)
		}
	}
	if newJitter(0).of(17, 1, 0, 1) != 17 {
		t.Error("no jitter changes a step's time")
	}
	j, seen := newJitter(0.1), map[int64]bool{}
	for m := range event.Peer(3) {
		for b := range uint64(100) {
			seen[j.of(1e9, 1, m, b)] = true
		}
	}
	if len(seen) < 280 {
		t.Errorf("300 steps take %d different times", len(seen))
	}
}

// Limits give each outcome its share of the 64-bit draws, and none to what
// cannot happen.
func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		weights []float64
		draws   map[uint64]int
	}{
		{[]float64{1}, map[uint64]int{0: 0, math.MaxUint64: 0}},
		{[]float64{0, 1, 0}, map[uint64]int{0: 1, math.MaxUint64: 1}},
		{[]float64{0.5, 0.5}, map[uint64]int{0: 0, 1<<63 - 1: 0, 1 << 63: 1, math.MaxUint64: 1}},
		{[]float64{0.25, 0, 0.75, 0}, map[uint64]int{1<<62 - 1: 0, 1 << 62: 2, math.MaxUint64: 2}},
		{[]float64{2, 6}, map[uint64]int{1<<62 - 1: 0, 1 << 62: 1}},
	} {
		l := limits(tc.weights)
		for draw, want := range tc.draws {
			if got := pick(l, draw); got != want {
				t.Errorf("%v: draw %x is outcome %d, want %d", tc.weights, draw, got, want)
			}
		}
	}
}

// A gap is known within 0.4 % and the quantile is that of the nearest rank.
func TestGapQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Int64Range(0, 1<<45), 1, 300).Draw(t, "gaps")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		var g gaps
		for _, x := range xs {
			g.add(x)
		}
		slices.Sort(xs)
		rank := max(1, int(math.Ceil(p*float64(len(xs)))))
		want := float64(xs[rank-1]) / 1e6
		if got := g.quantile(p); math.Abs(got-want) > 0.002*want+1e-6 {
			t.Fatalf("quantile %v of %v: %v, want %v", p, xs, got, want)
		}
	})
	b := books{from: 10 * ms, to: 20 * ms}
	for _, at := range []int64{4, 10, 13, 20} {
		b.emitted(at*ms, 1)
	}
	if b.tokens != 2 || b.gaps.n != 2 || math.Abs(b.gaps.quantile(0)-3) > 0.02 || math.Abs(b.gaps.quantile(1)-7) > 0.02 {
		t.Errorf("%d tokens, gaps from %v to %v ms; want those at 13 and 20 ms", b.tokens, b.gaps.quantile(0), b.gaps.quantile(1))
	}
	var none gaps
	if none.quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
}
