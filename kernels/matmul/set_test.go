package matmul

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"tokenrouter/kernels"
)

func TestFormats(t *testing.T) {
	for _, f := range allFormats {
		if got, err := ParseFormat(f.String()); got != f || err != nil {
			t.Errorf("ParseFormat(%q) = %v, %v", f.String(), got, err)
		}
	}
	if _, err := ParseFormat("q5"); err == nil || !strings.Contains(err.Error(), `"q5"`) {
		t.Errorf("q5: %v", err)
	}
	for _, c := range []struct {
		f          Format
		rows, cols int
		want       int64
	}{
		{F32, 16, 4, 256},
		{F16, 17, 5, 2 * 32 * 8},
		{BF16, 1, 1, 2 * 16 * 4},
		{Q8, 16, 64, 1088},
		{Q8, 16, 65, 2176},
		{Q4, 48, 32, 3 * 576},
		{Q8, 151936, 1024, 151936 * 1024 / 32 * 34},
		{F32, 0, 9, 0},
	} {
		if got := Size(c.f, c.rows, c.cols); got != c.want {
			t.Errorf("Size(%v, %d, %d) = %d, want %d", c.f, c.rows, c.cols, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		f          Format
		rows, cols int
		want       string
	}{
		{Format(9), 1, 1, "Format(9)"},
		{F32, -1, 1, "-1 x 1"},
		{F32, 1 << 30, 1 << 30, "out of range"},
		{F32, 1<<31 - 1, 1<<31 - 1, "out of range"}, // of 2^64 bytes
		{Q8, 1 << 40, 1, "out of range"},
	} {
		if m, err := New(c.f, c.rows, c.cols); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%v, %d, %d) = %v, %v; want %q", c.f, c.rows, c.cols, m, err, c.want)
		}
	}
}

// rawRow is a row of a format as GGUF has it, of any bits but no NaN or infinite
// scales, and its values.
func rawRow(r *rand.Rand, f Format, cols int) (raw []byte, values []float32) {
	raw, values = make([]byte, f.RawBytes(cols)), make([]float32, cols)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	number := func(b []byte, h func(uint16) float32) float32 {
		b[1] &= 0xbf // an exponent below the largest
		return h(binary.LittleEndian.Uint16(b))
	}
	switch f {
	case F32:
		for k := range values {
			raw[4*k+3] &= 0xbf
			values[k] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:]))
		}
	case F16:
		for k := range values {
			values[k] = number(raw[2*k:], kernels.F16)
		}
	case BF16:
		for k := range values {
			values[k] = number(raw[2*k:], kernels.BF16)
		}
	case Q8:
		for b := range cols / 32 {
			u := raw[34*b:]
			d := number(u, kernels.F16)
			for i := range 32 {
				values[32*b+i] = float32(int8(u[2+i])) * d
			}
		}
	case Q4:
		for b := range cols / 32 {
			u := raw[18*b:]
			d := number(u, kernels.F16)
			for i := range 16 {
				values[32*b+i] = float32(int(u[2+i]&15)-8) * d
				values[32*b+16+i] = float32(int(u[2+i]>>4)-8) * d
			}
		}
	}
	return raw, values
}

func equalBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// Rows of every format are taken over without loss, in any order and by several
// goroutines, and Row gives them back; so are blocks of Q4_0 in a matrix of Q8.
func TestSetRawIsLossless(t *testing.T) {
	for _, f := range allFormats {
		for _, cols := range []int{32, 96, 160, 1, 7, 35} {
			if f.quantised() && cols%32 != 0 {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(f), uint64(cols)))
			const rows = 16*7 + 5
			m, err := New(f, rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Free()
			var want [rows][]float32
			var all sync.WaitGroup
			for row := range rows {
				raw, values := rawRow(r, f, cols)
				want[row] = values
				if f == Q8 && row%2 == 1 {
					raw, want[row] = rawRow(r, Q4, cols)
					all.Go(func() { m.SetQ4AsQ8(row, raw) })
					continue
				}
				all.Go(func() { m.SetRaw(row, raw) })
			}
			all.Wait()
			got := make([]float32, cols)
			for row := range rows {
				if m.Row(got, row); !equalBits(got, want[row]) {
					t.Fatalf("%v of %d columns, row %d: got %v, want %v", f, cols, row, got, want[row])
				}
			}
		}
	}
}

// A row that is set twice is the later one, and its neighbours stay.
func TestSetOverwrites(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, f := range allFormats {
		m := random(t, r, f, 40, 64)
		before := bytes.Clone(m.data)
		row, other := make([]float32, 64), normal(r, 64)
		raw, _ := rawRow(r, f, 64)
		m.SetRaw(21, raw)
		m.SetFloat(21, other)
		m.Row(row, 21)
		m.SetFloat(21, row)
		again := make([]float32, 64)
		if m.Row(again, 21); f != Q8 && f != Q4 && !equalBits(row, again) {
			t.Errorf("%v: a row that is set to itself changes", f)
		}
		changed := 0
		for i := range before {
			if before[i] != m.data[i] {
				changed++
			}
		}
		if most := f.stride(64) / lanes; changed == 0 || changed > most {
			t.Errorf("%v: %d bytes changed, a row has %d", f, changed, most)
		}
	}
}

// Quantised weights are within half a step of the value, by the rules of Q8_0
// and Q4_0.
func TestQuantise(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, size := range []float32{1, 1e-3, 300, 1e-9, 0} {
		x := normal(r, 64)
		for i := range x {
			x[i] *= size
		}
		for _, f := range []Format{Q8, Q4} {
			m, err := New(f, 1, 64)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Free()
			m.SetFloat(0, x)
			got := make([]float32, 64)
			m.Row(got, 0)
			for b := 0; b < 64; b += 32 {
				var top, signed float64
				for _, v := range x[b : b+32] {
					if a := math.Abs(float64(v)); a > top {
						top, signed = a, float64(v)
					}
				}
				step := top / 127
				if f == Q4 {
					step = math.Abs(signed) / 8
				}
				for i := b; i < b+32; i++ {
					// The scale is rounded to half precision: 2^-11 of the value, 2^-25
					// where it is subnormal.
					bound := step*0.5001 + top*0x1p-11 + 130*0x1p-25
					if f == Q4 && float64(x[i])/signed < -7.0/8 {
						bound += step // there is no +8
					}
					if math.Abs(float64(got[i]-x[i])) > bound {
						t.Fatalf("%v, size %v: %v became %v, step %v", f, size, x[i], got[i], step)
					}
				}
			}
		}
	}
}

// A weight that is not finite is not hidden by quantisation.
func TestQuantiseNotFinite(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	for _, f := range []Format{Q8, Q4} {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			m := random(t, r, f, 1, 32)
			x := normal(r, 32)
			x[9] = float32(bad)
			m.SetFloat(0, x)
			m.Row(x, 0)
			if v := float64(x[9]); !math.IsNaN(v) && !math.IsInf(v, 0) {
				t.Errorf("%v: %v became %v", f, bad, v)
			}
		}
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func TestMisuse(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	m, q := random(t, r, F32, 20, 40), random(t, r, Q8, 20, 40)
	x, y := normal(r, 40), make([]float32, 64)
	var in Input
	in.Reset(F32, 40, 1)
	in.Put(0, 0, x)
	for what, f := range map[string]func(){
		"a row too many":             func() { m.Row(x, 20) },
		"a row before the first":     func() { m.SetFloat(-1, x) },
		"a short row":                func() { m.SetFloat(0, x[:39]) },
		"raw bytes of a wrong size":  func() { m.SetRaw(0, make([]byte, 41*4)) },
		"blocks that do not fit":     func() { q.SetRaw(0, make([]byte, 34)) },
		"Q4 into floats":             func() { m.SetQ4AsQ8(0, make([]byte, 18)) },
		"input of another format":    func() { q.Mul(y, 32, &in, 0, 20) },
		"rows from within a group":   func() { m.Mul(y, 32, &in, 8, 20) },
		"rows to within a group":     func() { m.Mul(y, 32, &in, 0, 19) },
		"outputs too close":          func() { m.Mul(y, 20, &in, 0, 20) },
		"too few outputs":            func() { m.Mul(y[:31], 32, &in, 0, 20) },
		"a column too many":          func() { in.Put(1, 0, x) },
		"values too many":            func() { in.Put(0, 32, x) },
		"values from within a block": func() { in.Put(0, 8, x[:32]) },
		"half a block":               func() { in.Put(0, 0, x[:8]) },
		"a format that is not":       func() { in.Reset(Format(9), 1, 1) },
	} {
		mustPanic(t, what, f)
	}
}
