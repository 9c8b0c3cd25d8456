package main

import (
	"context"
	"sync"

	"tokenrouter/runtime/guard"
)

// inParallel does work on so many goroutines, and gives each result to done, one
// at a time. The first error, and the end of ctx, let nothing more begin; what is
// under way is waited for. Results come in no order.
func inParallel[S, R any](ctx context.Context, workers int, work []S, run func(context.Context, S) (R, error), done func(S, R) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		mu    sync.Mutex // guards what follows, and calls of done
		at    int
		first error
	)
	fail := func(err error) {
		if first == nil {
			first = err
		}
		stop()
	}
	take := func() (s S, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if at == len(work) || ctx.Err() != nil {
			return s, false
		}
		at++
		return work[at-1], true
	}
	one := func(s S) {
		r, err := run(ctx, s)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			err = done(s, r)
		}
		if err != nil {
			fail(err)
		}
	}
	g := guard.New(crashFolder())
	for range max(1, min(workers, len(work))) {
		g.Go("runs", func(c guard.Crash) {
			mu.Lock()
			defer mu.Unlock()
			fail(fellOver(c))
		}, func() {
			for s, ok := take(); ok; s, ok = take() {
				one(s)
			}
		})
	}
	g.Wait()
	return first
}
