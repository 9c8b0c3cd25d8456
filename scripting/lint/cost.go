package lint

import (
	"runtime"
	"slices"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// Cost is what the calls of one function at one model take, on average over the
// calls that a dry run makes.
type Cost struct {
	Hook         string  `json:"hook"`
	Model        string  `json:"model"`
	Calls        int     `json:"calls"`        // different ones
	Ns           float64 `json:"ns"`           // of the fastest round
	Instructions float64 `json:"instructions"` // of the VM, with what built-in functions count
	Bytes        float64 `json:"bytes"`        // taken from the heap
	Allocs       float64 `json:"allocs"`
}

// How calls are timed: so many rounds, each at least so long; the fastest counts,
// since whatever else the machine does only makes a round slower.
const (
	Rounds    = 20
	RoundTime = 2 * time.Millisecond
)

// maxCalls bounds how many different calls are made again.
const maxCalls = 2000

// Measure runs a router on rows seen at env.Self, and on the built-in ones where
// there are none, with env.Peers models, and makes every call again and again.
// Heads cost nothing here. The error is the fault of a dry run.
func Measure(p *scripting.Program, env scripting.Env, rows []scripting.Row) ([]Cost, error) {
	env.Print = nil
	calls, err := scripting.Calls(p, env, rows)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		calls = seenAt(calls, env.Self, rows)
	}
	env.Scorer = scripting.TrialScorer()
	var out []Cost
	for at := range env.Peers {
		env.Self = event.Peer(at)
		vm, err := scripting.NewVM(env, p)
		if err != nil {
			return nil, err
		}
		for _, hook := range []string{"route", "send", "receive"} {
			mine := slices.DeleteFunc(slices.Clone(calls), func(c scripting.Call) bool { return c.Hook != hook || c.At != env.Self })
			if len(mine) == 0 || !vm.Has(hook) {
				continue
			}
			c := measure(vm, mine[:min(len(mine), maxCalls)])
			c.Hook, c.Model = hook, event.Role(env.Self, env.Peers)
			out = append(out, c)
		}
		vm.Close()
	}
	return out, nil
}

// seenAt are the calls of route and send about the rows given, one of each for a
// row, without those of built-in rows and of hand-offs that were made up.
func seenAt(calls []scripting.Call, at event.Peer, rows []scripting.Row) []scripting.Call {
	type key struct {
		hook string
		o    *event.Output
		pos  int
	}
	wanted := map[key]bool{}
	for i := range rows {
		wanted[key{"route", rows[i].Output, rows[i].Pos}] = true
		wanted[key{"send", rows[i].Output, rows[i].Pos}] = true
	}
	return slices.DeleteFunc(calls, func(c scripting.Call) bool {
		k := key{c.Hook, c.Row.Output, c.Row.Pos}
		if c.At != at || !wanted[k] {
			return true
		}
		delete(wanted, k)
		return false
	})
}

func measure(vm *scripting.VM, calls []scripting.Call) Cost {
	c := Cost{Calls: len(calls)}
	var spent int64
	for i := range calls {
		vm.Repeat(&calls[i])
		spent += vm.Spent()
	}
	c.Instructions = float64(spent) / float64(len(calls))

	laps := 1
	for {
		took := lapsOf(vm, calls, laps)
		if took >= RoundTime {
			break
		}
		laps *= 2
	}
	n := float64(laps * len(calls))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lapsOf(vm, calls, laps)
	runtime.ReadMemStats(&after)
	c.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / n
	c.Allocs = float64(after.Mallocs-before.Mallocs) / n

	best := time.Duration(0)
	for range Rounds {
		if took := lapsOf(vm, calls, laps); best == 0 || took < best {
			best = took
		}
	}
	c.Ns = float64(best.Nanoseconds()) / n
	return c
}

func lapsOf(vm *scripting.VM, calls []scripting.Call, laps int) time.Duration {
	from := time.Now()
	for range laps {
		for i := range calls {
			vm.Repeat(&calls[i])
		}
	}
	return time.Since(from)
}
