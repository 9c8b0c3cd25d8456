package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tensor"
)

// Whatever a file says, it is refused, or every row that a plan names can be
// read.
func FuzzGGUF(f *testing.F) {
	for _, family := range []string{"qwen3", "qwen2", "llama"} {
		s := shape(family)
		s.Layers, s.Hidden, s.Heads, s.KVHeads, s.HeadDim, s.FFN, s.Vocab = 1, 4, 2, 1, 2, 5, 423
		path := filepath.Join(f.TempDir(), "m.gguf")
		if err := synth.Write(path, s, synth.Options{Format: "f16", Tokenizer: tokenizerFiles}); err != nil {
			f.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	d := newDraft()
	d.add("blk.0.attn_v.weight", tensor.Q4_0, 64, hidden)
	path := filepath.Join(f.TempDir(), "d.gguf")
	d.write(f, path)
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := checkpoint.Parse(b)
		if err != nil {
			return
		}
		_, _ = c.Describe() // the tokenizer may be refused still
		for _, format := range []string{"", "q8"} {
			p, err := c.Plan(format)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Matrices {
				m := &p.Matrices[i]
				for r := range m.Rows {
					k, row := m.At(r)
					if k < 0 {
						continue
					}
					at := m.From[k].Weight.Row(row)
					buf := make([]float32, m.Cols)
					tensor.Dequantize(m.From[k].Tensor.Type, buf, m.From[k].Tensor.Row(at, at+1))
				}
			}
			for _, v := range p.Vectors {
				tensor.Dequantize(v.Tensor.Type, make([]float32, v.Rows), v.Tensor.Data)
			}
		}
		angles, _ := c.Angles()
		for _, a := range angles {
			if !(a >= 0 && a <= 1e6) {
				t.Fatalf("an angle of %v", a)
			}
		}
	})
}
