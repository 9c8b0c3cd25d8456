package checkpoint

import (
	"cmp"
	"fmt"
	"slices"

	"tokenrouter/kernels/matmul"
	"tokenrouter/kernels/vec"
	"tokenrouter/runtime/model/family"
)

// Need is what a model takes in memory, in bytes.
type Need struct {
	Weights int64         // matrices, norms and biases
	Formats []FormatBytes // of the matrices
	KVToken int64         // keys and values of one position
	KV      vec.KVFormat  // of keys and values
	Notes   []string      // see Plan
}

// FormatBytes is how much of the matrices is in a format.
type FormatBytes struct {
	Format matmul.Format
	Bytes  int64
}

// Need says what the model takes with its weights in a format of Plan and keys
// and values in one of KV.
func (c *Checkpoint) Need(format, kv string) (Need, error) {
	p, err := c.Plan(format)
	if err != nil {
		return Need{}, err
	}
	n := Need{Weights: p.Bytes, Formats: p.Formats(), Notes: p.Notes}
	for i := range p.Vectors {
		n.Weights += 4 * int64(p.Vectors[i].Rows)
	}
	if n.KV, err = c.KV(p, kv); err != nil {
		return Need{}, err
	}
	n.KVToken = int64(KVBytes(&c.Config, n.KV))
	return n, nil
}

// Formats counts the bytes of each format, the most first.
func (p *Plan) Formats() []FormatBytes {
	var out []FormatBytes
	for i := range p.Matrices {
		m := &p.Matrices[i]
		at := slices.IndexFunc(out, func(f FormatBytes) bool { return f.Format == m.Format })
		if at < 0 {
			at, out = len(out), append(out, FormatBytes{Format: m.Format})
		}
		out[at].Bytes += m.Bytes()
	}
	slices.SortStableFunc(out, func(a, b FormatBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// KV is the format of keys and values of a name, f16 or f32. Empty is f16, or
// f32 for a model whose weights are all float32 and for one of the program's
// own, whose few heads cost little.
func (c *Checkpoint) KV(p *Plan, name string) (vec.KVFormat, error) {
	if name != "" {
		f, err := vec.ParseKVFormat(name)
		if err != nil {
			return 0, fmt.Errorf("%q is no format of keys and values: choose f16 or f32", name)
		}
		return f, nil
	}
	if c.Path != "" && slices.ContainsFunc(p.Matrices, func(m Matrix) bool { return m.Format != matmul.F32 }) {
		return vec.F16, nil
	}
	return vec.F32, nil
}

// KVBytes is what the keys and values of one position take in a format, with
// its part of the padding that pages have.
func KVBytes(c *family.Config, kv vec.KVFormat) int {
	return c.Layers * c.KVHeads * vec.NewPage(c.HeadDim, kv).Bytes() / vec.PageLen
}
