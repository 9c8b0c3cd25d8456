package checkpoint

import (
	"fmt"

	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tensor"
)

// Lanes is the number of rows of the gate, and of the up projection, that stand
// together in their common matrix (kernels/vec, SiLUMulGroups).
const Lanes = 8

// Source is a tensor and what it is to the model.
type Source struct {
	family.Weight
	Tensor tensor.Tensor
}

// Matrix is a matrix of the forward pass: the rows of one tensor, of queries,
// keys and values one behind the other, or of gate and up projection by turns
// of 8 rows with zero rows behind the last.
type Matrix struct {
	Role   family.Role // of the first tensor
	Layer  int
	Format matmul.Format
	Rows   int
	Cols   int
	From   []Source
}

// At says where row i of the matrix comes from: which of From, and which of its
// rows in the model's order. A row without a source, which is zero, has from -1.
func (m *Matrix) At(i int) (from, row int) {
	if m.Role == family.Gate {
		from, row = i/Lanes%2, i/(2*Lanes)*Lanes+i%Lanes
		if row >= m.From[from].Rows {
			return -1, 0
		}
		return from, row
	}
	for k := range m.From {
		if i < m.From[k].Rows {
			return k, i
		}
		i -= m.From[k].Rows
	}
	return -1, 0
}

// Bytes is the matrix' size in memory.
func (m *Matrix) Bytes() int64 { return matmul.Size(m.Format, m.Rows, m.Cols) }

// Plan is how a checkpoint becomes a model in memory.
type Plan struct {
	Matrices []Matrix // in the order of the forward pass
	Vectors  []Source // norms and biases
	Notes    []string // what is not kept as it is stored
	Bytes    int64    // of the matrices in memory
}

// fused are the roles of which the second and further ones are in the matrix of
// the first.
var fused = map[family.Role]bool{family.K: true, family.V: true, family.Up: true}

// Plan lays the model out. Format is what all matrices become, f32, f16, bf16,
// q8 or q4; empty is as stored, with what has no kernel of its own in the
// nearest format that has one.
func (c *Checkpoint) Plan(format string) (*Plan, error) {
	var want *matmul.Format
	if format != "" {
		f, err := matmul.ParseFormat(format)
		if err != nil {
			return nil, err
		}
		want = &f
	}
	p := &Plan{}
	for _, w := range c.weights {
		t, _ := c.Weights.Tensor(w.Name) // check has seen it
		s := Source{w, t}
		if w.Cols == 0 {
			p.Vectors = append(p.Vectors, s)
			continue
		}
		if !fused[w.Role] {
			p.Matrices = append(p.Matrices, Matrix{Role: w.Role, Layer: w.Layer, Cols: w.Cols})
		}
		m := &p.Matrices[len(p.Matrices)-1]
		m.From = append(m.From, s)
		m.Rows += w.Rows
	}
	for i := range p.Matrices {
		m := &p.Matrices[i]
		if m.Role == family.Gate {
			m.Rows = 2 * ((m.From[0].Rows + Lanes - 1) / Lanes * Lanes)
		}
		m.Format = common(m.From)
		if want != nil {
			m.Format = *want
		}
		p.Bytes += m.Bytes()
	}
	p.Notes = c.notes(p)
	return p, nil
}

// formats are the types that a kernel multiplies as they are stored.
var formats = map[tensor.Type]matmul.Format{
	tensor.F32: matmul.F32, tensor.F16: matmul.F16, tensor.BF16: matmul.BF16, tensor.Q8_0: matmul.Q8, tensor.Q4_0: matmul.Q4,
}

// Same says that a type's rows can be taken over as they are.
func Same(t tensor.Type, f matmul.Format) bool {
	have, ok := formats[t]
	return ok && have == f
}

// stored is the format for a tensor: its own or, for block formats without a
// kernel, Q8, whose error is far below that of any of them.
func stored(t tensor.Type) matmul.Format {
	if f, ok := formats[t]; ok {
		return f
	}
	return matmul.Q8
}

// common is the format of a matrix of several tensors: theirs where they agree,
// Q8 for blocks, which holds Q4 without loss. Blocks beside floats of 16 bits are
// rounded to those; other mixtures become F32.
func common(from []Source) matmul.Format {
	f := stored(from[0].Tensor.Type)
	for _, s := range from[1:] {
		f = join(f, stored(s.Tensor.Type))
	}
	return f
}

func join(a, b matmul.Format) matmul.Format {
	block := func(f matmul.Format) bool { return f == matmul.Q8 || f == matmul.Q4 }
	switch {
	case a == b:
		return a
	case block(a) && block(b):
		return matmul.Q8
	case a == matmul.F32 || b == matmul.F32 || !block(a) && !block(b):
		return matmul.F32
	case block(a):
		return b
	}
	return a
}

// notes says which tensors change their format, by format and in a fixed order.
func (c *Checkpoint) notes(p *Plan) []string {
	type change struct {
		from tensor.Type
		to   matmul.Format
	}
	count := map[change]int{}
	var order []change
	for i := range p.Matrices {
		m := &p.Matrices[i]
		for k := range m.From {
			t := m.From[k].Tensor.Type
			if Same(t, m.Format) {
				continue
			}
			ch := change{t, m.Format}
			if count[ch]++; count[ch] == 1 {
				order = append(order, ch)
			}
		}
	}
	var out []string
	for _, ch := range order {
		noun := "tensors"
		if count[ch] == 1 {
			noun = "tensor"
		}
		out = append(out, fmt.Sprintf("%d %s of %v became %v", count[ch], noun, ch.from, ch.to))
	}
	for _, n := range c.ignored {
		if n == family.Name(family.HuggingFace, family.Head, 0) {
			out = append(out, n+" is not read: the head of this model is its embedding")
		}
	}
	return out
}
