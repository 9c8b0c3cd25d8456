package fabric

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

// cluster is a fabric of n cores that do nothing.
func cluster(t rapid.TB, n int) *Fabric {
	t.Helper()
	seats, kv := make([]int, n), make([]int, n)
	for m := range n {
		seats[m], kv[m] = 1, 16
	}
	f, err := New(Uniform(seats, kv, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Whatever is sent and delivered in whatever order: each link is first in, first
// out, all together are listed as sent, and a clone has the same on its way.
func TestLinksAreQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		f := cluster(t, n)
		var want []Message // on their way, as sent
		bursts := rapid.IntRange(1, 40).Draw(t, "bursts")
		for range bursts {
			if rapid.Bool().Draw(t, "send") {
				for range rapid.IntRange(1, 50).Draw(t, "count") {
					m := Message{
						From:   event.Peer(rapid.IntRange(0, n-1).Draw(t, "from")),
						To:     event.Peer(rapid.IntRange(0, n-1).Draw(t, "to")),
						Active: len(want),
					}
					f.launch(m)
					m.Seq = f.seq
					want = append(want, m)
				}
			}
			for range rapid.IntRange(0, 60).Draw(t, "deliveries") {
				from := event.Peer(rapid.IntRange(-1, n).Draw(t, "from"))
				to := event.Peer(rapid.IntRange(-1, n).Draw(t, "to"))
				i := slices.IndexFunc(want, func(m Message) bool { return m.From == from && m.To == to })
				if next, ok := f.Next(from, to); ok != (i >= 0) || ok && next != want[i] {
					t.Fatalf("next of %d -> %d is %+v, %v", from, to, next, ok)
				}
				ev, _, ok := f.Deliver(from, to, 7, nil)
				if ok != (i >= 0) || ok && (ev.Kind != event.Active || ev.N != want[i].Active || ev.At != 7) {
					t.Fatalf("%d -> %d delivers %v, %v", from, to, ev, ok)
				}
				if ok {
					want = slices.Delete(want, i, i+1)
				}
			}
			if rapid.Bool().Draw(t, "clone") {
				g := f.Clone()
				f.launch(Message{From: 0, To: 1})
				if _, _, ok := f.Deliver(1, 2, 0, nil); ok == (slices.IndexFunc(want, func(m Message) bool { return m.From == 1 && m.To == 2 }) < 0) {
					t.Fatal("the original lost a message to its clone")
				}
				f = g
			}
			if got := f.InFlight(); !slices.Equal(got, want) || f.Flying() != len(want) {
				t.Fatalf("on their way are %v, %d, want %v", got, f.Flying(), want)
			}
		}
	})
}

// Whose pen is lost in a clone is not lost in its original.
func TestCloneLosesForItself(t *testing.T) {
	f := cluster(t, 2)
	f.lost = map[event.ReqID]bool{7: true}
	g := f.Clone()
	g.lost[8] = true
	if !g.Lost(7) || f.Lost(8) {
		t.Errorf("lost in the clone: %v, in the original: %v", g.lost, f.lost)
	}
}

// BenchmarkLink is a message put on its way and the oldest delivered, with so
// many under way: the time does not depend on how many.
func BenchmarkLink(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("under way=%d", n), func(b *testing.B) {
			f := cluster(b, 3)
			for range n {
				f.launch(Message{From: 0, To: 1})
			}
			b.ReportAllocs()
			for b.Loop() {
				f.launch(Message{From: 0, To: 1})
				if _, _, ok := f.Deliver(0, 1, 1, nil); !ok {
					b.Fatal("nothing to deliver")
				}
			}
		})
	}
}
