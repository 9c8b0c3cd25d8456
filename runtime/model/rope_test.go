package model

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// Tables are the cosines and sines of the angles, whenever and by whomever they
// are reached: in any order, by several goroutines, across the bounds of chunks
// and up to the last position.
func TestRope(t *testing.T) {
	const most = 3*ropeChunk + 5
	angles := []float64{1, 0.25, 1e-3}
	r := newRope(angles, 1.5, most)
	var wg sync.WaitGroup
	for seed := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 50 {
				pos := rnd.IntN(most)
				r.reach(pos + 1)
				cos, sin := r.at(pos)
				for i, a := range angles {
					s, c := math.Sincos(float64(pos) * a)
					// The angle is rounded to float32 on its way.
					if most := 1e-7 * float64(pos+1); math.Abs(float64(cos[i])-1.5*c) > most || math.Abs(float64(sin[i])-1.5*s) > most {
						t.Errorf("position %d, pair %d: %v, %v, want %v, %v", pos, i, cos[i], sin[i], 1.5*c, 1.5*s)
					}
				}
			}
		})
	}
	wg.Wait()
	r.reach(most)
	if all := *r.chunks.Load(); len(all) != 4 || len(all[3]) != 5*2*len(angles) {
		t.Errorf("%d chunks, the last of %d values", len(all), len(all[len(all)-1]))
	}
}

// A pool takes memory in slabs that hold no more blocks than it may have, and
// gives all of it back.
func TestPoolMemory(t *testing.T) {
	m := &Model{Config: Config{Layers: 2, KVHeads: 3, HeadDim: 8}}
	for _, limit := range []int{1, 5, 1000, 100_000} {
		p := m.NewPool(limit)
		used := min(limit, 5000)
		for id := range used {
			if err := p.reserve(1); err != nil {
				t.Fatal(err)
			}
			p.reach(int32(id))
			p.take(int32(id), 1)
			b := p.blocks[id].data
			if len(b) != p.BlockBytes() || b[0] != 0 || b[len(b)-1] != 0 {
				t.Fatalf("block %d of %d bytes, %d wanted, begins with %d", id, len(b), p.BlockBytes(), b[0])
			}
			b[0], b[len(b)-1] = 1, 1
		}
		total := 0
		for _, s := range p.slabs.all {
			total += len(s)
		}
		if most := min(limit*p.BlockBytes(), 2*max(used*p.BlockBytes(), leastSlab)); p.Taken() != used || total > most {
			t.Errorf("%d of %d blocks taken, %d bytes, at most %d wanted", p.Taken(), limit, total, most)
		}
		for range 2 {
			if err := p.Close(); err != nil || len(p.slabs.all) != 0 {
				t.Errorf("closed: %v, %d slabs left", err, len(p.slabs.all))
			}
		}
	}
}
