//go:build !unix && !windows

package telemetry

import "time"

// processCPU knows nothing on this platform.
func processCPU() (time.Duration, bool) { return 0, false }
