package bench

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"tokenrouter/kernels/team"
)

// Pauses is how long the garbage collector stops the world while a model decodes
// without a break, and while the same cores run plain Go that can be stopped
// anywhere: what is between the two is the engine's.
type Pauses struct {
	Cores       int   `json:"cores"`
	Batch       int   `json:"batch"`
	Collections int   `json:"collections"` // of each; each stops the world twice
	Decoding    Pause `json:"decoding"`
	PlainGo     Pause `json:"plain_go"`
}

// Pause is the distribution of pauses, in seconds: until all goroutines stood
// still, and in whole.
type Pause struct {
	Stopping Quantiles `json:"stopping"`
	Total    Quantiles `json:"total"`
}

// Quantiles of a distribution, as the upper bounds of a histogram's buckets.
type Quantiles struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// collections of one turn and turns of each kind.
const (
	collectionsPerTurn = 10
	turns              = 5
)

// MeasurePauses measures with a batch of decoding rows on n cores.
func MeasurePauses(m *Model, n, batch int, o Options) (p Pauses, err error) {
	if err := o.complete(); err != nil {
		return p, err
	}
	o.Progress(fmt.Sprintf("pauses of the garbage collector, %d cores", n))
	p = Pauses{Cores: n, Batch: batch, Collections: collectionsPerTurn * turns}
	c := team.New(n)
	defer c.Close()
	q := m.open(c, batch, o.Context+1)
	defer func() { err = errors.Join(err, q.pool.Close()) }()
	if err := q.ready(o.Context, 1); err != nil {
		return p, err
	}
	plain := c.Seat()
	spin := func() {
		plain.Begin()
		defer plain.End()
		plain.Do(64*n, func(int, int) { keep(count(plainSteps)) })
	}
	var decoding, plainGo [2]counts
	for range turns {
		collect(q.timed, &decoding)
		collect(spin, &plainGo)
	}
	p.Decoding = Pause{decoding[0].quantiles(), decoding[1].quantiles()}
	p.PlainGo = Pause{plainGo[0].quantiles(), plainGo[1].quantiles()}
	return p, q.failed
}

// plainSteps is some ten microseconds of plainGo.
const plainSteps = 10_000

// count computes something that takes n steps.
func count(n int) (x uint64) {
	for i := range uint64(n) {
		x = x*6364136223846793005 + i
	}
	return x
}

var kept atomic.Uint64

func keep(x uint64) {
	if x == 1 { // hardly ever
		kept.Store(x)
	}
}

// names are the pauses that are looked at: /sched/pauses in runtime/metrics.
var names = [2]string{"/sched/pauses/stopping/gc:seconds", "/sched/pauses/total/gc:seconds"}

// counts is a histogram of pauses.
type counts struct {
	buckets []float64
	n       []uint64
}

// collect collects garbage some times while work runs again and again in another
// goroutine, and adds the pauses.
func collect(work func(), to *[2]counts) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	running := make(chan struct{})
	wg.Go(func() {
		work()
		close(running)
		for !stop.Load() {
			work()
		}
	})
	<-running
	before := pauses()
	for range collectionsPerTurn {
		runtime.GC()
	}
	after := pauses()
	stop.Store(true)
	wg.Wait()
	for i := range to {
		to[i].add(before[i], after[i])
	}
}

func pauses() (h [2]*metrics.Float64Histogram) {
	s := []metrics.Sample{{Name: names[0]}, {Name: names[1]}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() == metrics.KindFloat64Histogram {
			h[i] = s[i].Value.Float64Histogram()
		}
	}
	return h
}

// add adds what came between two readings.
func (c *counts) add(before, after *metrics.Float64Histogram) {
	if before == nil || after == nil {
		return // a runtime that does not tell
	}
	if c.n == nil {
		c.buckets, c.n = after.Buckets, make([]uint64, len(after.Counts))
	}
	for i := range c.n {
		c.n[i] += after.Counts[i] - before.Counts[i]
	}
}

func (c *counts) quantiles() Quantiles {
	var all uint64
	for _, n := range c.n {
		all += n
	}
	at := func(share float64) float64 {
		if all == 0 {
			return 0
		}
		need := uint64(math.Ceil(share * float64(all)))
		for i, n := range c.n {
			if n >= need {
				if end := c.buckets[i+1]; !math.IsInf(end, 1) {
					return end
				}
				return c.buckets[i]
			}
			need -= n
		}
		return 0
	}
	return Quantiles{at(0.5), at(0.99), at(1)}
}
