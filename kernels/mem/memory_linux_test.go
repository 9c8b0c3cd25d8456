package mem

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFreeRefusesWhatIsNotAllocated(t *testing.T) {
	b, err := Alloc(5 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := Free(b[4096:]); err == nil {
		t.Error("the middle of a block is freed")
	}
	if err := Free(b[:0]); err != nil {
		t.Errorf("an empty slice at the start of a block: %v", err)
	}
	if err := Free(b); err == nil {
		t.Error("a block is freed twice")
	}
	if err := Free(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "not allocated") {
		t.Errorf("memory of the heap: %v", err)
	}
}

// TestFreedMemoryLeaves shows that blocks are taken from the system when they
// are written and given back when they are freed.
func TestFreedMemoryLeaves(t *testing.T) {
	resident := func() int64 {
		n, err := Resident()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const size, slack = 12 << 20, 6 << 20
	before := resident()
	a, err := Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Alloc(2 * size) // has a region of its own
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		a[i], b[i], b[size+i] = 1, 1, 1
	}
	if grown := resident() - before; grown < 3*size-slack {
		t.Errorf("writing %d bytes made %d resident", 3*size, grown)
	}
	for _, block := range [][]byte{a, b} {
		if err := Free(block); err != nil {
			t.Fatal(err)
		}
	}
	if kept := resident() - before; kept > slack {
		t.Errorf("%d bytes are resident after all was freed", kept)
	}
}

func TestAvailable(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	const meminfo = "MemTotal:       24684084 kB\nMemFree:        20161692 kB\nMemAvailable:   1000000 kB\n"
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want int64 // -1 is an error
	}{
		{"no groups", fstest.MapFS{"proc/meminfo": file(meminfo)}, 1024e6},
		{"nothing known", fstest.MapFS{"proc/meminfo": file("MemTotal: 12 kB\n")}, -1},
		{"no proc", fstest.MapFS{}, -1},
		{"version 2, a limit above the group", fstest.MapFS{
			"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/b/memory.current": file("5\n"),
			"sys/fs/cgroup/a/memory.max": file("1000\n"), "sys/fs/cgroup/a/memory.current": file("700\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 500\ninactive_file 150\n"),
		}, 450},
		{"version 2, used up", fstest.MapFS{
			"proc/meminfo": file(meminfo), "proc/self/cgroup": file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("1000\n"), "sys/fs/cgroup/memory.current": file("1200\n"),
		}, 0},
		{"version 1, no limit", fstest.MapFS{
			"proc/meminfo": file(meminfo), "proc/self/cgroup": file("5:cpuset:/\n4:memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("9223372036854771712\n"),
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": file("100\n"),
		}, 1024e6},
		{"version 1, in a container that does not show the path", fstest.MapFS{
			"proc/meminfo": file(meminfo), "proc/self/cgroup": file("4:cpu,memory:/docker/abc\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("5000\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("2000\n"),
			"sys/fs/cgroup/memory/memory.stat":           file("total_inactive_file 9000\n"),
		}, 5000},
	} {
		got, err := available(c.root)
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
	if got, err := Available(); err != nil || got <= 0 {
		t.Errorf("this machine: %d, %v", got, err)
	}
}

func TestResident(t *testing.T) {
	page := int64(os.Getpagesize())
	for text, want := range map[string]int64{"100 25 3 1 0 2 0\n": 25 * page, "100": -1, "100 x 3": -1, "": -1} {
		got, err := resident(fstest.MapFS{"proc/self/statm": &fstest.MapFile{Data: []byte(text)}})
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}
