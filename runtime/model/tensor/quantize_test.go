package tensor

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/kernels"
)

// Every half and bfloat16 number comes back as itself.
func TestFloatsRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		for _, typ := range []Type{F16, BF16} {
			var b, again [2]byte
			binary.LittleEndian.PutUint16(b[:], uint16(h))
			var v [1]float32
			Dequantize(typ, v[:], b[:])
			Quantize(typ, again[:], v[:])
			if v[0] != v[0] { // a NaN stays one
				Dequantize(typ, v[:], again[:])
				if v[0] == v[0] {
					t.Fatalf("%s %#x is no number and became %v", typ, h, v[0])
				}
			} else if again != b {
				t.Fatalf("%s %#x became %x", typ, h, again)
			}
		}
	}
}

// nearest says whether got is the nearest to v of got and its neighbours in the
// order of sizes, and even in a tie, by exact arithmetic.
func nearest(v float32, got uint16, value func(uint16) float32) bool {
	dist := func(h uint16) *big.Float {
		x := value(h)
		if math.IsInf(float64(x), 0) { // the number that would follow the largest
			x = 0x1p16
			if h>>15 == 1 {
				x = -x
			}
		}
		d := new(big.Float).SetPrec(400).Sub(big.NewFloat(float64(v)), big.NewFloat(float64(x)))
		return d.Abs(d)
	}
	mine := dist(got)
	for _, h := range []uint16{got + 1, got - 1} {
		if h>>15 != got>>15 || math.IsNaN(float64(value(h))) {
			continue
		}
		if c := dist(h).Cmp(mine); c < 0 || c == 0 && got&1 == 1 {
			return false
		}
	}
	return true
}

func TestFloatsRoundToNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	check := func(v float32) {
		if h := kernels.ToF16(v); math.Abs(float64(v)) < 65536 && !nearest(v, h, kernels.F16) {
			t.Fatalf("%v (%x) became half %#x, %v", v, math.Float32bits(v), h, kernels.F16(h))
		}
		// A bfloat16 rounds like its neighbours; at the upper end the next is infinite.
		if h := kernels.ToBF16(v); math.Abs(float64(v)) < 0x1.fep127 && !nearest(v, h, kernels.BF16) {
			t.Fatalf("%v (%x) became bfloat16 %#x", v, math.Float32bits(v), h)
		}
	}
	for h := range 1 << 16 { // the middle between two halves, and its neighbours
		a, b := float64(kernels.F16(uint16(h))), float64(kernels.F16(uint16(h+1)))
		if m := float32((a + b) / 2); !math.IsNaN(float64(m)) && !math.IsInf(float64(m), 0) {
			check(m)
			check(math.Nextafter32(m, 1e9))
			check(math.Nextafter32(m, -1e9))
		}
	}
	for range 40_000 {
		if v := math.Float32frombits(r.Uint32()); v == v && !math.IsInf(float64(v), 0) {
			check(v)
		}
		check(float32(math.Ldexp(r.Float64()*2-1, r.IntN(45)-28)))
	}
	for v, want := range map[float32]uint16{65519.996: 0x7bff, 65520: 0x7c00, -1e30: 0xfc00, 0x1p-25: 0, 0x1.000002p-25: 1} {
		if got := kernels.ToF16(v); got != want {
			t.Errorf("%v became half %#x, want %#x", v, got, want)
		}
	}
}

// The value of largest size is met, the others by half a step (the field's
// formats) or by a step and the rounding of the scales (K).
func TestQuantizeBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for _, typ := range []Type{Q8_0, Q5_0, Q4_0, Q6_K, Q4_K} {
		n := typ.Block()
		x, y, b := make([]float32, n), make([]float32, n), make([]byte, typ.BlockBytes())
		for round := range 2000 {
			scale := math.Ldexp(1, round%12-1) // scales stay normal numbers of half precision
			for i := range x {
				x[i] = float32(r.NormFloat64() * scale)
			}
			Quantize(typ, b, x)
			Dequantize(typ, y, b)
			var top float32
			for _, v := range x {
				top = max(top, v, -v)
			}
			// A step as a share of the largest value; half of it, and what half
			// precision adds to the scale, 2^-11 of the value. Q4_0 and Q5_0 cut off
			// the side away from the value of largest size by one more half step.
			bound := map[Type]float32{Q8_0: 0.5/127 + 0x1p-11, Q5_0: 1.0/16 + 0x1p-10, Q4_0: 1.0/8 + 0x1p-10, Q6_K: 1.2 / 32, Q4_K: 2.2 / 15}[typ]
			for i, v := range x {
				if e := max(v-y[i], y[i]-v); !(e <= bound*top) {
					t.Fatalf("%s: %v became %v in a block up to %v (%.4f of it)", typ, v, y[i], top, e/top)
				}
			}
		}
		for _, v := range []float32{0, 1e-42, -1e-42} { // too small for a scale: zeros, not nonsense
			for i := range x {
				x[i] = v
			}
			Quantize(typ, b, x)
			Dequantize(typ, y, b)
			if slices.ContainsFunc(y, func(v float32) bool { return v != 0 }) {
				t.Errorf("%s: a block of %v became %v", typ, v, y)
			}
		}
	}
}

// Rounding of Q8_0 and Q4_0 by hand.
func TestQuantizeByHand(t *testing.T) {
	x := make([]float32, 32)
	x[0], x[1], x[2], x[3], x[16] = 127, 2.5, -2.5, -0.49, 1
	b := make([]byte, 34)
	Quantize(Q8_0, b, x)
	if want := []byte{0, 0x3c, 127, 3, 0xfd, 0}; !slices.Equal(b[:6], want) || b[18] != 1 {
		t.Errorf("Q8_0: % x", b)
	}
	x[4], x[5] = math.Nextafter32(0.5, 0), -math.Nextafter32(2.5, 0) // just below a half
	Quantize(Q8_0, b, x)
	if b[6] != 0 || b[7] != 0xfe {
		t.Errorf("Q8_0 rounds twice: % x", b)
	}
	clear(x)
	x[0], x[1], x[2], x[16] = -8, 7.6, 0.5, 3 // d is 1
	b = make([]byte, 18)
	Quantize(Q4_0, b, x)
	if want := []byte{0, 0x3c, 0xb0, 0x8f, 0x89}; !slices.Equal(b[:5], want) {
		t.Errorf("Q4_0: % x", b)
	}
}

func BenchmarkQuantize(b *testing.B) {
	for _, typ := range []Type{F32, F16, BF16, Q8_0, Q5_0, Q4_0, Q6_K, Q4_K} {
		b.Run(typ.String(), func(b *testing.B) {
			const n = 1 << 14
			src, dst := make([]float32, n), make([]byte, typ.Bytes(n))
			r := rand.New(rand.NewPCG(1, 2))
			for i := range src {
				src[i] = float32(r.NormFloat64())
			}
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				Quantize(typ, dst, src)
			}
		})
	}
}
