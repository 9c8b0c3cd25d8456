//go:build !linux

package mem

import (
	"errors"
	"runtime"
)

// Available is the bytes that the process may still take; on this system they
// are not known.
func Available() (int64, error) {
	return 0, errors.New("mem: available memory is unknown on " + runtime.GOOS)
}

// Resident is the memory of the process in RAM; on this system it is not known.
func Resident() (int64, error) {
	return 0, errors.New("mem: resident memory is unknown on " + runtime.GOOS)
}
