package checkpoint_test

import (
	"slices"
	"strings"
	"testing"

	"tokenrouter/kernels/matmul"
	"tokenrouter/kernels/vec"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tensor"
)

// The format of a matrix that is made of several types, and what is said.
func TestMixed(t *testing.T) {
	for _, c := range []struct {
		q, k, v tensor.Type
		want    matmul.Format
		notes   []string
	}{
		{tensor.Q8_0, tensor.Q8_0, tensor.Q8_0, matmul.Q8, nil},
		{tensor.Q4_0, tensor.Q4_0, tensor.Q4_0, matmul.Q4, nil},
		{tensor.Q4_0, tensor.Q4_0, tensor.Q8_0, matmul.Q8, []string{"2 tensors of Q4_0 became q8"}},
		{tensor.Q4_0, tensor.Q5_0, tensor.Q4_0, matmul.Q8, []string{"2 tensors of Q4_0 became q8", "1 tensor of Q5_0 became q8"}},
		{tensor.Q5_1, tensor.Q5_1, tensor.Q5_1, matmul.Q8, []string{"3 tensors of Q5_1 became q8"}},
		{tensor.F16, tensor.BF16, tensor.F16, matmul.F32, []string{"2 tensors of F16 became f32", "1 tensor of BF16 became f32"}},
		{tensor.BF16, tensor.BF16, tensor.Q8_0, matmul.BF16, []string{"1 tensor of Q8_0 became bf16"}},
		{tensor.Q4_0, tensor.F16, tensor.F16, matmul.F16, []string{"1 tensor of Q4_0 became f16"}},
		{tensor.Q4_0, tensor.F32, tensor.F16, matmul.F32, []string{"1 tensor of Q4_0 became f32", "1 tensor of F16 became f32"}},
	} {
		d := newDraft()
		d.add("blk.1.attn_q.weight", c.q, 128, hidden)
		d.add("blk.1.attn_k.weight", c.k, 64, hidden)
		d.add("blk.1.attn_v.weight", c.v, 64, hidden)
		f, err := d.open(t)
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Plan("")
		if err != nil {
			t.Fatal(err)
		}
		// Embedding, then four matrices a layer.
		if m := p.Matrices[1+4]; m.Role != family.Q || m.Layer != 1 || m.Format != c.want || m.Rows != 256 || len(m.From) != 3 {
			t.Errorf("%v %v %v: %v", c.q, c.k, c.v, m.Format)
		}
		if !slices.Equal(p.Notes, c.notes) {
			t.Errorf("%v %v %v: notes %q", c.q, c.k, c.v, p.Notes)
		}
	}
}

func TestAsked(t *testing.T) {
	c := synthesised(t, shape("llama"), "m.gguf", synth.Options{Format: "f16"})
	stored, err := c.Need("", "")
	if err != nil {
		t.Fatal(err)
	}
	last := stored.Weights
	for _, f := range []string{"f32", "f16", "q8", "q4"} {
		n, err := c.Need(f, "f32")
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Formats) != 1 || n.Formats[0].Format.String() != f || n.Formats[0].Bytes > n.Weights || n.KV != vec.F32 || n.KVToken != 2*stored.KVToken {
			t.Errorf("%s: %+v", f, n)
		}
		switch {
		case f == "f32" && n.Weights < last, f == "f16" && n.Weights != stored.Weights, f == "q8" && n.Weights >= last, f == "q4" && n.Weights >= last:
			t.Errorf("%s takes %d bytes, what was before %d", f, n.Weights, last)
		}
		if f != "f16" && !slices.Equal(n.Notes, []string{"23 tensors of F16 became " + f}) {
			t.Errorf("%s: notes %q", f, n.Notes)
		}
		last = n.Weights
	}
	for _, bad := range [][2]string{{"q5", ""}, {"", "q8"}} {
		if _, err := c.Need(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), bad[0]+bad[1]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Every row of a matrix is one row of one tensor, and every row of a tensor is
// there once.
func TestAt(t *testing.T) {
	c := synthesised(t, synth.Shape{
		Name: "odd", Family: "llama", Layers: 1, Hidden: 10, Heads: 3, KVHeads: 3, HeadDim: 6, FFN: 21, Vocab: 431, MaxPos: 64, RopeTheta: 1e4, Eps: 1e-5,
	}, "m.gguf", synth.Options{Format: "f32"})
	p, err := c.Plan("")
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Matrices {
		m := &p.Matrices[i]
		seen := map[[2]int]bool{}
		zero := 0
		for r := range m.Rows {
			k, row := m.At(r)
			if k < 0 {
				zero++
				continue
			}
			if m.Role == family.Gate && (r%16 < 8) != (m.From[k].Role == family.Gate) {
				t.Errorf("row %d of gate and up is of %s", r, m.From[k].Name)
			}
			seen[[2]int{k, row}] = true
		}
		want := 0
		for _, s := range m.From {
			want += s.Rows
		}
		if len(seen) != want || len(seen)+zero != m.Rows || (zero > 0) != (m.Role == family.Gate) {
			t.Errorf("%s: %d rows of %d, %d zero", m.From[0].Name, len(seen), want, zero)
		}
	}
}
