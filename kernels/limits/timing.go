package limits

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// Timing is how long something takes.
type Timing struct {
	// Seconds is the median over the samples that count.
	Seconds float64
	// Samples is how many were taken, Disturbed in how many of them a
	// thread lost its core for a while, to another program or thread.
	Samples, Disturbed int
}

// Time runs f again and again, at least twice and until d has passed, and says
// how long one run takes on the given number of cores, the calling goroutine's
// among them; one run more comes first and does not count.
//
// On one core it is the time that the thread computed, so other programs on the
// machine do not count. On several, where a thread that waits for another
// computes as well, it is Clock. Where the system does not tell how long a thread
// has computed, it is the time of the clock.
func Time(cores int, d time.Duration, f func()) Timing {
	if cores > 1 {
		return Clock(d, f)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return judge(repeat(d, f, func() run {
		before := threadTime()
		f()
		return run{seconds: (threadTime() - before).Seconds(), whole: true}
	}))
}

// Clock is the time of the clock that a run of f takes, as the undisturbed ones
// show it: no thread of the program lost its core, and all threads together
// computed as long, in relation to the clock, as in the best run. If there are
// none it is that of the fastest run. f runs as in Time.
func Clock(d time.Duration, f func()) Timing {
	return judge(repeat(d, f, func() run {
		lost, computed, began := lostCores(), processTime(), time.Now()
		f()
		seconds := time.Since(began).Seconds()
		return run{seconds, (processTime() - computed).Seconds() / max(seconds, 1e-9), lostCores() == lost}
	}))
}

func repeat(d time.Duration, f func(), sample func() run) (all []run) {
	f()
	for start := time.Now(); len(all) < 2 || time.Since(start) < d; {
		all = append(all, sample())
	}
	return all
}

// run is one sample.
type run struct {
	seconds float64
	share   float64 // cores that computed, on average
	whole   bool    // no thread lost its core
}

// shareKept is how much of the best share an undisturbed run has at least.
const shareKept = 0.95

// judge is the time that some runs show.
func judge(all []run) Timing {
	best := 0.0
	for _, r := range all {
		best = max(best, r.share)
	}
	var calm []float64
	fastest := math.Inf(1)
	for _, r := range all {
		fastest = min(fastest, r.seconds)
		if r.whole && r.share >= shareKept*best {
			calm = append(calm, r.seconds)
		}
	}
	t := Timing{Samples: len(all), Disturbed: len(all) - len(calm)}
	if len(calm) == 0 {
		calm = append(calm, fastest)
	}
	slices.Sort(calm)
	t.Seconds = max(calm[len(calm)/2], 1e-9)
	return t
}
