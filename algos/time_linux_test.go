package algos_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the time that the thread has computed for: what others run on
// the machine does not count. The goroutine keeps to its thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
