package team

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// open gives cores that end with the test.
func open(t testing.TB, n int) *Cores {
	c := New(n)
	t.Cleanup(c.Close)
	return c
}

// checked runs Do and checks that every item ran once, by a worker below
// Workers, and that no worker was at two items at the same time.
func checked(t testing.TB, s *Seat, n int) {
	ran := make([]atomic.Int32, n)
	at := make([]atomic.Int32, s.Workers())
	var sum int // unguarded on purpose: the race detector sees who writes it
	parts := make([]int, s.Workers())
	s.Do(n, func(worker, i int) {
		if at[worker].Add(1) != 1 {
			t.Errorf("worker %d is at two items", worker)
		}
		ran[i].Add(1)
		parts[worker] += i
		at[worker].Add(-1)
	})
	for i := range ran {
		if got := ran[i].Load(); got != 1 {
			t.Errorf("item %d of %d ran %d times", i, n, got)
		}
	}
	for _, p := range parts {
		sum += p
	}
	if want := n * (n - 1) / 2; sum != want {
		t.Errorf("the items of %d sum to %d, want %d", n, sum, want)
	}
}

// TestEveryItemOnce lets several seats step at the same time, beginning and
// ending at random, while the garbage collector stops the world.
func TestEveryItemOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := New(rapid.IntRange(1, 5).Draw(rt, "cores"))
		defer c.Close()
		var wg sync.WaitGroup
		for range rapid.IntRange(1, 4).Draw(rt, "seats") {
			steps := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 60), 0, 20), 1, 6).Draw(rt, "steps")
			limit := rapid.IntRange(1, 5).Draw(rt, "limit")
			s := c.Seat()
			s.Limit(limit)
			wg.Go(func() {
				for _, calls := range steps {
					s.Begin()
					for _, n := range calls {
						checked(t, s, n)
					}
					s.End()
					runtime.Gosched()
				}
			})
		}
		runtime.GC()
		wg.Wait()
	})
}

func TestWithoutHelpers(t *testing.T) {
	var none *Seat
	none.Begin()
	none.Limit(3)
	one := open(t, 1).Seat()
	one.Begin()
	for _, s := range []*Seat{none, one, open(t, 3).Seat()} { // the last one is in no step
		var order []int
		s.Do(5, func(worker, i int) {
			if worker != 0 {
				t.Errorf("worker %d", worker)
			}
			order = append(order, i)
		})
		if len(order) != 5 || order[0] != 0 || order[4] != 4 {
			t.Errorf("items ran as %v", order)
		}
		s.Do(0, func(int, int) { t.Error("an item of none runs") })
	}
	none.End()
	one.End()
	if none.Workers() != 1 || one.Workers() != 1 {
		t.Errorf("workers %d, %d", none.Workers(), one.Workers())
	}
}

// meet runs a call of two items in two workers: each waits for the other. It
// returns only when a helper has come.
func meet(t testing.TB, s *Seat) {
	t.Helper()
	here := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	var workers [2]int
	s.Do(2, func(worker, i int) {
		workers[i] = worker
		close(here[i])
		<-here[1-i]
	})
	if workers[0] == workers[1] {
		t.Errorf("both items ran in worker %d", workers[0])
	}
}

// TestHelpersGoAndCome is two seats on two cores: the helper leaves when the
// second seat begins, goes to it when the first has ended for the time of a
// grace, and the other way round.
func TestHelpersGoAndCome(t *testing.T) {
	var now atomic.Int64
	now.Store(1)
	c := newCores(2, now.Load)
	defer c.Close()
	a, b := c.Seat(), c.Seat()
	a.Begin()
	meet(t, a)

	came, left := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var after atomic.Int32
	a.Do(50, func(worker, i int) {
		if worker == 0 {
			<-came
			<-left
			return
		}
		once.Do(func() {
			close(came)
			b.Begin()
			close(left)
		})
		after.Add(1)
	})
	if after.Load() != 1 {
		t.Errorf("the helper did %d items after the other seat began, want the one it was at", after.Load())
	}

	a.End() // its core is kept for its grace
	b.Do(2, func(worker, _ int) {
		if worker != 0 {
			t.Error("a helper comes within the grace of the other seat")
		}
	})
	now.Add(grace)
	meet(t, b)
	a.Begin()
	b.Do(2, func(worker, _ int) {
		if worker != 0 {
			t.Error("a helper stays although the other seat needs its core")
		}
	})
	b.End()
	now.Add(grace)
	meet(t, a)
	a.End()
}

// TestParkedHelperIsCalled: a helper that parked inside a step comes to the next
// call.
func TestParkedHelperIsCalled(t *testing.T) {
	c := open(t, 2)
	s := c.Seat()
	s.Begin()
	defer s.End()
	for range 5 {
		for !c.helpers[0].parked.Load() {
			runtime.Gosched()
		}
		meet(t, s)
	}
}

// TestOwnerSleeps: an owner whose helper takes long gives its core away and is
// woken.
func TestOwnerSleeps(t *testing.T) {
	s := open(t, 2).Seat()
	s.Begin()
	defer s.End()
	for range 5 {
		var came atomic.Bool
		s.Do(2, func(worker, _ int) {
			for worker == 0 && !came.Load() {
				runtime.Gosched()
			}
			if worker != 0 {
				came.Store(true)
				for s.word.Load()&ownerSleeps == 0 {
					runtime.Gosched()
				}
			}
		})
		if got := s.word.Load(); got != 0 {
			t.Fatalf("the word reads %#x after a call", got)
		}
	}
}

// TestLateHelperTakesNothing: a helper that saw the seat's call before it was
// sent away, and comes only now, finds another one that is not meant for it: the
// seat may have room for one worker only.
func TestLateHelperTakesNothing(t *testing.T) {
	s := open(t, 2).Seat()
	s.Limit(1)
	late := &helper{cores: s.cores, worker: 1}
	s.Do(3, func(worker, i int) {
		if worker >= s.Workers() {
			t.Errorf("item %d runs in worker %d of %d", i, worker, s.Workers())
		}
		if n := s.help(late); n != 0 {
			t.Errorf("a helper that is dealt to nobody does %d items", n)
		}
	})
}

// caught is what f panics with, nil if it does not.
func caught(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestPanicsComeOut(t *testing.T) {
	s := open(t, 2).Seat()
	s.Begin()
	defer s.End()
	// in gives a function that does what it is told in one worker only; the other
	// waits until that has begun.
	in := func(which int, what func()) func(worker, i int) {
		begun := make(chan struct{})
		var once sync.Once
		return func(worker, _ int) {
			if worker != which {
				<-begun
				return
			}
			once.Do(func() {
				close(begun)
				what()
			})
		}
	}
	for range 3 {
		if got := caught(func() { s.Do(8, in(0, func() { panic("own") })) }); got != "own" {
			t.Errorf("a panic of the owner comes out as %v", got)
		}
		got, _ := caught(func() { s.Do(8, in(1, func() { panic("helper's") })) }).(string)
		if !strings.HasPrefix(got, "helper's, in a helper:\n") || !strings.Contains(got, "team_test.go") {
			t.Errorf("a panic of a helper comes out as %q", got)
		}
		got, _ = caught(func() { s.Do(8, in(1, runtime.Goexit)) }).(string)
		if !strings.Contains(got, "Goexit") {
			t.Errorf("a helper that ends comes out as %q", got)
		}
		meet(t, s) // the team is whole again
		checked(t, s, 30)
	}
}

func TestStepsAreCounted(t *testing.T) {
	c := open(t, 2)
	s := c.Seat()
	if caught(s.End) == nil {
		t.Error("a step ends that has not begun")
	}
	s.Begin()
	if caught(s.Begin) == nil {
		t.Error("a step begins twice")
	}
	meet(t, s)
	s.End()
}

func TestCloseLeavesTheSeats(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	c, other := New(3), New(2)
	s := c.Seat()
	s.Begin()
	meet(t, s)
	if got := runtime.GOMAXPROCS(0); got < 3 {
		t.Errorf("%d processors for 3 cores", got)
	}
	c.Close()
	c.Close()
	s.Do(9, func(worker, _ int) {
		if worker != 0 {
			t.Error("a helper works after Close")
		}
	})
	s.End()
	s.Begin()
	s.End()
	other.Close()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("GOMAXPROCS is %d after all closed, was %d", got, before)
	}
	if Machine() < 1 {
		t.Errorf("%d cores", Machine())
	}
}

func TestAllCores(t *testing.T) {
	if got := len(open(t, 0).helpers); got != Machine()-1 {
		t.Errorf("%d helpers on %d cores", got, Machine())
	}
}
