package mem

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// root is the file system that the figures of the kernel are read from.
var root = os.DirFS("/")

// Available is the bytes that the process may still take without swapping: what
// the kernel estimates (MemAvailable), or what the control groups of the
// process leave if that is less. Pages of a group that only cache files count
// as available. It is an error where the kernel does not tell.
func Available() (int64, error) { return available(root) }

// Resident is the memory of the process in RAM, mapped files included, in
// bytes.
func Resident() (int64, error) { return resident(root) }

func available(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("mem: available memory is unknown: %w", err)
	}
	n, ok := field(text, "MemAvailable:")
	if !ok || n > 1<<53 {
		return 0, fmt.Errorf("mem: available memory is unknown: /proc/meminfo has no MemAvailable")
	}
	n *= 1024 // the unit "kB" of the file is 1,024 bytes
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return n, nil // a kernel without control groups
	}
	for line := range bytes.Lines(groups) {
		// hierarchy:controllers:path (cgroups(7))
		part := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case len(part[1]) == 0:
			n = min(n, left(root, "sys/fs/cgroup", string(part[2]), groupV2))
			n = min(n, left(root, "sys/fs/cgroup/unified", string(part[2]), groupV2))
		case bytes.Contains(part[1], []byte("memory")):
			n = min(n, left(root, "sys/fs/cgroup/memory", string(part[2]), groupV1))
		}
	}
	return n, nil
}

// files are the names of a control group's figures.
type files struct{ limit, usage, cache string }

var (
	groupV1 = files{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
	groupV2 = files{"memory.max", "memory.current", "inactive_file"}
)

// left is what a group and those above it leave, the largest int64 where none
// limits. In a container the path may name a place outside of what is mounted;
// then the groups that can be seen count.
func left(root fs.FS, mount, group string, f files) int64 {
	least := int64(1<<63 - 1)
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		at := path.Join(mount, dir)
		limit, ok := single(root, path.Join(at, f.limit))
		usage, known := single(root, path.Join(at, f.usage))
		// Version 1 writes a limit near the largest int64 for none.
		if ok && known && limit < 1<<60 {
			stat, _ := fs.ReadFile(root, path.Join(at, "memory.stat")) // without it nothing is cache
			cache, _ := field(stat, f.cache)
			least = min(least, max(limit-usage+min(cache, usage), 0))
		}
		if dir == "/" {
			return least
		}
	}
}

// single reads a file of one number; "max" is none.
func single(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil && n >= 0
}

// field is the number after a name at the start of a line.
func field(text []byte, name string) (int64, bool) {
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == name {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

func resident(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("mem: resident memory is unknown: %w", err)
	}
	f := bytes.Fields(text)
	if len(f) < 2 {
		return 0, fmt.Errorf("mem: resident memory is unknown: /proc/self/statm reads %q", text)
	}
	n, err := strconv.ParseInt(string(f[1]), 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, fmt.Errorf("mem: resident memory is unknown: /proc/self/statm reads %q", text)
	}
	return n * int64(os.Getpagesize()), nil
}
