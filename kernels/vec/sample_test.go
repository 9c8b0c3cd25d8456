package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
)

// slack is how near u*total is to the borders of the token that was drawn, or
// the end of the nucleus to topP, relative to all: 0 or less means that id is
// the token by the definition.
func slack(logits []float32, p kernels.SampleParams, u float64, id int32) float64 {
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, float64(l))
	}
	order := make([]int, 0, len(logits))
	weight := make([]float64, len(logits))
	for i, l := range logits {
		if weight[i] = math.Exp((float64(l) - top) / float64(p.Temperature)); weight[i] > 0 {
			order = append(order, i)
		}
	}
	total := func() (s float64) {
		for _, i := range order {
			s += weight[i]
		}
		return s
	}
	byWeight := func() {
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return 0
		})
	}
	if p.TopK > 0 && p.TopK < len(order) {
		byWeight()
		order = order[:p.TopK]
	}
	loose := math.Inf(1)
	if p.TopP > 0 && p.TopP < 1 {
		byWeight()
		all := total()
		acc := 0.0
		for n, i := range order {
			acc += weight[i] / all
			loose = math.Min(loose, math.Abs(acc-float64(p.TopP)))
			if acc >= float64(p.TopP) {
				order = order[:n+1]
				break
			}
		}
	}
	all, acc := total(), 0.0
	for _, i := range order {
		from := acc
		acc += weight[i] / all
		if i == int(id) {
			return math.Min(loose, math.Max(from-u, u-acc))
		}
	}
	return loose // not in the nucleus: right only if its end was a matter of rounding
}

func TestSampleOracle(t *testing.T) {
	var s Sampler
	rapid.Check(t, func(t *rapid.T) {
		level := cpu.Level(rapid.IntRange(0, int(cpu.Best())).Draw(t, "level"))
		defer cpu.Force(level)()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		logits := row(r, rapid.IntRange(1, 900).Draw(t, "V"), rapid.Float64Range(0.1, 20).Draw(t, "spread"))
		p := kernels.SampleParams{
			Temperature: rapid.Float32Range(0.05, 3).Draw(t, "temperature"),
			TopK:        rapid.IntRange(-1, 1000).Draw(t, "top_k"),
			TopP:        rapid.Float32Range(-0.1, 1.1).Draw(t, "top_p"),
		}
		if rapid.Bool().Draw(t, "few") {
			p.TopK %= 50
		}
		u := rapid.Float64Range(0, 0.999999).Draw(t, "u")
		got, err := s.Sample(logits, p, u)
		if err != nil {
			t.Fatal(err)
		}
		if p.TopK == 1 {
			if want, _ := kernels.Argmax(logits); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			return
		}
		if d := slack(logits, p, u, got); !(d < 3e-6) {
			t.Fatalf("got %d, which is %v away", got, d)
		}
	})
}

// The draws are those of kernels.Sampler at a vocabulary of full size.
func TestSampleLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	var s Sampler
	var old kernels.Sampler
	for _, spread := range []float64{0.2, 3} {
		logits := row(r, 151936, spread)
		for _, p := range []kernels.SampleParams{
			{Temperature: 1},
			{Temperature: 0.3},
			{Temperature: 1, TopK: 40},
			{Temperature: 1, TopK: 3000},
			{Temperature: 0.7, TopK: 151935},
			{Temperature: 1, TopP: 0.95},
			{Temperature: 0.6, TopK: 20, TopP: 0.95},
			{Temperature: 1, TopP: 1e-6},
			{Temperature: 1.5, TopP: 0.9999},
			{Temperature: float32(math.Inf(1))},
			{Temperature: 1e-42},
			{},
		} {
			for range 4 {
				u := r.Float64()
				got, err := s.Sample(logits, p, u)
				want, _ := old.Sample(logits, p, u)
				if err != nil {
					t.Fatal(err)
				}
				if got != want && !(p.Temperature > 0 && slack(logits, p, u, got) < 3e-6) {
					t.Errorf("spread %v, %+v, u %v: got %d, want %d", spread, p, u, got, want)
				}
			}
		}
	}
}

// One row has one draw, at every level.
func TestSampleBits(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	var s Sampler
	for range 300 {
		logits, u := row(r, 1+r.IntN(2000), 3), r.Float64()
		for _, p := range []kernels.SampleParams{{Temperature: 1}, {Temperature: 0.9, TopK: 1 + r.IntN(300)}, {Temperature: 1.2, TopP: r.Float32()}} {
			alike(t, "a draw", func() []float32 {
				id, err := s.Sample(guarding(logits, r.IntN(8)).x, p, u)
				if err != nil {
					t.Fatal(err)
				}
				return []float32{float32(id)}
			})
		}
	}
}

// With u on a regular grid every token gets its share to within one grid step.
func TestSampleFrequencies(t *testing.T) {
	logits := []float32{0.5, -1, 2, 0, 1.5, -3}
	const grid = 10000
	var s Sampler
	count := make([]float64, len(logits))
	for i := range grid {
		id, err := s.Sample(logits, kernels.SampleParams{Temperature: 0.7, TopK: 4}, (float64(i)+0.5)/grid)
		if err != nil {
			t.Fatal(err)
		}
		count[id]++
	}
	var sum float64
	want := make([]float64, len(logits))
	for _, i := range []int{0, 2, 3, 4} {
		want[i] = math.Exp(float64(logits[i]) / 0.7)
		sum += want[i]
	}
	for i := range want {
		if math.Abs(count[i]-want[i]/sum*grid) > 1 {
			t.Errorf("token %d drawn %v times, want %.1f", i, count[i], want[i]/sum*grid)
		}
	}
}

func TestSampleErrors(t *testing.T) {
	levels(t, func(t *testing.T) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		var s Sampler
		bad := slices.Repeat([]float32{1}, 100)
		bad[71] = nan
		for name, row := range map[string][]float32{"empty": {}, "NaN": bad, "inf": {0, inf, 1}, "allless": {-inf, -inf}} {
			_, err := s.Sample(row, kernels.SampleParams{Temperature: 1, TopK: 2, TopP: 0.5}, 0.5)
			if _, want := kernels.Argmax(row); err == nil || err.Error() != want.Error() {
				t.Errorf("%s: got error %v, want %v", name, err, want)
			}
		}
		for _, p := range []kernels.SampleParams{{Temperature: nan}, {Temperature: 1, TopP: nan}} {
			if _, err := s.Sample([]float32{1, 2}, p, 0); err == nil || !strings.Contains(err.Error(), "numbers are needed") {
				t.Errorf("%+v: %v", p, err)
			}
		}
		for _, u := range []float64{-0.1, 1, math.NaN()} {
			if _, err := s.Sample([]float32{1, 2}, kernels.SampleParams{Temperature: 1}, u); err == nil {
				t.Errorf("u %v is accepted", u)
			}
		}
	})
}

// What reach finds is what sorting and adding up gives.
func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 200).Draw(t, "weights")
		cand := make([]candidate, len(w))
		sum := 0.0
		for i, v := range w {
			cand[i] = candidate{int32(i), float32(v), float64(v)}
			sum += float64(v)
		}
		want := slices.Clone(cand)
		slices.SortFunc(want, falling)
		goal := rapid.Float64Range(0, 1.1).Draw(t, "share") * sum
		end, acc := len(want)-1, 0.0
		for i, c := range want {
			if acc+c.weight >= goal || i == len(want)-1 {
				end = i
				break
			}
			acc += c.weight
		}
		got, before := reach(cand, func(s float64) bool { return s >= goal })
		prefix := slices.Clone(cand[:got+1])
		slices.SortFunc(prefix, falling)
		if got != end || before != acc || cand[got] != want[end] || !slices.Equal(prefix, want[:end+1]) {
			t.Fatalf("got %d after %v, want %d after %v", got, before, end, acc)
		}
	})
}
