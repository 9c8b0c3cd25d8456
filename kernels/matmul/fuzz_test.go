package matmul

import (
	"encoding/binary"
	"math"
	"testing"

	"tokenrouter/kernels/cpu"
)

// FuzzTwin holds every level against the twin in Go, with weights and values of
// any bits: packed columns are equal, so are sums of integers, and outputs are
// within the one rounding a step that the twin has more. What overflows or is not
// finite must be so, or so large, in both.
func FuzzTwin(f *testing.F) {
	f.Add(uint8(0), uint8(3), uint16(40), uint8(20), []byte("weights and values, of any bits"))
	f.Add(uint8(3), uint8(5), uint16(64), uint8(33), []byte{0, 0, 0x80, 0x3f, 1, 2, 3})
	f.Add(uint8(4), uint8(8), uint16(130), uint8(1), []byte{0xff, 0x7f, 0, 0x80})
	f.Add(uint8(1), uint8(1), uint16(9), uint8(70), []byte{0, 0x3c, 0, 0xfc, 1, 0})
	f.Add(uint8(2), uint8(4), uint16(17), uint8(16), []byte{0x80, 0x7f, 1})
	f.Fuzz(func(t *testing.T, format, columns uint8, cols uint16, rows uint8, bits []byte) {
		fm := Format(format % uint8(formats))
		k, n, h := int(cols%300), 1+int(columns%17), 1+int(rows%100)
		if fm.quantised() {
			k = k / block * block
		}
		next := source(bits)
		m, err := New(fm, h, k)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		raw := make([]byte, fm.RawBytes(k))
		for row := range h {
			for i := range raw {
				raw[i] = byte(next())
			}
			m.SetRaw(row, raw)
		}
		x := make([][]float32, n)
		for c := range x {
			x[c] = make([]float32, k)
			for i := range x[c] {
				// Mostly values of activations; sometimes any bits.
				if u := next(); u%16 == 0 {
					x[c][i] = math.Float32frombits(next())
				} else {
					x[c][i] = float32(int32(u)) * 0x1p-29
				}
			}
		}
		twin := product1(m, cpu.Go, x)
		var first []float32
		for _, l := range levels()[1:] {
			y := product1(m, l, x)
			if first == nil {
				first = y
			}
			w := make([]float32, k)
			for row := range h {
				m.Row(w, row)
				for c := range n {
					i := c*m.Padded() + row
					if a, b := math.Float32bits(y[i]), math.Float32bits(first[i]); a != b && (y[i] == y[i] || first[i] == first[i]) {
						t.Fatalf("%v, row %d, column %d: %v at %v, %v at avx2", fm, row, c, y[i], l, first[i])
					}
					if !near(y[i], twin[i], w, x[c]) {
						t.Fatalf("%v, row %d, column %d: %v at %v, %v in Go", fm, row, c, y[i], l, twin[i])
					}
				}
			}
		}
	})
}

// near says that two outputs differ by rounding alone.
func near(a, b float32, w, x []float32) bool {
	var size, most float64
	for i := range w {
		size += math.Abs(float64(w[i]) * float64(x[i]))
		most = max(most, math.Abs(float64(x[i])))
	}
	// A sum may overflow on the way, a block's before it meets the weights' scale.
	if !(size < math.MaxFloat32/4) || !(most < math.MaxFloat32/(block*256)) {
		return true
	}
	return math.Abs(float64(a)-float64(b)) <= (size*0x1p-23+0x1p-148)*float64(len(w)+1)
}

// source draws words from bytes, over and over, never the same twice.
func source(bits []byte) func() uint32 {
	var state uint64 = 1
	i := 0
	return func() uint32 {
		var four [4]byte
		for j := range four {
			if len(bits) > 0 {
				four[j] = bits[i%len(bits)]
				i++
			}
		}
		state = state*6364136223846793005 + 1442695040888963407
		return binary.LittleEndian.Uint32(four[:]) ^ uint32(state>>40)
	}
}
