//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until no other program reads or writes the file here, and unlock ends
// that; so does the end of a program, however it comes. Where a file system has no
// locks there are none.
func lock(f *os.File) { flock(f, unix.LOCK_EX) }

func unlock(f *os.File) { flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) {
	for unix.Flock(int(f.Fd()), how) == unix.EINTR {
	}
}
