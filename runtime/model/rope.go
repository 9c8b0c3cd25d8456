package model

import (
	"sync"
	"sync/atomic"

	"tokenrouter/kernels"
)

// ropeChunk is the number of positions that a table grows by.
const ropeChunk = 256

// rope holds the cosines and sines of rotary position embeddings (Su et al.
// 2021). Positions are computed when a step first reaches them, 256 at a time:
// a checkpoint that promises a million would need hundreds of megabytes at once.
// It is safe for concurrent use.
type rope struct {
	angle []float32 // radians a position, by pair
	scale float64   // of cosines and sines (YaRN's attention factor, 1 otherwise)
	most  int       // positions that the model has

	grow   sync.Mutex
	chunks atomic.Pointer[[][]float32] // [position/ropeChunk][position%ropeChunk][cos, sin][pair]
}

// newRope makes the tables for maxPos positions and heads of 2*len(angles)
// values: pair i turns by angles[i] radians a position.
func newRope(angles []float64, scale float64, maxPos int) *rope {
	r := &rope{angle: make([]float32, len(angles)), scale: scale, most: maxPos}
	for i, a := range angles {
		r.angle[i] = float32(a)
	}
	r.chunks.Store(&[][]float32{})
	return r
}

// reach computes what is missing of positions 0..n-1.
func (r *rope) reach(n int) {
	want := (n + ropeChunk - 1) / ropeChunk
	if len(*r.chunks.Load()) >= want {
		return
	}
	r.grow.Lock()
	defer r.grow.Unlock()
	old := *r.chunks.Load()
	if len(old) >= want {
		return
	}
	all := append(make([][]float32, 0, want), old...)
	for len(all) < want {
		all = append(all, r.chunk(len(all)*ropeChunk))
	}
	r.chunks.Store(&all)
}

// chunk computes the positions from one on. An angle is rounded to float32, as
// in the implementations that checkpoints are trained with.
func (r *rope) chunk(from int) []float32 {
	half := len(r.angle)
	n := min(ropeChunk, r.most-from)
	t := make([]float32, n*2*half)
	for p := range n {
		cos, sin := t[p*2*half:][:half], t[(2*p+1)*half:][:half]
		for i, a := range r.angle {
			s, c := kernels.Sincos(float64(float32(from+p) * a))
			cos[i], sin[i] = float32(float64(c*r.scale)), float32(float64(s*r.scale))
		}
	}
	return t
}

// at is the cosines and sines of a position that reach has seen.
func (r *rope) at(pos int) (cos, sin []float32) {
	half := len(r.angle)
	t := (*r.chunks.Load())[pos/ropeChunk][pos%ropeChunk*2*half:][:2*half]
	return t[:half], t[half:]
}
