package tensor

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The numbers 1, -0.5, 0.25 and 2 in half precision.
var one, minusHalf, quarter, two = []byte{0x00, 0x3c}, []byte{0x00, 0xb8}, []byte{0x00, 0x34}, []byte{0x00, 0x40}

// ramp is n bytes that count up from a start.
func ramp(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from + i)
	}
	return b
}

// Blocks whose values were worked out by hand.
func TestDequantizeByHand(t *testing.T) {
	// Q4_K: scales 1..8 and minima 0, 1, 2, 3, 16, 17, 18, 19 of 63 at most.
	scales := []byte{
		1, 2, 3, 4, // scales of parts 0..3; the upper bits of scales 4..7 are 0
		0 | 1<<6, 1 | 1<<6, 2 | 1<<6, 3 | 1<<6, // minima 0..3; the upper bits of minima 4..7 are 1
		5 | 0<<4, 6 | 1<<4, 7 | 2<<4, 8 | 3<<4, // low bits of scales and minima 4..7
	}
	q4k := slices.Concat(two, quarter, scales, make([]byte, 128))
	q4k[16] = 0x3f    // value 0 is 15, value 32 is 3
	q4k[16+97] = 0xe0 // value 192+1 is 0, value 224+1 is 14
	q5k := slices.Concat(two, quarter, scales, make([]byte, 32), q4k[16:])
	q5k[16] = 1 << 1   // the fifth bit of value 32
	q5k[16+1] = 1 << 7 // the fifth bit of value 225
	q6k := make([]byte, 210)
	copy(q6k[208:], two)
	for i := range 16 {
		q6k[192+i] = byte(i + 1)
	}
	q6k[192+7] = 0x80 // scale of values 112..127 is -128
	q6k[0] = 0x51     // values 0 and 64: low parts 1 and 5
	q6k[128] = 0b11100100
	q6k[64+63] = 0xf0 // values 128+63 (0) and 128+127 (15)
	q2k := slices.Concat(make([]byte, 80), two, quarter)
	q2k[0], q2k[3], q2k[15] = 0x31, 0xf5, 0x2f // scales 1, 5, 15, minima 3, 15, 2 of parts 0, 3 and 15
	q2k[16], q2k[16+16], q2k[79] = 0b10, 0b1100, 0b11000000
	q3k := slices.Concat(make([]byte, 108), two)
	q3k[0], q3k[31] = 1, 1<<7              // the third bits of values 0 and 255
	q3k[32], q3k[32+63] = 0b11, 0b01000000 // quants 3 and 1 of them
	q3k[96], q3k[96+7] = 0x01, 0xf0        // low bits of scales 0 and 15
	q3k[104], q3k[104+3] = 0x02, 0xc0      // upper bits of scales 0 and 15
	iq4xs := slices.Concat(two, []byte{0x03, 0x40}, []byte{0x01, 0, 0, 0xf0}, make([]byte, 128))
	iq4xs[8], iq4xs[135] = 0x0f, 0x80 // values 0 and 16, 239 and 255
	for _, c := range []struct {
		name  string
		t     Type
		block []byte
		want  map[int]float32
	}{
		{"f32", F32, []byte{0, 0, 0xc0, 0x3f}, map[int]float32{0: 1.5}},
		{"f16", F16, []byte{0x01, 0x80}, map[int]float32{0: -0x1p-24}},
		{"bf16", BF16, []byte{0x80, 0xbf}, map[int]float32{0: -1}},
		{"q8_0", Q8_0, slices.Concat(minusHalf, ramp(126, 32)), map[int]float32{0: -63, 1: -63.5, 2: 64, 3: 63.5, 31: 49.5}},
		{"q4_0", Q4_0, slices.Concat(quarter, []byte{0x0f, 0x80}, ramp(0x10, 14)), map[int]float32{0: 1.75, 16: -2, 1: -2, 17: 0, 2: -2, 18: -1.75, 15: 1.25}},
		{"q4_1", Q4_1, slices.Concat(quarter, two, []byte{0x0f, 0x80}, ramp(0x10, 14)), map[int]float32{0: 5.75, 16: 2, 1: 2, 17: 4, 18: 2.25}},
		{"q5_0", Q5_0, slices.Concat(one, []byte{0x01, 0, 0x02, 0x80}, []byte{0x0f, 0x80}, ramp(0x10, 14)), map[int]float32{0: 15, 16: -16, 1: -16, 17: 8, 31: 1, 15: -3}},
		{"q5_1", Q5_1, slices.Concat(one, minusHalf, []byte{0x01, 0, 0x02, 0x80}, []byte{0x0f, 0x80}, ramp(0x10, 14)), map[int]float32{0: 30.5, 16: -0.5, 1: -0.5, 17: 23.5, 31: 16.5}},
		{"iq4_nl", IQ4_NL, slices.Concat(two, []byte{0x0f, 0x80}, ramp(0x10, 14)), map[int]float32{0: 226, 16: -254, 1: -254, 17: 2}},
		{"q2_K", Q2_K, q2k, map[int]float32{0: 2*1*2 - 0.75, 1: -0.75, 48: 2*5*3 - 3.75, 49: -3.75, 255: 2*15*3 - 0.5, 16: 0}},
		// d*(sc-32)*(q-4): scales 33 and 63 of 0 and 15, the others 0; the third bit of value 16 is 0
		{"q3_K", Q3_K, q3k, map[int]float32{0: 2 * 1 * (7 - 4), 1: 2 * 1 * -4, 255: 2 * 31 * (5 - 4), 16: 2 * -32 * -4}},
		// d*(sc-32)*level: scales 49 and 31 of parts 0 and 7
		{"iq4_XS", IQ4_XS, iq4xs, map[int]float32{0: 2 * 17 * 113, 16: 2 * 17 * -127, 239: 2 * -1 * -127, 255: 2 * -1 * 1, 32: 2 * -32 * -127}},
		// d*sc*q - dmin*m: 2*1*15 - 0.25*0; 2*2*3 - 0.25*1; -0.25*18; 2*8*14 - 0.25*19
		{"q4_K", Q4_K, q4k, map[int]float32{0: 30, 1: 0, 32: 11.75, 33: -0.25, 193: -4.5, 225: 219.25, 224: -4.75}},
		{"q5_K", Q5_K, q5k, map[int]float32{0: 30, 32: 2*2*19 - 0.25, 225: 2*8*30 - 4.75, 193: -4.5}},
		// d*sc*(q-32)
		{"q6_K", Q6_K, q6k, map[int]float32{0: 2 * 1 * (1 - 32), 32: 2 * 3 * (16 - 32), 64: 2 * 5 * (5 + 32 - 32), 96: 2 * 7 * (48 - 32), 127: 2 * -128 * -32, 255: 2 * 16 * (15 - 32), 191: 2 * 12 * -32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.block) != c.t.BlockBytes() {
				t.Fatalf("a block of %d bytes, want %d", len(c.block), c.t.BlockBytes())
			}
			got := make([]float32, c.t.Block())
			Dequantize(c.t, got, c.block)
			for i, want := range c.want {
				if got[i] != want {
					t.Errorf("value %d is %v, want %v", i, got[i], want)
				}
			}
		})
	}
}

// same says that two numbers are equal bit by bit, or both no numbers.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// Every type against the reading bit by bit, on random blocks: random scales
// reach subnormal, infinite and invalid ones, too.
func TestDequantizeBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range Readable() {
		block := make([]byte, 3*typ.BlockBytes())
		got := make([]float32, 3*typ.Block())
		for range 200 {
			for i := range block {
				block[i] = byte(r.Uint32())
			}
			Dequantize(typ, got, block)
			for i, v := range got {
				b, at := i/typ.Block(), i%typ.Block()
				if want := oracleValue(typ, block[b*typ.BlockBytes():][:typ.BlockBytes()], at); !same(v, want) {
					t.Fatalf("%s: value %d of block %x is %v, want %v", typ, at, block, v, want)
				}
			}
		}
	}
}

func FuzzDequantize(f *testing.F) {
	for _, typ := range Readable() {
		f.Add(uint32(typ), make([]byte, typ.BlockBytes()))
		f.Add(uint32(typ), ramp(7, 2*typ.BlockBytes()+1))
	}
	f.Fuzz(func(t *testing.T, kind uint32, src []byte) {
		typ := Type(kind)
		if !typ.Known() {
			if slices.Contains(Readable(), typ) {
				t.Fatalf("%s is readable and not known", typ)
			}
			return
		}
		dst := make([]float32, len(src)/typ.BlockBytes()*typ.Block())
		Dequantize(typ, dst, src)
		for i, v := range dst {
			b, at := i/typ.Block(), i%typ.Block()
			if want := oracleValue(typ, src[b*typ.BlockBytes():][:typ.BlockBytes()], at); !same(v, want) {
				t.Fatalf("%s: value %d is %v, want %v", typ, i, v, want)
			}
		}
	})
}

func TestDequantizeRefuses(t *testing.T) {
	for name, f := range map[string]func(){
		"not readable":  func() { Dequantize(IQ2_XS, make([]float32, 256), make([]byte, 1000)) },
		"half a block":  func() { Dequantize(Q4_0, make([]float32, 16), make([]byte, 1000)) },
		"short source":  func() { Dequantize(Q8_0, make([]float32, 64), make([]byte, 67)) },
		"not writable":  func() { Quantize(Q5_1, make([]byte, 1000), make([]float32, 32)) },
		"half written":  func() { Quantize(Q8_0, make([]byte, 1000), make([]float32, 33)) },
		"short to fill": func() { Quantize(F16, make([]byte, 3), make([]float32, 2)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Every type's name is its own, and what can be read is named.
func TestTypes(t *testing.T) {
	seen := map[string]Type{}
	for typ := range layouts {
		if other, ok := seen[typ.String()]; ok {
			t.Errorf("%d and %d are both %s", typ, other, typ)
		}
		seen[typ.String()] = typ
	}
	for _, typ := range Readable() {
		if !typ.Named() || !typ.Known() || typ.Bytes(typ.Block()) != typ.BlockBytes() {
			t.Errorf("%s: %d values in %d bytes", typ, typ.Block(), typ.BlockBytes())
		}
	}
	if Type(31).Named() || Type(31).Known() || Type(31).String() != "type 31" {
		t.Errorf("a removed type is %s", Type(31))
	}
	if len(seen) != 42 {
		t.Errorf("%d types", len(seen))
	}
}

func BenchmarkDequantize(b *testing.B) {
	for _, typ := range Readable() {
		b.Run(typ.String(), func(b *testing.B) {
			const n = 1 << 14
			src, dst := make([]byte, typ.Bytes(n)), make([]float32, n)
			for i := 0; i+1 < len(src); i += 2 {
				binary.LittleEndian.PutUint16(src[i:], 0x3456)
			}
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				Dequantize(typ, dst, src)
			}
		})
	}
}
