package telemetry

import (
	"bytes"
	"strconv"
)

// processorTime is time of all processors together, in clock ticks.
type processorTime struct{ busy, total uint64 }

// parseStat reads the first line of /proc/stat (proc_stat(5)): user nice
// system idle iowait irq softirq steal guest guest_nice. Guest time is part
// of user time already; time stolen by the hypervisor counts as busy.
func parseStat(text []byte) (processorTime, bool) {
	line, _, whole := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if !whole || len(fields) < 5 || string(fields[0]) != "cpu" {
		return processorTime{}, false
	}
	const idle, iowait, last = 3, 4, 8
	var t processorTime
	for i, f := range fields[1:] {
		if i == last {
			break
		}
		ticks, err := strconv.ParseUint(string(f), 10, 64)
		if err != nil {
			return processorTime{}, false
		}
		t.total += ticks
		if i != idle && i != iowait {
			t.busy += ticks
		}
	}
	return t, true
}

// parseStatm reads the resident pages from /proc/self/statm
// (proc_pid_statm(5)).
func parseStatm(text []byte) (pages uint64, ok bool) {
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return pages, err == nil
}

// parseMeminfo reads total and available bytes from /proc/meminfo
// (proc_meminfo(5)), whose unit kB is 1,024 bytes.
func parseMeminfo(text []byte) (total, available uint64, ok bool) {
	var haveTotal, haveAvailable bool
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 || string(fields[2]) != "kB" {
			continue
		}
		kib, err := strconv.ParseUint(string(fields[1]), 10, 54)
		if err != nil {
			continue
		}
		switch string(fields[0]) {
		case "MemTotal:":
			total, haveTotal = kib<<10, true
		case "MemAvailable:":
			available, haveAvailable = kib<<10, true
		}
	}
	return total, available, haveTotal && haveAvailable && available <= total
}
