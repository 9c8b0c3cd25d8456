package model

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"tokenrouter/runtime/model/tensor"
)

// runAll runs tasks on so many goroutines, each claiming the next, and returns
// the error of the first task in their order that has one. After an error no
// further task begins. Tasks may read mapped files.
func runAll(threads int, tasks []func() error) error {
	threads = max(1, min(threads, len(tasks)))
	var next, failed atomic.Int64
	errs := make([]error, len(tasks))
	crash := make([]any, threads)
	work := func() {
		for failed.Load() == 0 {
			i := int(next.Add(1)) - 1
			if i >= len(tasks) {
				return
			}
			if errs[i] = tensor.Guard(tasks[i]); errs[i] != nil {
				failed.Store(1)
			}
		}
	}
	// All of them are waited for, whatever becomes of one: the caller closes the
	// files that they read.
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			// A panic belongs to whoever asked for the model.
			defer func() {
				if v := recover(); v != nil {
					crash[t] = fmt.Sprintf("%v, while loading a model:\n%s", v, debug.Stack())
					failed.Store(1)
				}
			}()
			work()
		})
	}
	wg.Wait()
	for _, c := range crash {
		if c != nil {
			panic(c)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// progress counts what is done and reports it.
type progress struct {
	mu          sync.Mutex
	done, total int64
	report      func(done, total int64)
}

func (p *progress) add(n int64) {
	if p.report == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.report(p.done, p.total)
}
