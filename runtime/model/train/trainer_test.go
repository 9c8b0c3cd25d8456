package train

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/kernels/cpu"
)

// small is a configuration that learns in a moment.
func small(workers int) Config {
	cfg := Default(Shape{Hidden: 16, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 24, Vocab: 24})
	cfg.Workers, cfg.Tokens, cfg.Schedule = workers, 256, Schedule{Steps: 120, Fall: 60}
	return cfg
}

// copying is a stream of sequences whose second half repeats the first; the
// repetition is to be learnt.
func copying(seed uint64) func() Example {
	r := random{state: seed}
	return func() Example {
		const half = 4
		e := Example{make([]int32, 2*half+1), make([]bool, 2*half+1)}
		for i := range half {
			e.IDs[i] = int32(1 + r.next()%8)
			e.IDs[half+1+i] = e.IDs[i]
			e.Learn[half+1+i] = true
		}
		return e
	}
}

// trained is a trainer after some steps.
func trained(t *testing.T, cfg Config, next func() Example, steps int) *Trainer {
	t.Helper()
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	advance(t, tr, next, steps)
	return tr
}

// advance does steps and gives the mean loss of the last ten.
func advance(t *testing.T, tr *Trainer, next func() Example, steps int) (loss float64) {
	t.Helper()
	for i := range steps {
		r, err := tr.Step(next)
		if err != nil {
			t.Fatal(err)
		}
		if i >= steps-10 {
			loss += r.Loss / 10
		}
	}
	return loss
}

// TestLearns: a model that copies what it has seen.
func TestLearns(t *testing.T) {
	cfg := small(2)
	cfg.Schedule = Schedule{Steps: 300, Fall: 100}
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	next := copying(1)
	first := advance(t, tr, next, 10)
	last := advance(t, tr, next, 290)
	if first < 2.5 || last > 0.2 {
		t.Errorf("the loss is %.3f at first (ln 24 is 3.18) and %.3f after 300 steps", first, last)
	}
	unseen := copying(99)
	var examples []Example
	for range 50 {
		examples = append(examples, unseen())
	}
	s, err := tr.Score(examples)
	if err != nil {
		t.Fatal(err)
	}
	exact := 0
	for _, ok := range s.Exact {
		if ok {
			exact++
		}
	}
	if s.Loss > 0.2 || exact < 35 {
		t.Errorf("of 50 sequences that it did not learn %d are copied, loss %.3f", exact, s.Loss)
	}
	if tr.Progress() != 1 || tr.Steps() != 300 {
		t.Errorf("%d steps, progress %v", tr.Steps(), tr.Progress())
	}
}

// TestSameBytes: weights are a function of configuration and examples, on both
// levels of assembly and with any number of processors.
func TestSameBytes(t *testing.T) {
	for _, workers := range []int{1, 3} {
		want := trained(t, small(workers), copying(5), 30)
		if again := trained(t, small(workers), copying(5), 30); !slices.Equal(again.w, want.w) {
			t.Errorf("%d workers: the weights of a second run are others", workers)
		}
		for level := cpu.AVX2; level <= cpu.Best(); level++ {
			restore := cpu.Force(level)
			got := trained(t, small(workers), copying(5), 30)
			restore()
			if !slices.Equal(got.w, want.w) {
				t.Errorf("%d workers, level %v: the weights are others", workers, level)
			}
		}
	}
}

// TestWorkersShareOneGradient: what workers compute together is the gradient of
// all their examples.
func TestWorkersShareOneGradient(t *testing.T) {
	s := toys[0]
	r := random{state: 4}
	var examples []Example
	for range 6 {
		examples = append(examples, noise(&r, 10, s.Vocab))
	}
	one, three := toy(t, s, 1), toy(t, s, 3)
	one.cfg.Tokens, three.cfg.Tokens = 60, 60
	for _, tr := range []*Trainer{one, three} {
		i := 0
		if _, err := tr.Step(func() Example { i++; return examples[i-1] }); err != nil {
			t.Fatal(err)
		}
	}
	a, b := one.passes[0].grad, three.passes[0].grad
	largest := 0.0
	for _, g := range a {
		largest = max(largest, math.Abs(float64(g)))
	}
	for i := range a {
		if d := math.Abs(float64(a[i] - b[i])); d > 1e-5*largest {
			t.Fatalf("gradient %d is %v with one worker and %v with three", i, a[i], b[i])
		}
	}
}

// TestResume: a run that was saved and resumed ends with the same bytes.
func TestResume(t *testing.T) {
	next := copying(8)
	whole := trained(t, small(2), next, 40)
	next = copying(8)
	half := trained(t, small(2), next, 15)
	path := filepath.Join(t.TempDir(), "state")
	if err := half.Save(path, "a note"); err != nil {
		t.Fatal(err)
	}
	tr, note, err := Resume(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if note != "a note" || tr.Steps() != 15 || tr.Config() != half.Config() {
		t.Errorf("note %q, %d steps, %+v", note, tr.Steps(), tr.Config())
	}
	advance(t, tr, next, 25)
	if !slices.Equal(tr.w, whole.w) || !slices.Equal(tr.moments.second, whole.moments.second) {
		t.Error("the weights are others than without a stop")
	}
	if more, _, err := Resume(path, 5); err != nil || more.Config().Workers != 5 || len(more.passes) != 5 {
		t.Errorf("it does not go on with five workers: %v", err)
	}
	if err := tr.SetSchedule(Schedule{Steps: 50, Fall: 40}); err != nil || tr.Progress() != 0.8 {
		t.Errorf("progress %v of the new schedule, %v", tr.Progress(), err)
	}
}

// TestSchedule: the rates rise, stay and fall to a hundredth.
func TestSchedule(t *testing.T) {
	s := Schedule{Steps: 1000, Fall: 600}
	for step, want := range map[int]float64{0: 0.02, 24: 0.5, 49: 1, 500: 1, 600: 1, 800: 0.5, 900: 0.25, 999: 0.01} {
		if got := s.rate(step); math.Abs(got-want) > 1e-9 {
			t.Errorf("step %d has %v of the rate, want %v", step, got, want)
		}
	}
}

// TestOrthogonal: singular values come close to 1 from wherever they are, which is
// what the coefficients promise: between 0.6 and 1.3 (Jordan et al. 2024).
func TestOrthogonal(t *testing.T) {
	const rows, cols = 8, 24
	r := random{state: 6}
	var o muon
	o.x, o.y = make([]float32, rows*cols), make([]float32, rows*cols)
	for i := range o.x {
		o.x[i] = float32(r.normal())
	}
	o.orthogonal(rows, cols)
	for i := range rows {
		for j := range rows {
			sum := 0.0
			for k := range cols {
				sum += float64(o.x[i*cols+k]) * float64(o.x[j*cols+k])
			}
			if i == j && (sum < 0.36 || sum > 1.7) || i != j && math.Abs(sum) > 0.4 {
				t.Errorf("row %d times row %d is %.3f", i, j, sum)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"heads":   {func(c *Config) { c.Shape.KVHeads = 3 }, "cannot share"},
		"odd":     {func(c *Config) { c.Shape.HeadDim = 7 }, "no two halves"},
		"layers":  {func(c *Config) { c.Shape.Layers = 0 }, "layers 0"},
		"workers": {func(c *Config) { c.Workers = 0 }, "0 workers"},
		"tokens":  {func(c *Config) { c.Tokens = 1 }, "steps of 1 tokens"},
		"fall":    {func(c *Config) { c.Schedule.Fall = 121 }, "falls from step 121"},
		"rate":    {func(c *Config) { c.Muon = math.NaN() }, "learning rates"},
	} {
		cfg := small(2)
		c.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr := trained(t, small(1), copying(1), 1)
	for name, c := range map[string]struct {
		e    Example
		want string
	}{
		"short":   {Example{[]int32{1}, []bool{false}}, "of 1 tokens"},
		"marks":   {Example{[]int32{1, 2}, []bool{true}}, "2 tokens and 1 marks"},
		"unknown": {Example{[]int32{1, 24}, []bool{false, true}}, "token 24"},
		"nothing": {Example{[]int32{1, 2}, []bool{true, false}}, "nothing to learn"},
		"long":    {Example{make([]int32, 514), make([]bool, 514)}, "of 514 tokens"},
	} {
		if _, err := tr.Step(func() Example { return c.e }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Resume(filepath.Join(t.TempDir(), "none"), 0); err == nil || !strings.Contains(err.Error(), "no training to go on with") {
		t.Errorf("a state that is not there: %v", err)
	}
}

func TestParseShape(t *testing.T) {
	for text, params := range map[string]int{"37k": 36800, "114k": 113536, "842k": 842112, "3.7m": 3710944, "32, 2,4,2,8,88": 36800} {
		s, err := ParseShape(text, 424)
		if err != nil || s.Params() != params {
			t.Errorf("%q has %d weights, want %d: %v", text, s.Params(), params, err)
		}
	}
	for _, text := range []string{"", "1b", "1,2,3", "32,2,4,2,8,x", "32,2,4,3,8,88"} {
		if _, err := ParseShape(text, 424); err == nil {
			t.Errorf("%q is a shape", text)
		}
	}
}
