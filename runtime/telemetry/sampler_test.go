package telemetry

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/kernels/team"
)

// burn keeps one processor busy until this process has used d more of it.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	start, ok := processCPU()
	if !ok {
		t.Skip("this platform does not tell the processor time of a process")
	}
	for x := 1.0; ; {
		for range 100_000 {
			x = x*1.0000001 + 1e-9
		}
		if now, _ := processCPU(); now-start >= d {
			if x < 0 {
				t.Fatal(x)
			}
			return
		}
	}
}

// The clock of the test says what the interval was, so the figure does not
// depend on the machine: at least 60 ms of work in 200 ms by that clock.
func TestProcessRate(t *testing.T) {
	clock := time.Unix(0, 0)
	s := newSampler(func() time.Time { return clock }, openHost(), gpuReader{})
	defer s.Close()

	if first := s.Sample(); first.CPU.Process.Known || first.CPU.Machine.Known || first.Interval != 0 {
		t.Errorf("rates without an interval: %+v", first)
	}
	burn(t, 60*time.Millisecond)
	before := s.since
	clock = clock.Add(200 * time.Millisecond)
	got := s.Sample()
	want := float64(s.since.process-before.process) / float64(200*time.Millisecond)
	if !got.CPU.Process.Known || got.CPU.Process.Value != want || want < 0.3 || got.Interval != 200*time.Millisecond {
		t.Errorf("sample %+v, want %v processors over 200 ms", got, want)
	}

	// Too soon: the same rates, and the interval goes on.
	clock = clock.Add(minInterval - 1)
	if soon := s.Sample(); soon.CPU != got.CPU || soon.Interval != got.Interval {
		t.Errorf("sample after %v gives %+v, want %+v", minInterval-1, soon.CPU, got.CPU)
	}
	clock = clock.Add(1)
	if next := s.Sample(); next.Interval != minInterval {
		t.Errorf("interval %v, want %v", next.Interval, minInterval)
	}
}

func TestMachineRate(t *testing.T) {
	s := &Sampler{}
	at := func(busy, total uint64) counters {
		return counters{machine: processorTime{busy, total}, machOK: true}
	}
	for _, c := range []struct {
		from, to counters
		want     Reading
	}{
		{at(100, 1000), at(150, 1200), known(0.25)},
		{at(100, 1000), at(300, 1200), known(1)},
		{at(100, 1000), at(100, 1200), known(0)},
		{at(100, 1000), at(100, 1000), Reading{}}, // the clock has not ticked
		{at(100, 1000), at(90, 1200), Reading{}},  // a processor went offline
		{counters{}, at(100, 1000), Reading{}},
		{at(100, 1000), counters{}, Reading{}},
	} {
		s.since = c.from
		if got := s.rates(c.to, time.Second).Machine; got != c.want {
			t.Errorf("%+v to %+v gives %+v, want %+v", c.from.machine, c.to.machine, got, c.want)
		}
	}
}

// What this machine really says.
func TestThisMachine(t *testing.T) {
	s := NewSampler()
	defer s.Close()
	ballast := make([]byte, 32<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	got := s.Sample()
	if got.Memory.Process < uint64(len(ballast)) {
		t.Errorf("process memory %d is less than what it holds", got.Memory.Process)
	}
	if got.CPU.Cores != team.Machine() {
		t.Errorf("%d cores", got.CPU.Cores)
	}
	if (len(got.GPUs) == 0) != (got.GPUNote != "") {
		t.Errorf("GPUs %+v with note %q", got.GPUs, got.GPUNote)
	}
	if runtime.GOOS == "linux" {
		if got.Memory.Kind != Resident || got.Memory.Used == 0 || got.Memory.Used > got.Memory.Total || got.Memory.Process > got.Memory.Total {
			t.Errorf("memory %+v", got.Memory)
		}
		if _, ok := s.host.processors(); !ok {
			t.Error("/proc/stat could not be read")
		}
	}
	runtime.KeepAlive(ballast)
}

// The portable figure, used where the platform tells no resident set.
func TestGoMemory(t *testing.T) {
	ballast := make([]byte, 16<<20)
	if got := goMemory(); got < uint64(len(ballast)) {
		t.Errorf("Go memory %d is less than what it holds", got)
	}
	runtime.KeepAlive(ballast)
}

func TestSnapshotJSON(t *testing.T) {
	want := Snapshot{
		Interval: time.Second,
		CPU:      CPU{Cores: 2, Process: known(1.5)},
		Memory:   Memory{Process: 5, Kind: Resident, Used: 6, Total: 7},
		GPUs:     []GPU{{Index: 1, Name: "g", Util: known(0), MemoryTotal: 9}},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const form = `{"interval_ns":1000000000,"cpu":{"cores":2,"process":1.5,"machine":null},` +
		`"memory":{"process":5,"kind":"rss","used":6,"total":7},` +
		`"gpus":[{"index":1,"name":"g","util":0,"memory_used":0,"memory_total":9,"power_w":null}]}`
	if string(text) != form {
		t.Errorf("JSON %s, want %s", text, form)
	}
	var back Snapshot
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`"x"`), &back.CPU.Process); err == nil {
		t.Error("a text was read as a figure")
	}
}

func BenchmarkSample(b *testing.B) {
	s := NewSampler()
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s.Sample()
	}
}
