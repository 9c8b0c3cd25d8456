package vec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact is x*y + z rounded once, by arithmetic of any precision.
func exact(x, y, z float32) float32 {
	f := func(v float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(v)) }
	s := f(x)
	s.Mul(s, f(y)).Add(s, f(z))
	r, _ := s.Float32()
	if r == 0 && s.Sign() == 0 {
		return x*y + z // big.Float keeps other signs of zero
	}
	return r
}

// anyFloat is a finite float32 of any exponent within reach of 1.
func anyFloat(r *rand.Rand, reach int) float32 {
	b := r.Uint32()&(1<<31|1<<23-1) | uint32(127-reach+r.IntN(2*reach))<<23
	if r.IntN(3) == 0 {
		b &^= 1<<r.IntN(24) - 1 // few digits, so that ties come up
	}
	return math.Float32frombits(b)
}

func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	odd := 0
	check := func(x, y, z float32) {
		t.Helper()
		got, want := fma(x, y, z), exact(x, y, z)
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("fma(%x, %x, %x) is %x, want %x", x, y, z, got, want)
		}
		if float32(float64(x)*float64(y)+float64(z)) != want {
			odd++
		}
	}
	for range 60000 {
		check(anyFloat(r, 30), anyFloat(r, 30), anyFloat(r, 40))
		check(anyFloat(r, 64), anyFloat(r, 63), math.Float32frombits(r.Uint32()&(1<<31|1<<25-1))) // about subnormal results
	}
	// The sum is just beside the middle of two floats: by how much is lost in float64.
	for range 20000 {
		z := anyFloat(r, 20)
		half := math.Float32frombits(math.Float32bits(z)&(0xff<<23)) * 0x1p-24 // half a unit of the last place of z
		x := float32(1) + float32(r.IntN(1<<12))*0x1p-12
		for _, y := range []float32{half * 0x1p-5, -half * 0x1p-5} {
			check(x, y, z)
		}
		check(1+0x1p-23, half*(1-0x1p-23), z) // half * (1 - 2^-46)
		check(1+0x1p-23, half, z)
		check(-1-0x1p-23, half*(1-0x1p-23), z)
	}
	if odd < 100 {
		t.Errorf("only %d sums were ones that rounding twice gets wrong", odd)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct{ x, y, z, want float32 }{
		{inf, 1, 1, inf},
		{1, 1, -inf, -inf},
		{0x1p127, 2, 0, inf},
		{0x1p127, 2, -0x1p127, 0x1p127},
	} {
		if got := fma(c.x, c.y, c.z); got != c.want {
			t.Errorf("fma(%v, %v, %v) is %v, want %v", c.x, c.y, c.z, got, c.want)
		}
	}
	for _, c := range [][3]float32{{inf, 0, 1}, {inf, 1, -inf}, {nan, 1, 1}, {1, 1, nan}} {
		if got := fma(c[0], c[1], c[2]); got == got {
			t.Errorf("fma(%v) is %v, want NaN", c, got)
		}
	}
}

// ulp is the distance of got from want in units of the last place of a float32.
func ulp(got float32, want float64) float64 {
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, e-24)
}

func TestExp(t *testing.T) {
	worst := 0.0
	check := func(x float32) {
		t.Helper()
		got, want := exp(x), math.Exp(float64(x))
		if want < 0x1p-126 {
			if got < 0 || float64(got) > 1.01*want {
				t.Fatalf("exp(%v) is %v, want %v or 0", x, got, want)
			}
			return
		}
		if u := ulp(got, want); u > worst {
			if worst = u; u > 1.5 {
				t.Fatalf("exp(%v) is %v, %v units of the last place from %v", x, got, u, want)
			}
		}
	}
	for x := float32(0); x > -90; x -= 0.00037 {
		check(x)
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 100000 {
		check(-float32(r.ExpFloat64()))
		check(-float32(math.Exp(-20 * r.Float64())))
	}
	t.Logf("largest error: %.2f units of the last place", worst)
	inf := float32(math.Inf(-1))
	for _, c := range []struct{ x, want float32 }{{0, 1}, {-1e-30, 1}, {-88, 0}, {-1e30, 0}, {inf, 0}} {
		if got := exp(c.x); got != c.want {
			t.Errorf("exp(%v) is %v, want %v", c.x, got, c.want)
		}
	}
	if got := exp(float32(math.NaN())); got == got {
		t.Errorf("exp(NaN) is %v", got)
	}
}

// On arm64 fma is written as a product and a sum; this fails should the compiler
// not fuse them.
func TestFused(t *testing.T) {
	const x = 1 + 0x1p-12
	want := float32(0x1p-11 + 0x1p-24)
	if got := fma(x, x, -1); got != want {
		t.Errorf("x*x - 1 is %v, want %v", got, want)
	}
	if got, odd := rounded(x, x, -1); !odd && got != want {
		t.Errorf("rounded x*x - 1 is %v, want %v", got, want)
	}
}
