//go:build !linux

package paced

import "time"

// nap is left to the timer; how precise that is was measured on Linux only.
var nap func(until time.Time)
