//go:build !linux

package team

import "runtime"

// yield lets another goroutine run if one waits.
func yield() { runtime.Gosched() }
