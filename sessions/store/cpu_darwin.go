package store

import "golang.org/x/sys/unix"

// cpuModel is the processor's name, empty where the system does not tell.
func cpuModel() string {
	s, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return s
}
