package team

import (
	"runtime"
	"sync"
)

// machine is the number of cores that the program started with, before any
// Cores asked for more processors of the Go scheduler.
var machine = runtime.GOMAXPROCS(0)

// Machine is the number of cores that the program may use, as the Go runtime
// found it when the program started (GOMAXPROCS, the limits of a container). Ask
// this, not runtime.GOMAXPROCS, which New raises for more cores than that.
func Machine() int { return machine }

// processors is what the Cores of the process have asked for.
var processors struct {
	sync.Mutex
	users  int
	before int // GOMAXPROCS without users
}

// reserve sees to a processor of the Go scheduler for each of n cores, until
// release. There are no more than that: a goroutine that becomes ready would have
// one at once, but threads beyond the cores take slices of milliseconds from one
// another, and the garbage collector waits for a thread that has just lost its
// core. Owners and helpers let goroutines have their processor in between.
func reserve(n int) {
	p := &processors
	p.Lock()
	defer p.Unlock()
	now := runtime.GOMAXPROCS(0)
	if p.users == 0 {
		p.before = now
	}
	p.users++
	if n > now {
		runtime.GOMAXPROCS(n)
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
