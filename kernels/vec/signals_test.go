package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/kernels"
	"tokenrouter/kernels/cpu"
)

// signals measures a row in segments, handed in order to workers in turn.
func signals(s *kernels.Signals, logits []float32, workers int) error {
	parts := make([]Part, (len(logits)+Segment-1)/Segment)
	tops := make([]Top, workers)
	for _, i := range rand.New(rand.NewPCG(uint64(workers), 1)).Perm(len(parts)) {
		l, top := logits[i*Segment:min((i+1)*Segment, len(logits))], &tops[i%workers]
		MeasurePart(&parts[i], l)
		if top.Wants(parts[i].Max()) {
			top.Offer(int32(i*Segment), l)
		}
	}
	for i := workers - 1; i > 0; i-- {
		tops[0].Merge(&tops[i])
	}
	return Signals(s, parts, &tops[0], len(logits))
}

// row draws logits of some spread, among them ties and tokens that cannot be.
func row(r *rand.Rand, v int, spread float64) []float32 {
	logits := make([]float32, v)
	for i := range logits {
		logits[i] = float32(math.Round(r.NormFloat64()*spread*64) / 64)
		if r.IntN(50) == 0 {
			logits[i] = float32(math.Inf(-1))
		}
	}
	logits[r.IntN(v)] = float32(spread)
	return logits
}

func TestSignalsOracle(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		var got, want kernels.Signals
		for i := range 400 {
			v := i + 1
			if i%40 == 39 {
				v = 1000 + 77*i
			}
			logits := row(r, v, math.Exp(6*r.Float64()-3))
			if err := kernels.Measure(&want, logits); err != nil {
				t.Fatal(err)
			}
			if err := signals(&got, logits, 1+i%4); err != nil {
				t.Fatal(err)
			}
			for _, c := range [][2]float32{{got.Entropy, want.Entropy}, {got.EntropyNorm, want.EntropyNorm}, {got.Top1, want.Top1}, {got.Top2, want.Top2}} {
				if !near(float64(c[0]), float64(c[1]), 1e-6) {
					t.Fatalf("V %d: got %+v, want %+v", v, got, want)
				}
			}
			if math.Abs(float64(got.LogSumExp-want.LogSumExp)) > 1e-6*math.Max(1, math.Abs(float64(want.LogSumExp))) {
				t.Fatalf("V %d: got %+v, want %+v", v, got, want)
			}
			if len(got.TopK) != len(want.TopK) {
				t.Fatalf("V %d: %d tokens listed, want %d", v, len(got.TopK), len(want.TopK))
			}
			for j, k := range got.TopK {
				w := want.TopK[j]
				if k.ID != w.ID || k.Logprob != w.Logprob && math.Abs(float64(k.Logprob-w.Logprob)) > 1e-6*math.Max(1, math.Abs(float64(w.Logprob))) {
					t.Fatalf("V %d: place %d is %+v, want %+v", v, j, k, w)
				}
			}
		}
	})
}

// Rows that are nearly certain, or wholly uncertain, keep their digits.
func TestSignalsEdges(t *testing.T) {
	levels(t, func(t *testing.T) {
		var s kernels.Signals
		inf := float32(math.Inf(-1))
		for _, gap := range []float32{1, 10, 14, 17, 20, 30, 60, 87, 200} {
			logits := make([]float32, 3000)
			logits[1234] = gap
			if err := signals(&s, logits, 2); err != nil {
				t.Fatal(err)
			}
			rest := 2999 * math.Exp(-float64(gap))
			if want := math.Log1p(rest) + float64(gap)*rest/(1+rest); math.Abs(float64(s.Entropy)-want) > 1e-6*want+1e-15 {
				t.Errorf("gap %v: entropy %v, want %v", gap, s.Entropy, want)
			}
		}
		if err := signals(&s, make([]float32, 424), 1); err != nil || s.EntropyNorm != 1 {
			t.Errorf("uniform: %+v, %v", s, err)
		}
		for i, k := range s.TopK {
			if int(k.ID) != i {
				t.Errorf("uniform: place %d is token %d, ties go to the lower id", i, k.ID)
			}
		}
		one := slices.Repeat([]float32{inf}, 700)
		one[650] = -3
		if err := signals(&s, one, 2); err != nil || s.Entropy != 0 || s.Top1 != 1 || s.LogSumExp != -3 || s.TopK[0].ID != 650 || s.TopK[1].ID != 0 {
			t.Errorf("one that can be: %+v, %v", s, err)
		}
	})
}

// Damaged logits give the errors of kernels.Measure, wherever they are.
func TestSignalsErrors(t *testing.T) {
	levels(t, func(t *testing.T) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		r := rand.New(rand.NewPCG(8, 8))
		for _, v := range []int{1, 7, 8, 255, 256, 257, 700} {
			for range 20 {
				logits := row(r, v, 2)
				for range 1 + r.IntN(3) {
					logits[r.IntN(v)] = []float32{nan, -nan, inf}[r.IntN(3)]
				}
				var s kernels.Signals
				want, got := kernels.Measure(&s, logits), signals(&s, logits, 1+r.IntN(3))
				if want == nil || got == nil || got.Error() != want.Error() {
					t.Fatalf("V %d: got error %v, want %v", v, got, want)
				}
			}
			var s kernels.Signals
			logits := slices.Repeat([]float32{-inf}, v)
			if got, want := signals(&s, logits, 2), kernels.Measure(&s, logits); got == nil || got.Error() != want.Error() {
				t.Fatalf("V %d, none finite: got error %v, want %v", v, got, want)
			}
		}
		if err := Signals(new(kernels.Signals), nil, new(Top), 0); err == nil {
			t.Error("an empty row is accepted")
		}
	})
}

// The signals are the same bits whoever measured which segment, at every level,
// and wherever the logits lie.
func TestSignalsBits(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 60 {
		logits := row(r, 1+r.IntN(3000), 4)
		alike(t, "signals", func() []float32 {
			var first []float32
			for workers := 1; workers <= 5; workers++ {
				g := guarding(logits, workers)
				var s kernels.Signals
				if err := signals(&s, g.x, workers); err != nil {
					t.Fatal(err)
				}
				g.check(t)
				all := []float32{s.Entropy, s.EntropyNorm, s.LogSumExp, s.Top1, s.Top2}
				for _, k := range s.TopK {
					all = append(all, k.Logprob, float32(k.ID))
				}
				if workers == 1 {
					first = all
				} else if differ(all, first) >= 0 {
					t.Fatalf("row %d: %d workers give %v, one %v", i, workers, all, first)
				}
			}
			return first
		})
	}
}

// Top is what sorting gives, however the offers are cut, ordered and merged.
func TestTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(-3, 3), 1, 200).Draw(t, "logits")
		logits := make([]float32, len(values))
		for i, v := range values {
			if logits[i] = float32(v); v == -3 {
				logits[i] = float32(math.Inf(-1))
			}
		}
		order := make([]int32, len(logits))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return int(a - b)
		})
		size := rapid.IntRange(1, 70).Draw(t, "size")
		var cuts []int
		for i := 0; i < len(logits); i += size {
			cuts = append(cuts, i)
		}
		cuts = rapid.Permutation(cuts).Draw(t, "order")
		level := cpu.Level(rapid.IntRange(0, int(cpu.Best())).Draw(t, "level"))
		defer cpu.Force(level)()
		var tops [3]Top
		for i, from := range cuts {
			l, top := logits[from:min(from+size, len(logits))], &tops[i%3]
			if top.Wants(slices.Max(l)) {
				top.Offer(int32(from), l)
			}
		}
		tops[2].Merge(&tops[0])
		tops[2].Merge(&tops[1])
		got := &tops[2]
		if got.n != min(kernels.TopN, len(order)) || !slices.Equal(got.id[:got.n], order[:got.n]) {
			t.Fatalf("got %v, want %v", got.id[:got.n], order[:min(kernels.TopN, len(order))])
		}
		if id, ok := got.Best(); !ok || id != order[0] {
			t.Fatalf("the best is %d, want %d", id, order[0])
		}
	})
}
