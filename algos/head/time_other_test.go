//go:build !linux

package head_test

import "time"

var start = time.Now()

// threadTime is wall time where the time of a thread is not to be had.
func threadTime() time.Duration { return time.Since(start) }
