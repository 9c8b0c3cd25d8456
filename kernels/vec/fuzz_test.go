package vec

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels"
)

// floats reads any bits as numbers, NaN and subnormal ones among them.
func floats(data []byte) []float32 {
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x
}

// seeds adds a few inputs of sane numbers, and one of odd ones.
func seeds(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 12))
	for _, n := range []int{1, 7, 40, 300} {
		var data []byte
		for _, v := range normal(r, n) {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		f.Add(data, uint8(n))
	}
	var data []byte
	for _, b := range []uint32{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff, 0xc2b00000, 0xc2aeac50, 0x00800000, 0x3f800000, 0xff800001} {
		data = binary.LittleEndian.AppendUint32(data, b)
	}
	f.Add(data, uint8(3))
}

// FuzzVector compares the levels on any numbers.
func FuzzVector(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, offset uint8) {
		all := floats(data)
		n := len(all) / 3
		run := func(what string, op func(x, y, z []float32)) {
			alike(t, what, func() []float32 {
				x, y, z := guarding(all[:n], int(offset%8)), guarding(all[n:2*n], int(offset/8%8)), guarding(all[2*n:3*n], int(offset/64))
				op(x.x, y.x, z.x)
				x.check(t)
				y.check(t)
				z.check(t)
				return append(append(x.x[:n:n], y.x...), z.x...)
			})
		}
		run("Add", func(x, y, _ []float32) { Add(x, y) })
		run("RMSNorm", func(x, y, z []float32) { RMSNorm(z, x, y, 1e-5) })
		run("SiLUMulGroups", func(x, y, _ []float32) { SiLUMulGroups(y[:n/16*8], x[:n/16*16]) })
		run("Rotate", func(x, y, z []float32) { Rotate(x[:n/2*2], y[:n/2], z[:n/2]) })
		if n > 0 {
			run("blend", func(x, y, z []float32) { blend(x, y, z[0], z[n-1]) })
			run("scaled", func(x, y, z []float32) { scaled(x, y, z[0]) })
		}
	})
}

// FuzzAttend compares the levels, heads together with heads alone, and rows
// together with rows alone, on any numbers in K, V and the queries.
func FuzzAttend(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, shape uint8) {
		all := floats(data)
		if len(all) < 4 {
			return
		}
		r := rand.New(rand.NewPCG(uint64(shape), uint64(len(all))))
		dim, heads, rows, n := 1+r.IntN(70), 1+r.IntN(6), 1+r.IntN(5), 1+r.IntN(60)
		if r.IntN(4) == 0 {
			n += 230
		}
		c := newContext(r, dim, KVFormat(shape%2), n+rows-1)
		put := func(x []float32) {
			for i := range x {
				if r.IntN(3) == 0 {
					x[i] = all[r.IntN(len(all))]
				}
			}
		}
		for range 1 + r.IntN(4) {
			p := r.IntN(len(c.rows))
			put(c.rows[p][r.IntN(2)])
			c.put(p)
		}
		q := normal(r, rows*heads*dim)
		if r.IntN(3) == 0 {
			put(q[:dim])
		}
		alike(t, "attention", func() []float32 {
			together, alone := make([]float32, len(q)), make([]float32, len(q))
			c.g.AttendRows(together, heads*dim, q, heads*dim, rows, c.pages, before, heads, n, make([]float32, c.g.Scratch(heads*rows)))
			for row := range rows {
				for h := range heads {
					at := (row*heads + h) * dim
					c.attend(alone[at:][:dim], q[at:][:dim], 1, n+row)
				}
			}
			if i := differ(together, alone); i >= 0 {
				t.Fatalf("dim %d, heads %d, rows %d, n %d, value %d: %v together, %v alone", dim, heads, rows, n, i, together[i], alone[i])
			}
			return together
		})
	})
}

// FuzzRow compares the levels, and the oracle, on any row of logits.
func FuzzRow(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, odd uint8) {
		logits := floats(data)
		var want kernels.Signals
		bad := kernels.Measure(&want, logits)
		p := kernels.SampleParams{Temperature: 0.1 + float32(odd%16)/8, TopK: int(odd) % 40, TopP: float32(odd/16) / 16}
		var s Sampler
		alike(t, "a row", func() []float32 {
			var got kernels.Signals
			err := signals(&got, guarding(logits, int(odd%8)).x, 1+int(odd%3))
			id, drawErr := s.Sample(logits, p, 0.37)
			if (err == nil) != (bad == nil) || err != nil && (err.Error() != bad.Error() || drawErr == nil) {
				t.Fatalf("errors %v and %v, want %v", err, drawErr, bad)
			}
			if err != nil {
				return nil
			}
			if drawErr != nil {
				t.Fatal(drawErr)
			}
			out := []float32{got.Entropy, got.EntropyNorm, got.LogSumExp, got.Top1, got.Top2, float32(id)}
			for i, k := range got.TopK {
				if k.ID != want.TopK[i].ID {
					t.Fatalf("place %d is token %d, want %d", i, k.ID, want.TopK[i].ID)
				}
				out = append(out, k.Logprob)
			}
			return out
		})
	})
}
