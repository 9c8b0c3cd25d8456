package model

import (
	"tokenrouter/kernels/matmul"
	"tokenrouter/kernels/vec"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tokenizer"
)

// Config is the shape of a model.
type Config = family.Config

// Generation is what a checkpoint recommends for sampling.
type Generation = checkpoint.Generation

// Model is a loaded model. Its exported fields are not to be changed.
type Model struct {
	Name       string
	Config     Config
	Tokenizer  *tokenizer.Tokenizer
	Generation Generation

	eos    []int32
	hash   string
	notes  []string
	bytes  int64
	kv     vec.KVFormat
	format string         // of most weights
	embed  *matmul.Matrix // Vocab x Hidden
	head   *matmul.Matrix // the embedding itself where it is tied
	layers []layer
	norm   []float32
	rope   *rope
}

// layer holds the weights of one transformer block. A bias or a norm that the
// model does not have is nil.
type layer struct {
	norm1, norm2 []float32
	qNorm, kNorm []float32      // HeadDim
	qkv          *matmul.Matrix // rows of the queries, then keys, then values
	qkvBias      []float32      // in the order of qkv's rows
	o            *matmul.Matrix
	oBias        []float32      // Hidden
	gateUp       *matmul.Matrix // 8 rows of gate, 8 of up and so on; zero rows behind FFN
	gateUpBias   []float32      // in the order of gateUp's rows
	down         *matmul.Matrix // Hidden x FFN
	downBias     []float32      // Hidden
}

// EOS lists the tokens that end an answer, not to be changed.
func (m *Model) EOS() []int32 { return m.eos }

// Hash is the SHA-256 in hex of the weights' file; see checkpoint.Hash for
// weights in several.
func (m *Model) Hash() string { return m.hash }

// Params is the number of weights.
func (m *Model) Params() int { return int(m.Config.Params()) }

// Notes says what of the weights is not kept as it was stored, a sentence each.
func (m *Model) Notes() []string { return m.notes }

// Bytes is the memory that the weights take.
func (m *Model) Bytes() int64 { return m.bytes }

// Format is the format that most of the weights have in memory, such as q8.
func (m *Model) Format() string { return m.format }

// KVFormat is the format of keys and values, f16 or f32.
func (m *Model) KVFormat() string { return m.kv.String() }

// KVBytes is the memory that the keys and values of one position take.
func (m *Model) KVBytes() int { return checkpoint.KVBytes(&m.Config, m.kv) }

// Close gives the memory of the weights back; the model is not to be used any
// more. A model that nothing refers to gives it back in time.
func (m *Model) Close() {
	all := []*matmul.Matrix{m.embed, m.head}
	for i := range m.layers {
		l := &m.layers[i]
		all = append(all, l.qkv, l.o, l.gateUp, l.down)
	}
	for _, w := range all {
		if w != nil { // of a model whose load failed
			w.Free()
		}
	}
}
