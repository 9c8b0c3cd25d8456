package paced

import (
	"syscall"
	"time"
)

// slack is what the kernel may add to a sleep (its default timer slack is 50
// microseconds); that much is waited for awake.
const slack = 60 * time.Microsecond

// nap waits until a moment that is at most napFor away. It holds its thread, as
// only the system's own sleep is precise.
func nap(until time.Time) {
	if rest := time.Until(until) - slack; rest > 0 {
		ts := syscall.NsecToTimespec(int64(rest))
		// An interrupted sleep is made up for below.
		_ = syscall.Nanosleep(&ts, nil)
	}
	for time.Now().Before(until) {
	}
}
