//go:build !unix

package main

import "time"

var began = time.Now()

// cpuSeconds is the time since the program began: an upper bound for one worker.
func cpuSeconds() float64 { return time.Since(began).Seconds() }
