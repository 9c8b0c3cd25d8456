package limits

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is how long the calling thread has computed.
func threadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processTime is how long all threads of the program have computed together.
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return time.Since(start)
	}
	return time.Duration(t.Nano())
}

var start = time.Now()

// lostCores is how often a thread of the program had to leave its core to
// another.
func lostCores() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int64(u.Nivcsw)
}
