package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// near reports whether got is within rel of want.
func near(got, want, rel float64) bool {
	return math.Abs(got-want) <= rel*math.Max(math.Abs(want), 1e-30)
}

func TestRMSNormOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 257; n++ {
		x, w, y := normal(r, n), normal(r, n), normal(r, n)
		var sum float64
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		inv := 1 / math.Sqrt(sum/float64(n)+1e-6)
		RMSNorm(y, x, w, 1e-6)
		for i := range y {
			if want := float64(x[i]) * inv * float64(w[i]); !near(float64(y[i]), want, 2e-6) {
				t.Fatalf("n %d, %d: got %v, want %v", n, i, y[i], want)
			}
		}
		RMSNorm(x, x, w, 1e-6) // in place
		for i := range y {
			if x[i] != y[i] {
				t.Fatalf("n %d: in place differs at %d", n, i)
			}
		}
	}
}

func TestSiLUMulOracle(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 88, 257} {
		gate, up, want := make([]float32, n), make([]float32, n), make([]float64, n)
		for i := range gate {
			gate[i], up[i] = float32(i*7%41)-20, float32(i%5)-2
			x := float64(gate[i])
			want[i] = x / (1 + math.Exp(-x)) * float64(up[i])
		}
		SiLUMul(gate, gate, up)
		for i := range gate {
			if !near(float64(gate[i]), want[i], 2e-7) {
				t.Fatalf("n %d, %d: got %v, want %v", n, i, gate[i], want[i])
			}
		}
	}
	edge := []float32{-1e30, 1e30, float32(math.NaN())}
	SiLUMul(edge, edge, []float32{1, 1, 1})
	if edge[0] != 0 || edge[1] != 1e30 || edge[2] == edge[2] {
		t.Errorf("edges: got %v, want -0, 1e30, NaN", edge)
	}
}

func TestAddScale(t *testing.T) {
	x := []float32{1, 2, 3}
	Add(x, []float32{10, 20, 30})
	Scale(x, 0.5)
	if x[0] != 5.5 || x[1] != 11 || x[2] != 16.5 {
		t.Errorf("got %v", x)
	}
}

func TestExpLn(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 20000 {
		x := (r.Float64()*2 - 1) * 700
		if got, want := exp(x), math.Exp(x); !near(got, want, 2e-12) {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
		y := math.Exp(x)
		if got, want := ln(y), math.Log(y); math.Abs(got-want) > 1e-15*math.Max(1, math.Abs(want)) {
			t.Fatalf("ln(%v) = %v, want %v", y, got, want)
		}
	}
	for x, want := range map[float64]float64{0: 1, -1000: 0, 1000: math.Inf(1), math.Inf(-1): 0, math.Inf(1): math.Inf(1)} {
		if got := exp(x); got != want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if got := exp(math.NaN()); got == got {
		t.Errorf("exp(NaN) = %v", got)
	}
	if got := ln(1); got != 0 {
		t.Errorf("ln(1) = %v", got)
	}
}

func TestRoPEOracle(t *testing.T) {
	for x := 0.0; x < 1<<20; x += 523.77 {
		s, c := Sincos(x)
		if math.Abs(s-math.Sin(x)) > 1e-14 || math.Abs(c-math.Cos(x)) > 1e-14 {
			t.Fatalf("Sincos(%v) = %v, %v, want %v, %v", x, s, c, math.Sin(x), math.Cos(x))
		}
	}
	const dim, theta = 12, 10000.0
	rope := NewRoPE(600, dim, theta)
	r := rand.New(rand.NewPCG(3, 3))
	for pos := 0; pos < 600; pos += 7 {
		x := normal(r, dim)
		got := append([]float32(nil), x...)
		rope.Apply(got, pos)
		for i := range dim / 2 {
			angle := float64(pos) * math.Pow(theta, -2*float64(i)/dim)
			s, c := math.Sincos(angle)
			a, b := float64(x[i]), float64(x[i+dim/2])
			// A float32 angle near 600 is exact to 3e-5.
			if math.Abs(float64(got[i])-(a*c-b*s)) > 2e-4 || math.Abs(float64(got[i+dim/2])-(b*c+a*s)) > 2e-4 {
				t.Fatalf("position %d, pair %d: got %v, %v", pos, i, got[i], got[i+dim/2])
			}
		}
	}
}
