package bench

import (
	"math"
	"runtime/metrics"
	"strings"
	"testing"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/limits"
	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
)

// load loads an embedded model in a format.
func loadTiny(t testing.TB, name, format string) *Model {
	t.Helper()
	c, err := tiny.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := Load(c, model.Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// quick takes as few samples as there can be.
func quick() Options {
	return Options{Cores: []int{1, 2}, Batches: []int{1, 3}, Prompt: 20, Context: 18, Time: 1}
}

func TestMeasure(t *testing.T) {
	m := loadTiny(t, "tiny-37k", "q8")
	var seen []string
	o := quick()
	o.Progress = func(what string) { seen = append(seen, what) }
	machines, steps, err := Measure(m, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(machines) != 2 || len(steps) != 6 || len(seen) != 8 {
		t.Fatalf("%d machines, %d steps, %d notices", len(machines), len(steps), len(seen))
	}
	for i, s := range steps {
		want := Step{Phase: "decode", Cores: 1 + i/3, Batch: []int{1, 1, 3}[i%3], Tokens: 1, Context: 18}
		if i%3 == 0 {
			want.Phase, want.Tokens, want.Context = "prefill", 20, 0
		}
		got := s
		got.Seconds, got.TokensPerSecond, got.BytesPerSecond, got.OpsPerSecond, got.Limit, got.Fraction, got.Samples, got.Disturbed = 0, 0, 0, 0, "", 0, 0, 0
		if got != want {
			t.Errorf("step %d is %+v, want %+v", i, got, want)
		}
		l := m.work.step(s.Batch, s.Tokens, s.Context)
		near(t, "tokens", s.TokensPerSecond*s.Seconds, float64(s.Batch*s.Tokens))
		near(t, "bytes", s.BytesPerSecond*s.Seconds, float64(l.bytes))
		near(t, "operations", s.OpsPerSecond*s.Seconds, l.total())
		if s.Seconds <= 0 || s.Fraction <= 0 || s.Limit == "" || s.Samples < 2 {
			t.Errorf("step %d is %+v", i, s)
		}
	}
	for i, c := range machines {
		if c.Cores != 1+i || c.Level != cpu.Current().String() || c.Buffer != 1<<20 || c.Read.PerSecond <= 0 || c.Int8.PerSecond <= 0 {
			t.Errorf("%+v", c)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestRefused(t *testing.T) {
	m := loadTiny(t, "tiny-37k", "")
	for _, o := range []Options{{Cores: []int{0}}, {Batches: []int{-1}}, {Prompt: -1}, {Context: -5}, {Time: -1}} {
		if _, _, err := Measure(m, o); err == nil {
			t.Errorf("%+v is measured", o)
		}
	}
}

// TestWork counts what a step does against the shape of the model.
func TestWork(t *testing.T) {
	m := loadTiny(t, "tiny-37k", "q8")
	c := &m.Config
	gate := (c.FFN + 7) / 8 * 8
	layer := c.Hidden*(c.Heads+2*c.KVHeads)*c.HeadDim + c.Heads*c.HeadDim*c.Hidden + c.Hidden*2*gate + c.FFN*c.Hidden
	head := c.Vocab * c.Hidden
	product := 2 * float64(c.Layers*layer+head)
	pair := 4 * float64(c.Layers*c.Heads*c.HeadDim) // one query against one position

	l := m.work.step(3, 1, 10)
	near(t, "products of 3 rows", l.ops[limits.Int16], 3*product)
	near(t, "their attention", l.ops[limits.Float], 3*11*pair)
	near(t, "bytes", float64(l.bytes), float64(m.Weights()+3*11*int64(m.KVBytes())))

	// In the last layer only the last token of a prompt goes past the keys and
	// values.
	l = m.work.step(1, 5, 0)
	late := 2 * float64(layer-c.Hidden*(c.Heads+2*c.KVHeads)*c.HeadDim)
	near(t, "products of a prompt", l.ops[limits.Int16], 5*(product-2*float64(head))-4*late+2*float64(head))
	near(t, "its attention", l.ops[limits.Float], pair*(15*float64(c.Layers-1)+5)/float64(c.Layers))

	for f, want := range map[matmul.Format]limits.Kind{
		matmul.F32: limits.Float, matmul.F16: limits.Float, matmul.BF16: limits.Float, matmul.Q8: limits.Int16, matmul.Q4: limits.Int8,
	} {
		if got := kindOf(f); got != want {
			t.Errorf("%v is %v, want %v", f, got, want)
		}
	}
}

func TestBound(t *testing.T) {
	machine := &limits.Limits{Read: limits.Rate{PerSecond: 100}}
	machine.Peak[limits.Float].PerSecond = 10
	machine.Peak[limits.Int16].PerSecond = 20
	machine.Peak[limits.Int8].PerSecond = 40
	for _, c := range []struct {
		l       load
		seconds float64
		by      string
	}{
		{load{bytes: 500, ops: [3]float64{10, 20, 0}}, 5, "read"},
		{load{bytes: 100, ops: [3]float64{10, 20, 20}}, 2.5, "f32"},
		{load{bytes: 100, ops: [3]float64{10, 60, 40}}, 5, "int16"},
		{load{bytes: 0, ops: [3]float64{0, 0, 40}}, 1, "int8"},
	} {
		if s, by := c.l.bound(machine); s != c.seconds || by != c.by {
			t.Errorf("%+v: %v s by %s, want %v s by %s", c.l, s, by, c.seconds, c.by)
		}
	}
}

func TestMeasureShare(t *testing.T) {
	a, b := loadTiny(t, "tiny-37k", ""), loadTiny(t, "tiny-114k", "q8")
	s, err := MeasureShare(a, b, 2, 2, quick())
	if err != nil {
		t.Fatal(err)
	}
	if s.Cores != 2 || s.Batch != 2 || s.Solo[0] <= 0 || s.Both[1] <= 0 || s.All <= 0 {
		t.Errorf("%+v", s)
	}
	for i := range s.Kept {
		near(t, "kept", s.Kept[i], s.Both[i]/s.Solo[i])
	}
	near(t, "gain", s.Gain, s.All/s.Solo[1])
}

func TestMeasurePauses(t *testing.T) {
	p, err := MeasurePauses(loadTiny(t, "tiny-37k", ""), 2, 2, quick())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []Quantiles{p.Decoding.Stopping, p.Decoding.Total, p.PlainGo.Stopping, p.PlainGo.Total} {
		if q.Median <= 0 || q.Median > q.P99 || q.P99 > q.Max {
			t.Errorf("quantiles %+v", q)
		}
	}
	if p.Collections != 50 || p.Decoding.Total.Max < p.Decoding.Stopping.Median {
		t.Errorf("%+v", p)
	}
}

func TestQuantiles(t *testing.T) {
	h := func(n ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: n, Buckets: []float64{0, 1, 2, 4, math.Inf(1)}}
	}
	var c counts
	if got := c.quantiles(); got != (Quantiles{}) {
		t.Errorf("of nothing: %+v", got)
	}
	c.add(nil, nil)
	c.add(h(5, 5, 5, 0), h(65, 44, 5, 0))
	c.add(h(0, 0, 0, 0), h(0, 0, 1, 0))
	if got := c.quantiles(); got != (Quantiles{1, 2, 4}) {
		t.Errorf("%+v", got)
	}
	c.add(h(0, 0, 0, 0), h(0, 0, 0, 1))
	if got := c.quantiles().Max; got != 4 {
		t.Errorf("without an upper bound: %v", got)
	}
}

func TestUnknownFormat(t *testing.T) {
	c, err := tiny.Open("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := Load(c, model.Options{Format: "q9"}); err == nil || !strings.Contains(err.Error(), "q9") {
		t.Errorf("q9: %v", err)
	}
}
