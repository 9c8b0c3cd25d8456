package team

import (
	"sync/atomic"
	"testing"
)

// BenchmarkForkJoin is a call of Do whose two items wait for each other, so that
// both workers take part: what it costs to start a parallel phase and to end it.
// On a machine that is busy otherwise it measures how long a core is away.
func BenchmarkForkJoin(b *testing.B) {
	c := open(b, 2)
	s := c.Seat()
	s.Begin()
	defer s.End()
	var here [2]struct {
		round atomic.Int64
		_     line
	}
	round := int64(0)
	meet := func(_, i int) {
		here[i].round.Store(round)
		for here[1-i].round.Load() != round {
			pause(1)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		round++
		s.Do(2, meet)
	}
}

// BenchmarkDo is a call that the owner has done before a helper comes.
func BenchmarkDo(b *testing.B) {
	s := open(b, 2).Seat()
	nothing := func(int, int) {}
	b.ReportAllocs()
	for b.Loop() {
		s.Do(2, nothing)
	}
}

// BenchmarkStep is the beginning and the end of a step.
func BenchmarkStep(b *testing.B) {
	s := open(b, 2).Seat()
	b.ReportAllocs()
	for b.Loop() {
		s.Begin()
		s.End()
	}
}

// BenchmarkTurn is one look of a spinning helper.
func BenchmarkTurn(b *testing.B) {
	var s spinner
	for b.Loop() {
		if !s.over() {
			s.turn()
		}
	}
}
