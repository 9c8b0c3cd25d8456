//go:build !linux && !darwin

package store

import "os"

// cpuModel is the processor's name, empty where the system does not tell.
func cpuModel() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
