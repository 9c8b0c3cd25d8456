package synth

import (
	"hash/fnv"
	"math"
)

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of
// 64 bits whose outputs look independent.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

const golden = 0x9e3779b97f4a7c15

// generator draws the weights of one tensor.
type generator struct {
	matrix
	key     uint64
	scale   float32 // of a draw, which has deviation 1
	used    int     // rows of the vocabulary that the tokenizer knows
	marks   int     // marked columns of the hidden vector
	spacing int     // columns from one of them to the next
	mark    float32 // value of a marked column of the vocabulary
}

// The scale of things, for a hidden size d:
//
//   - Rows of the vocabulary have deviation 3/sqrt(d), so that a normed vector
//     gives logits of deviation 3.
//   - Inner matrices have 1/sqrt(columns): values of deviation about 1 come out.
//   - Output matrices add up to a residual of power residual over all layers,
//     large against that of the embedding (9/d a value): else, with a tied head,
//     every model would only repeat its last token.
//   - Up to eight columns of the vocabulary are marked: they hold +mark in rows
//     that the tokenizer uses, -mark in the others, and no output matrix writes
//     there. Together they lift the logits of used rows by about 24 nats over
//     those of unused ones.
const (
	logitDeviation = 3.0
	residual       = 2.25 // of a value
	markPower      = 18.0 // sum of the squares of a row's marks
	gateUp         = 0.6  // deviation of silu(g)*u for g, u of deviation 1
)

func newGenerator(s Shape, m matrix, seed uint64, used int) *generator {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.hf))
	g := &generator{matrix: m, key: mix(h.Sum64() ^ mix(seed+golden)), used: used}
	g.marks = min(8, max(1, s.Hidden/32))
	g.spacing = s.Hidden / g.marks
	g.mark = float32(math.Sqrt(markPower / float64(g.marks)))
	switch m.role {
	case roleVocab:
		g.scale = float32(logitDeviation / math.Sqrt(float64(s.Hidden)))
	case roleInner:
		g.scale = float32(1 / math.Sqrt(float64(m.cols)))
	case roleAttention:
		g.scale = float32(math.Sqrt(residual / float64(2*s.Layers) / float64(m.cols)))
	case roleFFN:
		g.scale = float32(math.Sqrt(residual/float64(2*s.Layers)/float64(m.cols)) / gateUp)
	case roleNorm:
		g.scale = 0.1
	case roleBias:
		g.scale = 0.05
	}
	return g
}

// marked says that a column of the hidden vector carries the mark.
func (g *generator) marked(col int) bool { return col%g.spacing == 0 && col/g.spacing < g.marks }

// row draws row r, in Hugging Face's order.
func (g *generator) row(dst []float32, r int) {
	if (g.role == roleAttention || g.role == roleFFN) && g.marked(r) {
		clear(dst)
		return
	}
	state := mix(g.key ^ mix(uint64(r)+1))
	scale := g.scale * unit
	for i := 0; i < len(dst); i += 2 {
		state += golden
		z := mix(state)
		// The sum of four bytes is near to normal. Two such sums at a time.
		const even = 0x00ff00ff00ff00ff
		z = z&even + z>>8&even
		z += z >> 16
		dst[i] = scale * float32(int(z&0xffff)-510)
		if i+1 < len(dst) {
			dst[i+1] = scale * float32(int(z>>32&0xffff)-510)
		}
	}
	switch g.role {
	case roleVocab:
		mark := g.mark
		if r >= g.used {
			mark = -mark
		}
		for c := 0; c < len(dst) && g.marked(c); c += g.spacing {
			dst[c] = mark
		}
	case roleNorm:
		// Multiples of 2^-7 near 1, and of 2^-8 near 0, are the same in every format.
		for i, v := range dst {
			dst[i] = 1 + float32(math.Round(float64(v)*128))/128
		}
	case roleBias:
		for i, v := range dst {
			dst[i] = float32(math.Round(float64(v)*256)) / 256
		}
	}
}

// unit turns the sum of four random bytes less its mean into a draw of
// deviation 1: the variance of a byte is (256^2-1)/12.
var unit = float32(1 / math.Sqrt(4*(256*256-1)/12.0))
