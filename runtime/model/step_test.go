package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/kernels/matmul"
	"tokenrouter/kernels/team"
	"tokenrouter/kernels/vec"
)

// mixed is a model in which every matrix has another format than in the layer
// before, as in files that keep some layers more exactly. Claims of one format
// are larger than those of another.
func mixed(t *testing.T) *Model {
	r := rand.New(rand.NewPCG(1, 2))
	formats := []matmul.Format{matmul.Q8, matmul.Q4, matmul.F16, matmul.F32, matmul.BF16}
	used := 0
	matrix := func(rows, cols int) *matmul.Matrix {
		w, err := matmul.New(formats[used%len(formats)], rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		used++
		row := make([]float32, cols)
		for i := range rows {
			for k := range row {
				row[k] = float32(r.NormFloat64() / math.Sqrt(float64(cols)))
			}
			w.SetFloat(i, row)
		}
		return w
	}
	ones := func(n int) []float32 { return slices.Repeat([]float32{1}, n) }
	c := Config{Vocab: 300, Hidden: 1024, Layers: 5, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 200, MaxPos: 64, Eps: 1e-6}
	m := &Model{Name: "mixed", Config: c, kv: vec.F16, norm: ones(c.Hidden), embed: matrix(c.Vocab, c.Hidden), head: matrix(c.Vocab, c.Hidden)}
	for range c.Layers {
		m.layers = append(m.layers, layer{
			norm1: ones(c.Hidden), norm2: ones(c.Hidden),
			qkv: matrix((c.Heads+2*c.KVHeads)*c.HeadDim, c.Hidden), o: matrix(c.Hidden, c.Heads*c.HeadDim),
			gateUp: matrix(2*c.FFN, c.Hidden), down: matrix(c.Hidden, c.FFN),
		})
	}
	angles := make([]float64, c.HeadDim/2)
	for i := range angles {
		angles[i] = math.Pow(10000, -2*float64(i)/float64(c.HeadDim))
	}
	m.rope = newRope(angles, 1, c.MaxPos)
	return m
}

// Formats may change from layer to layer: scratch memory is enough for all, and
// results are those of one token at a time.
func TestMixedFormats(t *testing.T) {
	m := mixed(t)
	ids := make([]int32, 40)
	for i := range ids {
		ids[i] = int32(i * 37 % m.Config.Vocab)
	}
	blocks := []int32{0, 1, 2}
	var ws Workspace
	kv := m.NewPool(3)
	for i := range ids {
		if err := m.Forward(&ws, kv, []Row{{Blocks: blocks, Start: i, Tokens: ids[i : i+1], Logits: true}}); err != nil {
			t.Fatal(err)
		}
	}
	want := slices.Clone(ws.Logits(0))
	for _, n := range []int{1, 2, 4} {
		cores := team.New(n)
		ws := Workspace{Seat: cores.Seat()}
		if err := m.Forward(&ws, m.NewPool(3), []Row{{Blocks: blocks, Tokens: ids, Logits: true}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ws.Logits(0), want) || want[0] != want[0] {
			t.Errorf("%d cores: other logits than one token at a time", n)
		}
		cores.Close()
	}
}
