package kernels

import (
	"math"
	"testing"
)

// All half-precision numbers against their definition.
func TestF16All(t *testing.T) {
	for h := range 1 << 16 {
		sign, e, f := 1.0, h>>10&31, float64(h&1023)
		if h>>15 == 1 {
			sign = -1
		}
		want := sign * math.Ldexp(1+f/1024, e-15)
		switch {
		case e == 0:
			want = sign * math.Ldexp(f/1024, -14)
		case e == 31 && f == 0:
			want = math.Inf(int(sign))
		case e == 31:
			want = math.NaN()
		}
		got := float64(F16(uint16(h)))
		if got != want && !(got != got && want != want) || math.Signbit(got) != (sign < 0) {
			t.Fatalf("F16(%#04x) = %v, want %v", h, got, want)
		}
	}
	if got := BF16(0x3fc0); got != 1.5 {
		t.Errorf("BF16(0x3fc0) = %v, want 1.5", got)
	}
	var two [2]float32
	FromF16(two[:], []byte{0x00, 0x3c, 0x00, 0xc0})
	if two != [2]float32{1, -2} {
		t.Errorf("FromF16: got %v", two)
	}
	FromBF16(two[:], []byte{0x80, 0x3f, 0x00, 0xc0})
	if two != [2]float32{1, -2} {
		t.Errorf("FromBF16: got %v", two)
	}
	FromF32(two[:], []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0})
	if two != [2]float32{1, -2} {
		t.Errorf("FromF32: got %v", two)
	}
}

// Every half-precision number rounds to itself, and a float32 to the nearest.
func TestToF16(t *testing.T) {
	finite := func(h int) bool { return h&0x7c00 != 0x7c00 }
	for h := range 1 << 16 {
		v := F16(uint16(h))
		got := ToF16(v)
		if v != v {
			if back := F16(got); back == back {
				t.Fatalf("NaN %#x became %v", h, back)
			}
			continue
		}
		if got != uint16(h) {
			t.Fatalf("%#x = %v rounds to %#x", h, v, got)
		}
		if next := h + 1; h < 0x8000 && finite(next) {
			middle := (v + F16(uint16(next))) / 2
			even := uint16(h + h&1)
			for _, c := range []struct {
				v    float32
				want uint16
			}{
				{middle, even},
				{math.Nextafter32(middle, 0), uint16(h)},
				{math.Nextafter32(middle, 1e9), uint16(next)},
				{-middle, even | 0x8000},
			} {
				if got := ToF16(c.v); got != c.want {
					t.Fatalf("%v rounds to %#x, want %#x", c.v, got, c.want)
				}
			}
		}
	}
	for v, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7c00, -1e9: 0xfc00, 0x1p-26: 0} {
		if got := ToF16(v); got != want {
			t.Errorf("%v rounds to %#x, want %#x", v, got, want)
		}
	}
}

func TestToBF16(t *testing.T) {
	for bits, want := range map[uint32]uint16{
		0x3f800000: 0x3f80, 0x3f808000: 0x3f80, 0x3f808001: 0x3f81, 0x3f818000: 0x3f82,
		0x7f7fffff: 0x7f80, 0xff800000: 0xff80, 0x7f800001: 0x7fc0,
	} {
		if got := ToBF16(math.Float32frombits(bits)); got != want {
			t.Errorf("%#x rounds to %#x, want %#x", bits, got, want)
		}
	}
}
