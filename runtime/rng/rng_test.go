package rng

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// The known answers are those of the reference implementation's
// kat_vectors (Random123, philox4x64 10).
func TestPhiloxKnownAnswers(t *testing.T) {
	const all = math.MaxUint64
	for _, c := range []struct {
		ctr  [4]uint64
		key  [2]uint64
		want [4]uint64
	}{
		{
			want: [4]uint64{0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b},
		},
		{
			ctr:  [4]uint64{all, all, all, all},
			key:  [2]uint64{all, all},
			want: [4]uint64{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0},
		},
		{
			ctr:  [4]uint64{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
			key:  [2]uint64{0x452821e638d01377, 0xbe5466cf34e90c6c},
			want: [4]uint64{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6},
		},
	} {
		if got := philox4x64(c.ctr, c.key); got != c.want {
			t.Errorf("philox4x64(%x, %x) = %x, want %x", c.ctr, c.key, got, c.want)
		}
	}
}

// Case G3: 10,000 requests of one session seed, at two positions and for two
// purposes, share no draw.
func TestNoDuplicatesOverRequests(t *testing.T) {
	seen := make(map[uint64]Key, 40_000)
	for req := range uint64(10_000) {
		for _, pos := range []int{0, 57} {
			for _, p := range []Purpose{Sample, Router} {
				k := Key{Seed: 1, Req: req, Pos: pos, Purpose: p}
				v := k.Uint64(0)
				if other, dup := seen[v]; dup {
					t.Fatalf("%+v and %+v both draw %x", k, other, v)
				}
				seen[v] = k
			}
		}
	}
}

// Any single changed field gives another draw; the same key gives the same.
func TestEveryFieldCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Key{
			Seed:    rapid.Uint64().Draw(t, "seed"),
			Req:     rapid.Uint64().Draw(t, "req"),
			Pos:     rapid.IntRange(0, 1<<40).Draw(t, "pos"),
			Model:   rapid.IntRange(0, 7).Draw(t, "model"),
			Purpose: Purpose(rapid.Uint32Range(0, 9).Draw(t, "purpose")),
		}
		n := rapid.IntRange(0, 1<<40).Draw(t, "n")
		bit := rapid.IntRange(0, 63).Draw(t, "bit")
		v := k.Uint64(n)
		if again := k.Uint64(n); again != v {
			t.Fatalf("draw %d changed from %x to %x", n, v, again)
		}
		seed, req, pos, model, purpose := k, k, k, k, k
		seed.Seed ^= 1 << bit
		req.Req ^= 1 << bit
		pos.Pos ^= 1 << (bit % 63)
		model.Model ^= 1 << (bit % 31)
		purpose.Purpose ^= 1 << (bit % 32)
		for name, other := range map[string]Key{"seed": seed, "req": req, "pos": pos, "model": model, "purpose": purpose} {
			if other.Uint64(n) == v {
				t.Fatalf("bit %d of %s does not change draw %d of %+v", bit, name, n, k)
			}
		}
		if k.Uint64(n^1<<(bit%63)) == v {
			t.Fatalf("draws %d and %d of %+v are equal", n, n^1<<(bit%63), k)
		}
	})
}

// A flipped input bit flips each output bit about half the time, for the
// counter fields that neighbouring draws differ in.
func TestAvalanche(t *testing.T) {
	const trials = 4000
	for name, flip := range map[string]func(*Key){
		"seed":    func(k *Key) { k.Seed ^= 1 },
		"req":     func(k *Key) { k.Req ^= 1 },
		"pos":     func(k *Key) { k.Pos ^= 1 },
		"model":   func(k *Key) { k.Model ^= 1 },
		"purpose": func(k *Key) { k.Purpose ^= 1 },
	} {
		var flips [64]int
		for i := range trials {
			k := Key{Seed: 7, Req: uint64(i), Pos: i % 160, Model: i % 3, Purpose: Sample}
			other := k
			flip(&other)
			for d := k.Uint64(0) ^ other.Uint64(0); d != 0; d &= d - 1 {
				flips[bits.TrailingZeros64(d)]++
			}
		}
		// Five standard deviations of Binomial(trials, 1/2).
		limit := 5 * math.Sqrt(trials) / 2
		for b, n := range flips {
			if math.Abs(float64(n)-trials/2) > limit {
				t.Errorf("%s: output bit %d flips in %d of %d", name, b, n, trials)
			}
		}
	}
}

// Chi-square of single draws and of pairs of neighbouring keys over a fixed
// grid of keys: uniform, and independent along every axis.
func TestUniformAndIndependent(t *testing.T) {
	axes := map[string]func(i int) Key{
		"requests":  func(i int) Key { return Key{Seed: 42, Req: uint64(i), Pos: 3, Purpose: Sample} },
		"positions": func(i int) Key { return Key{Seed: 42, Req: 5, Pos: i, Purpose: Sample} },
		"models":    func(i int) Key { return Key{Seed: 42, Req: uint64(i / 4), Model: i % 4, Purpose: Router} },
		"purposes":  func(i int) Key { return Key{Seed: 42, Pos: i / 4, Purpose: Purpose(i % 4)} },
		"seeds":     func(i int) Key { return Key{Seed: uint64(i), Purpose: Workload} },
	}
	const n, side = 60_000, 16
	for name, key := range axes {
		single := make([]int, side*side)
		pairs := make([]int, side*side)
		for i := range n {
			a, b := key(2*i).Float64(0), key(2*i+1).Float64(0)
			single[int(a*side*side)]++
			pairs[int(a*side)*side+int(b*side)]++
		}
		for what, counts := range map[string][]int{"single": single, "pairs": pairs} {
			if x := chiSquare(counts); x > chiLimit(len(counts)-1) {
				t.Errorf("%s along %s: chi-square %.1f over %d cells", what, name, x, len(counts))
			}
		}
	}
	t.Run("draws of one key", func(t *testing.T) {
		k := Key{Seed: 9, Req: 1, Purpose: Router}
		counts := make([]int, side*side)
		for i := range n {
			counts[int(k.Float64(2*i)*side)*side+int(k.Float64(2*i+1)*side)]++
		}
		if x := chiSquare(counts); x > chiLimit(len(counts)-1) {
			t.Errorf("chi-square %.1f over %d cells", x, len(counts))
		}
	})
}

func TestFloat64Range(t *testing.T) {
	var sum float64
	const n = 20_000
	for i := range n {
		f := Key{Seed: 3, Req: uint64(i)}.Float64(i % 7)
		if f < 0 || f >= 1 {
			t.Fatalf("draw %v lies outside [0,1)", f)
		}
		sum += f
	}
	// Five standard errors of the mean of a uniform variable.
	if mean := sum / n; math.Abs(mean-0.5) > 5/math.Sqrt(12*n) {
		t.Errorf("mean %v", mean)
	}
}

func TestNoAllocation(t *testing.T) {
	k := Key{Seed: 1, Req: 2, Pos: 3, Purpose: Sample}
	var sink float64
	if a := testing.AllocsPerRun(100, func() { sink += k.Float64(1) }); a != 0 {
		t.Errorf("%v allocations a draw (sum %v)", a, sink)
	}
}

func chiSquare(counts []int) float64 {
	total := 0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	var x float64
	for _, c := range counts {
		x += (float64(c) - want) * (float64(c) - want) / want
	}
	return x
}

// chiLimit is the Wilson-Hilferty bound at 4.3 standard deviations, about
// 1e-5: the keys are fixed, so a pass stays a pass.
func chiLimit(df int) float64 {
	d := float64(df)
	c := 2 / (9 * d)
	return d * math.Pow(1-c+4.3*math.Sqrt(c), 3)
}

func BenchmarkFloat64(b *testing.B) {
	k := Key{Seed: 1, Req: 2, Pos: 3, Purpose: Sample}
	var sink float64
	for i := 0; b.Loop(); i++ {
		k.Pos = i
		sink += k.Float64(0)
	}
	if sink < 0 {
		b.Fatal(sink)
	}
}
