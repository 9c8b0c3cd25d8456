package telemetry

import "testing"

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		in   string
		want processorTime
		ok   bool
	}{
		{"cpu  19905 7 5933 185413 1694 3 65 39 100 50\ncpu0 1 1 1 1\n", processorTime{19905 + 7 + 5933 + 3 + 65 + 39, 19905 + 7 + 5933 + 185413 + 1694 + 3 + 65 + 39}, true},
		{"cpu 1 2 3 4\n", processorTime{6, 10}, true}, // kernel 2.4
		{"cpu 1 2 3 4 5 6", processorTime{}, false},   // cut in the middle of a number, perhaps
		{"cpu0 1 2 3 4\n", processorTime{}, false},
		{"cpu 1 2 x 4 5\n", processorTime{}, false},
		{"cpu 1 2 3\n", processorTime{}, false},
		{"", processorTime{}, false},
	} {
		if got, ok := parseStat([]byte(c.in)); got != c.want || ok != c.ok {
			t.Errorf("parseStat(%q) = %+v, %v; want %+v, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestParseStatm(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint64
		ok   bool
	}{{"765 423 395 5 0 123 0\n", 423, true}, {"765", 0, false}, {"1 -2 3", 0, false}, {"", 0, false}} {
		if got, ok := parseStatm([]byte(c.in)); got != c.want || ok != c.ok {
			t.Errorf("parseStatm(%q) = %d, %v", c.in, got, ok)
		}
	}
}

func TestParseMeminfo(t *testing.T) {
	const good = "MemTotal:        1024 kB\nMemFree:  10 kB\nMemAvailable:    256 kB\nBuffers:"
	total, available, ok := parseMeminfo([]byte(good))
	if total != 1<<20 || available != 256<<10 || !ok {
		t.Errorf("total %d, available %d, %v", total, available, ok)
	}
	for _, in := range []string{"", "MemTotal: 1024 kB\n", "MemAvailable: 1 kB\n", "MemTotal: 1 kB\nMemAvailable: 2 kB\n", "MemTotal: 99999999999999999999 kB\nMemAvailable: 0 kB\n"} {
		if _, _, ok := parseMeminfo([]byte(in)); ok {
			t.Errorf("parseMeminfo(%q) is accepted", in)
		}
	}
}

func FuzzProc(f *testing.F) {
	f.Add([]byte("cpu 1 2 3 4 5 6 7 8 9 10\n"))
	f.Add([]byte("1 2 3"))
	f.Add([]byte("MemTotal: 5 kB\nMemAvailable: 3 kB\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		parseStat(in)
		parseStatm(in)
		if total, available, ok := parseMeminfo(in); ok && available > total {
			t.Fatalf("available %d of %d", available, total)
		}
	})
}
