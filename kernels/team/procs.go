package team

import (
	"runtime"
	"sync"
)

// machine is the number of cores that the program started with, before any
// Cores asked for more processors of the scheduler.
var machine = runtime.GOMAXPROCS(0)

// Machine is the number of cores that the program may use, as the Go runtime
// found it when the program started (GOMAXPROCS, the limits of a container). Ask
// this, not runtime.GOMAXPROCS, which New raises.
func Machine() int { return machine }

// spare is how many processors of the scheduler are kept besides one for each
// core. A helper in a step keeps its processor busy without end, and so does an
// owner. With one processor a core, a goroutine that became ready, say the one
// that steps a peer or draws the screen, would wait 10 ms until the scheduler
// takes one from them; with a spare one it has a thread at once, and helpers
// yield their cores to threads.
const spare = 2

// processors is what the Cores of the process have asked for.
var processors struct {
	sync.Mutex
	users  int
	before int // GOMAXPROCS without users
}

// reserve raises GOMAXPROCS for n cores, until release.
func reserve(n int) {
	p := &processors
	p.Lock()
	defer p.Unlock()
	now := runtime.GOMAXPROCS(0)
	if p.users == 0 {
		p.before = now
	}
	p.users++
	if want := n + spare; want > now {
		runtime.GOMAXPROCS(want)
	}
}

// release undoes a reserve; after the last one GOMAXPROCS is as before.
func release() {
	p := &processors
	p.Lock()
	defer p.Unlock()
	if p.users--; p.users == 0 {
		runtime.GOMAXPROCS(p.before)
	}
}
