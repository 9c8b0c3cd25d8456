package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// softmax64 is the distribution of logits at a temperature.
func softmax64(logits []float32, temp float64) []float64 {
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, float64(l))
	}
	p := make([]float64, len(logits))
	var sum float64
	for i, l := range logits {
		p[i] = math.Exp((float64(l) - top) / temp)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func TestSignalsOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var s Signals
	for v := 1; v <= 500; v++ {
		logits := normal(r, v)
		for i := range logits {
			logits[i] *= float32(v%7 + 1)
		}
		if v > 3 {
			logits[v/2] = float32(math.Inf(-1)) // a token that cannot be
		}
		if err := Measure(&s, logits); err != nil {
			t.Fatal(err)
		}
		p := softmax64(logits, 1)
		order := make([]int, v)
		var h float64
		for i := range order {
			order[i] = i
			if p[i] > 0 {
				h -= p[i] * math.Log(p[i])
			}
		}
		sort.SliceStable(order, func(a, b int) bool { return logits[order[a]] > logits[order[b]] })
		top := order[0]
		lse := float64(logits[top]) - math.Log(p[top])
		if math.Abs(float64(s.Entropy)-h) > 1e-6 || !near(float64(s.LogSumExp), lse, 1e-6) || !near(float64(s.Top1), p[top], 1e-6) {
			t.Fatalf("V %d: got %+v, want entropy %v, logsumexp %v, top1 %v", v, s, h, lse, p[top])
		}
		if v > 1 {
			if !near(float64(s.Top2), p[order[1]], 1e-6) || math.Abs(float64(s.EntropyNorm)-h/math.Log(float64(v))) > 1e-6 {
				t.Fatalf("V %d: got %+v", v, s)
			}
		}
		if len(s.TopK) != min(TopN, v) {
			t.Fatalf("V %d: %d tokens listed", v, len(s.TopK))
		}
		for i, k := range s.TopK {
			if int(k.ID) != order[i] || p[order[i]] > 0 && math.Abs(float64(k.Logprob)-math.Log(p[order[i]])) > 1e-5 {
				t.Fatalf("V %d: place %d is %+v, want %d with %v", v, i, k, order[i], math.Log(p[order[i]]))
			}
		}
		if id, err := Argmax(logits); err != nil || int(id) != top {
			t.Fatalf("V %d: Argmax %d, %v", v, id, err)
		}
	}
}

func TestSignalsKnown(t *testing.T) {
	var s Signals
	if err := Measure(&s, make([]float32, 424)); err != nil {
		t.Fatal(err)
	}
	if !near(float64(s.Entropy), math.Log(424), 1e-7) || s.EntropyNorm != 1 || !near(float64(s.Top1), 1.0/424, 1e-7) {
		t.Errorf("uniform: got %+v", s)
	}
	for i, k := range s.TopK {
		if int(k.ID) != i {
			t.Errorf("uniform: place %d is token %d, ties go to the lower id", i, k.ID)
		}
	}
	if err := Measure(&s, []float32{0, 1e4, 0}); err != nil {
		t.Fatal(err)
	}
	if s.Entropy != 0 || s.Top1 != 1 || s.Top2 != 0 {
		t.Errorf("certain: got %+v", s)
	}
}

// Case B9: damaged logits give an error that names the place, never a hang.
func TestBadLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, row := range map[string][]float32{
		"empty":   {},
		"first":   {nan, 1, 2, 3, 4, 5, 6},
		"last":    {9, 8, 7, 6, 5, 4, nan},
		"all":     {nan, nan},
		"inf":     {0, inf, 1},
		"allless": {-inf, -inf},
	} {
		var s Signals
		if err := Measure(&s, row); err == nil {
			t.Errorf("%s: Measure accepts it", name)
		}
		if _, err := Argmax(row); err == nil {
			t.Errorf("%s: Argmax accepts it", name)
		}
		_, err := new(Sampler).Sample(row, SampleParams{Temperature: 1, TopK: 2, TopP: 0.5}, 0.5)
		if err == nil {
			t.Errorf("%s: Sample accepts it", name)
		} else if name == "last" && !strings.Contains(err.Error(), "logit 6 is NaN") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var sm Sampler
	for _, p := range []SampleParams{{Temperature: nan}, {Temperature: 1, TopP: nan}} {
		if _, err := sm.Sample([]float32{1, 2}, p, 0); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	for _, u := range []float64{-0.1, 1, math.NaN()} {
		if _, err := sm.Sample([]float32{1, 2}, SampleParams{Temperature: 1}, u); err == nil {
			t.Errorf("u %v is accepted", u)
		}
	}
}

// oracle is Sample by its definition: sort everything, cut, walk.
func oracle(logits []float32, p SampleParams, u float64) (id int, slack float64) {
	prob := softmax64(logits, float64(p.Temperature))
	order := make([]int, len(prob))
	for i := range order {
		order[i] = i
	}
	cut := p.TopK > 0 && p.TopK < len(prob) || p.TopP > 0 && p.TopP < 1
	slack = math.Inf(1)
	if cut {
		by := prob
		if p.TopK == 1 { // greedy: different logits may round to one probability
			by = make([]float64, len(logits))
			for i, l := range logits {
				by[i] = float64(l)
			}
		}
		sort.SliceStable(order, func(a, b int) bool { return by[order[a]] > by[order[b]] })
	}
	if p.TopK > 0 && p.TopK < len(order) {
		order = order[:p.TopK]
	}
	total := func() (s float64) {
		for _, i := range order {
			s += prob[i]
		}
		return s
	}
	if p.TopP > 0 && p.TopP < 1 {
		goal, acc := float64(p.TopP)*total(), 0.0
		for n, i := range order {
			acc += prob[i]
			slack = math.Min(slack, math.Abs(acc-goal))
			if acc >= goal {
				order = order[:n+1]
				break
			}
		}
	}
	target, acc := u*total(), 0.0
	for _, i := range order {
		acc += prob[i]
		slack = math.Min(slack, math.Abs(acc-target))
		if acc > target {
			return i, slack
		}
	}
	return order[len(order)-1], slack
}

func TestSampleOracle(t *testing.T) {
	if got, err := new(Sampler).Sample([]float32{2.7755576e-17, 5.551115e-17}, SampleParams{Temperature: 1, TopK: 1}, 0.9); err != nil || got != 1 {
		t.Errorf("top 1 of two logits with one probability: %d, %v", got, err)
	}
	var sm Sampler
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-20, 20), 1, 60).Draw(t, "logits")
		p := SampleParams{
			Temperature: rapid.Float32Range(0.05, 3).Draw(t, "temperature"),
			TopK:        rapid.IntRange(-1, 70).Draw(t, "top_k"),
			TopP:        rapid.Float32Range(-0.1, 1.1).Draw(t, "top_p"),
		}
		u := rapid.Float64Range(0, 0.999999).Draw(t, "u")
		got, err := sm.Sample(logits, p, u)
		if err != nil {
			t.Fatal(err)
		}
		want, slack := oracle(logits, p, u)
		// Logits that close may have one probability here and two there.
		if slack > 1e-9 && math.Abs(float64(logits[got])-float64(logits[want])) > 1e-12 {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

func TestSampleGreedyAndTies(t *testing.T) {
	var sm Sampler
	row := []float32{1, 5, 5, 2}
	for _, p := range []SampleParams{{}, {Temperature: -1, TopK: 3}, {Temperature: 2, TopK: 1}, {Temperature: 1e-20}} {
		want := int32(1)
		if got, err := sm.Sample(row, p, 0.3); err != nil || got != want {
			t.Errorf("%+v: got %d, %v", p, got, err)
		}
	}
}

// Frequencies follow the distribution: with u on a regular grid every token
// gets its share to within one grid step.
func TestSampleFrequencies(t *testing.T) {
	logits := []float32{0.5, -1, 2, 0, 1.5, -3}
	const grid = 10000
	for _, p := range []SampleParams{{Temperature: 1}, {Temperature: 0.7, TopK: 4}, {Temperature: 1.3, TopP: 0.8}} {
		var sm Sampler
		count := make([]float64, len(logits))
		for i := range grid {
			id, err := sm.Sample(logits, p, (float64(i)+0.5)/grid)
			if err != nil {
				t.Fatal(err)
			}
			count[id]++
		}
		want := softmax64(logits, float64(p.Temperature))
		if p.TopK == 4 {
			want[1], want[5] = 0, 0
		}
		if p.TopP == 0.8 {
			want[1], want[5], want[3] = 0, 0, 0 // 0.43, 0.29 and 0.14 reach 0.8
		}
		var sum float64
		for _, v := range want {
			sum += v
		}
		for i := range want {
			if math.Abs(count[i]-want[i]/sum*grid) > 1 {
				t.Errorf("%+v: token %d drawn %v times, want %.1f", p, i, count[i], want[i]/sum*grid)
			}
		}
	}
}

func TestKeepTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SliceOfN(rapid.IntRange(0, 5), 2, 40).Draw(t, "weights")
		cand := make([]candidate, len(w))
		for i, v := range w {
			cand[i] = candidate{int32(i), float64(v)}
		}
		want := slices.Clone(cand)
		slices.SortFunc(want, falling)
		k := rapid.IntRange(1, len(w)-1).Draw(t, "k")
		got, _ := keepTop(cand, k)
		if !slices.Equal(got, want[:k]) {
			t.Fatalf("got %v, want %v", got, want[:k])
		}
	})
}

func BenchmarkSignals(b *testing.B) {
	r := rand.New(rand.NewPCG(8, 8))
	for name, v := range map[string]int{"V=424": 424, "V=151936": 151936} {
		b.Run(name, func(b *testing.B) {
			logits := normal(r, v)
			var s Signals
			for b.Loop() {
				if err := Measure(&s, logits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	logits := normal(r, 424)
	var sm Sampler
	for b.Loop() {
		if _, err := sm.Sample(logits, SampleParams{Temperature: 0.6, TopK: 20, TopP: 0.95}, 0.7); err != nil {
			b.Fatal(err)
		}
	}
}
