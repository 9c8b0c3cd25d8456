package limits

import (
	"strings"
	"testing"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/team"
)

// TestEveryLevel measures with one and two cores at every level that the machine
// has: a loop of that level is found for everything.
func TestEveryLevel(t *testing.T) {
	for level := cpu.Go; level <= cpu.Best(); level++ {
		for cores := 1; cores <= 2; cores++ {
			t.Run(level.String(), func(t *testing.T) {
				defer cpu.Force(level)()
				c := team.New(cores)
				defer c.Close()
				l, err := Measure(c.Seat(), Options{Buffer: 3<<20 + 5, Time: 1})
				if err != nil {
					t.Fatal(err)
				}
				if l.Cores != cores || l.Level != level || l.Samples == 0 || l.Disturbed > l.Samples {
					t.Errorf("%+v", l)
				}
				for kind, r := range append([]Rate{l.Read}, l.Peak[:]...) {
					if r.PerSecond <= 0 || strings.HasPrefix(r.Loop, "go,") != (level == cpu.Go) {
						t.Errorf("%d: %+v", kind, r)
					}
				}
			})
		}
	}
}

func TestAlone(t *testing.T) {
	if l, err := Measure(nil, Options{Buffer: itemBytes, Time: 1}); err != nil || l.Cores != 1 {
		t.Errorf("without a seat: %+v, %v", l, err)
	}
}

func TestMeasureRefuses(t *testing.T) {
	for _, o := range []Options{{Buffer: itemBytes - 1}, {Buffer: -1}, {Time: -1}, {Buffer: 1 << 60}} {
		if _, err := Measure(nil, o); err == nil {
			t.Errorf("%+v is measured", o)
		}
	}
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		runs      []run
		seconds   float64
		disturbed int
	}{
		"the median":                      {[]run{{3, 0, true}, {1, 0, true}, {2, 0, true}}, 2, 0},
		"who lost a core does not count":  {[]run{{3, 2, true}, {9, 2, false}, {4, 2, true}, {8, 2, false}, {5, 2, true}}, 4, 2},
		"nor who computed less together":  {[]run{{3, 1.99, true}, {6, 1, true}, {4, 2, true}, {6, 1.8, true}, {5, 1.95, true}}, 4, 2},
		"with nothing left, the fastest":  {[]run{{3, 2, false}, {2, 2, false}}, 2, 2},
		"a core that idles in every run":  {[]run{{3, 1.2, true}, {2, 1.2, true}, {4, 1.2, true}}, 3, 0},
		"no time at all is still a time":  {[]run{{0, 0, true}, {0, 0, true}}, 1e-9, 0},
		"the best share is of a lost run": {[]run{{3, 2, false}, {7, 1, true}}, 3, 2},
	} {
		if got := judge(c.runs); got.Seconds != c.seconds || got.Samples != len(c.runs) || got.Disturbed != c.disturbed {
			t.Errorf("%s: %+v; want %v s, %d disturbed", name, got, c.seconds, c.disturbed)
		}
	}
}

// TestProbe measures again with the loops that were best.
func TestProbe(t *testing.T) {
	c := team.New(2)
	defer c.Close()
	p, err := Open(c.Seat(), Options{Buffer: 2 * itemBytes, Time: 1})
	if err != nil {
		t.Fatal(err)
	}
	first, second := p.Measure(1), p.Measure(1)
	if first.Read.Loop != second.Read.Loop || first.Peak[Int16].Loop != second.Peak[Int16].Loop || second.Samples == 0 {
		t.Errorf("%+v, then %+v", first, second)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestBest(t *testing.T) {
	a, b := &Limits{Read: Rate{"a", 3}, Samples: 2}, &Limits{Read: Rate{"b", 2}, Samples: 5, Disturbed: 1}
	a.Peak[Int8], b.Peak[Int8] = Rate{"a", 1}, Rate{"b", 4}
	if got := Best(a, b); got.Read.Loop != "a" || got.Peak[Int8].Loop != "b" || got.Samples != 7 || got.Disturbed != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTimeRunsAtLeastTwice(t *testing.T) {
	for cores := 1; cores <= 2; cores++ {
		ran := 0
		got := Time(cores, 0, func() { ran++ })
		if ran != 3 || got.Samples != 2 || got.Seconds <= 0 {
			t.Errorf("%d cores: %d runs, %+v", cores, ran, got)
		}
	}
}

func TestKinds(t *testing.T) {
	var all []string
	for k := range kinds + 1 {
		all = append(all, k.String())
	}
	if got := strings.Join(all, " "); got != "f32 int16 int8 Kind(3)" {
		t.Error(got)
	}
}

// BenchmarkLoops gives each loop at its work: operations of the peaks, bytes of
// the readers from memory that the caches hold.
func BenchmarkLoops(b *testing.B) {
	for _, p := range peaks {
		if p.level > cpu.Best() {
			continue
		}
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				p.run(itemSteps)
			}
			b.ReportMetric(float64(p.ops*itemSteps)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
	}
	buffer := make([]byte, itemBytes)
	for _, r := range readers {
		if r.level > cpu.Best() {
			continue
		}
		b.Run(r.name, func(b *testing.B) {
			b.SetBytes(itemBytes)
			for b.Loop() {
				r.run(buffer)
			}
		})
	}
}
