package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/synth"

	store "tokenrouter/runtime/model/tensor"
)

// rows reads a tensor of a file into float32 rows.
func rows(t *testing.T, s store.Store, name string) [][]float32 {
	t.Helper()
	w, ok := s.Tensor(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	all := make([]float32, w.Len())
	store.Dequantize(w.Type, all, w.Data)
	return slices.Collect(slices.Chunk(all, w.Cols()))
}

// byHalves turns rows of heads of dim rows from the order (pair, half) of
// llama.cpp into (half, pair).
func byHalves(in [][]float32, dim int) [][]float32 {
	out := make([][]float32, len(in))
	for i := range in {
		head, half, pair := i/dim*dim, i%dim/(dim/2), i%(dim/2)
		out[i] = in[head+2*pair+half]
	}
	return out
}

// expected is what the matrix of a role must hold, from the file as it is.
func expected(t *testing.T, s store.Store, conv family.Convention, c *model.Config, role family.Role, l int) [][]float32 {
	get := func(r family.Role) [][]float32 { return rows(t, s, family.Name(conv, r, l)) }
	switch role {
	case family.Q:
		q, k := get(family.Q), get(family.K)
		if conv == family.GGUF && c.Family == "llama" {
			q, k = byHalves(q, c.HeadDim), byHalves(k, c.HeadDim)
		}
		return slices.Concat(q, k, get(family.V))
	case family.Gate:
		gate, up := get(family.Gate), get(family.Up)
		var out [][]float32
		for i := 0; i < len(gate); i += 8 {
			for _, m := range [][][]float32{gate, up} {
				for k := i; k < i+8; k++ {
					if k < len(m) {
						out = append(out, m[k])
					} else {
						out = append(out, make([]float32, c.Hidden))
					}
				}
			}
		}
		return out
	case family.Head:
		if c.Tied {
			role = family.Embed
		}
	}
	return rows(t, s, family.Name(conv, role, l))
}

// Every row of every matrix is the file's, at its place, in the format asked
// for: exactly where the format holds it, else rounded once.
func TestRows(t *testing.T) {
	for _, fam := range family.Names() {
		s := synth.Shape{
			Name: fam, Family: fam, Layers: 2, Hidden: 96, Heads: 4, KVHeads: 2, HeadDim: 24, FFN: 172, Vocab: 450, MaxPos: 64,
			RopeTheta: 1e4, Eps: 1e-5, Tied: fam == "llama",
		}
		for _, c := range []struct{ file, format, asked, has string }{
			{"m.gguf", "f32", "", "f32"},
			{"m.gguf", "f16", "", "f16"},
			{"m.gguf", "bf16", "", "bf16"},
			{"m.gguf", "q8_0", "", "q8"},
			{"m.gguf", "q4_0", "", "q4"},
			{"m.gguf", "q4_k_m", "", "q8"},
			{"m.gguf", "q4_0", "q8", "q8"},
			{"m.gguf", "q8_0", "f16", "f16"},
			{"m.gguf", "f32", "q4", "q4"},
			{"m", "bf16", "", "bf16"},
			{"m", "f16", "q8", "q8"},
		} {
			t.Run(fmt.Sprint(fam, "/", c.file, "/", c.format, "/", c.asked), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), c.file)
				if err := synth.Write(path, s, synth.Options{Format: c.format, Seed: 7, Shards: 2, Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
					t.Fatal(err)
				}
				m, err := model.Open(path, model.Options{Format: c.asked, Threads: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				if m.Format() != c.has {
					t.Errorf("the format is %s, want %s", m.Format(), c.has)
				}
				conv := family.GGUF
				var file store.Store
				if c.file == "m.gguf" {
					file, err = gguf.Open(path)
				} else {
					conv = family.HuggingFace
					file, err = safetensors.OpenDir(path)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				for l := range s.Layers {
					for _, role := range []family.Role{family.Embed, family.Head, family.Q, family.O, family.Gate, family.Down} {
						compare(t, fmt.Sprint("role ", role, " of layer ", l), m.Matrix(role, l), expected(t, file, conv, &m.Config, role, l))
					}
				}
			})
		}
	}
}

// compare holds a matrix against rows that are rounded as its format does.
func compare(t *testing.T, what string, m *matmul.Matrix, want [][]float32) {
	t.Helper()
	if m.Rows != len(want) || m.Cols != len(want[0]) {
		t.Fatalf("%s is %d x %d, want %d x %d", what, m.Rows, m.Cols, len(want), len(want[0]))
	}
	one, err := matmul.New(m.Format, 1, m.Cols)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Free()
	got, rounded := make([]float32, m.Cols), make([]float32, m.Cols)
	for i, w := range want {
		m.Row(got, i)
		if slices.Equal(got, w) {
			continue
		}
		one.SetFloat(0, w)
		if one.Row(rounded, 0); !slices.Equal(got, rounded) {
			t.Fatalf("%s: row %d is %v, want %v", what, i, got[:4], w[:4])
		}
	}
}

// Norms and biases, of an odd shape with every bias there is.
func TestVectors(t *testing.T) {
	c := model.Config{
		Family: "llama", Vocab: 427, Hidden: 10, Layers: 2, Heads: 3, KVHeads: 3, HeadDim: 6, FFN: 21,
		MaxPos: 60, Eps: 1e-6, Rope: family.Rope{Theta: 500, Scale: 1}, QKVBias: true, OBias: true, MLPBias: true,
	}
	ts := tensors(c, 9)
	m, err := model.Load(folder(t, c, ts), "biased")
	if err != nil {
		t.Fatal(err)
	}
	for l := range c.Layers {
		get := func(role family.Role) []float32 { return ts[family.Name(family.HuggingFace, role, l)].data }
		gateUp := make([]float32, 2*24)
		for i := range c.FFN {
			gateUp[i/8*16+i%8], gateUp[i/8*16+8+i%8] = get(family.GateBias)[i], get(family.UpBias)[i]
		}
		for role, want := range map[family.Role][]float32{
			family.Norm: get(family.Norm), family.Norm1: get(family.Norm1), family.Norm2: get(family.Norm2),
			family.QNorm: nil, family.KNorm: nil, family.OBias: get(family.OBias), family.DownBias: get(family.DownBias),
			family.QBias: slices.Concat(get(family.QBias), get(family.KBias), get(family.VBias)), family.GateBias: gateUp,
		} {
			if got := m.Vector(role, l); !slices.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("role %d of layer %d is %v, want %v", role, l, got, want)
			}
		}
	}
}

// The biases of a llama GGUF's queries and keys are in pairs too.
func TestPairedBias(t *testing.T) {
	s := synth.Shape{
		Name: "b", Family: "qwen2", Layers: 1, Hidden: 32, Heads: 2, KVHeads: 2, HeadDim: 16, FFN: 32, Vocab: 430, MaxPos: 64, RopeTheta: 1e4, Eps: 1e-6,
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(path, s, synth.Options{Format: "f32", Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
		t.Fatal(err)
	}
	// A file of qwen2 becomes one of llama by its keys' prefix alone.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "llama.gguf")
	if err := os.WriteFile(other, asLlama(b), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(other, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var want []float32
	for _, role := range []family.Role{family.QBias, family.KBias, family.VBias} {
		bias := rows(t, f, family.Name(family.GGUF, role, 0))[0]
		var single [][]float32
		for _, v := range bias {
			single = append(single, []float32{v})
		}
		if role != family.VBias {
			single = byHalves(single, 16)
		}
		want = append(want, slices.Concat(single...)...)
	}
	if got := m.Vector(family.QBias, 0); !slices.Equal(got, want) {
		t.Errorf("the bias is %v, want %v", got[:8], want[:8])
	}
}

// asLlama replaces the name of the family, which has as many letters.
func asLlama(b []byte) []byte {
	out := slices.Clone(b)
	for i := 0; i+5 <= len(out); i++ {
		if string(out[i:i+5]) == "qwen2" && !isPre(out[:i]) {
			copy(out[i:], "llama")
		}
	}
	return out
}

// isPre says that what follows is the name of the tokenizer's split rule.
func isPre(before []byte) bool {
	const key = "tokenizer.ggml.pre"
	tail := before[max(len(before)-len(key)-12, 0):]
	return len(tail) >= len(key) && string(tail[:len(key)]) == key
}
