package telemetry

import (
	"os"
)

// host keeps the files of /proc open: reading one again from the start gives
// fresh figures and costs less than opening it.
type host struct {
	stat, statm, meminfo *os.File
	buf                  []byte
}

func openHost() host {
	// A file that cannot be opened stays nil, and reading it fails.
	open := func(path string) *os.File {
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		return f
	}
	return host{
		stat: open("/proc/stat"), statm: open("/proc/self/statm"), meminfo: open("/proc/meminfo"),
		buf: make([]byte, 512), // the figures stand in the first lines
	}
}

// read returns the start of a file of /proc, nothing if it cannot be read.
func (h *host) read(f *os.File) []byte {
	n, _ := f.ReadAt(h.buf, 0) // a short file ends with io.EOF
	return h.buf[:n]
}

func (h *host) processors() (processorTime, bool) { return parseStat(h.read(h.stat)) }

func (h *host) memory() Memory {
	var m Memory
	if pages, ok := parseStatm(h.read(h.statm)); ok {
		m.Process, m.Kind = pages*uint64(os.Getpagesize()), Resident
	} else {
		m.Process, m.Kind = goMemory(), GoHeap
	}
	if total, available, ok := parseMeminfo(h.read(h.meminfo)); ok {
		m.Used, m.Total = total-available, total
	}
	return m
}

func (h *host) close() {
	for _, f := range []*os.File{h.stat, h.statm, h.meminfo} {
		if f != nil {
			f.Close()
		}
	}
}
