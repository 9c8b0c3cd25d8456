package dataset

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"tokenrouter/kernels"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
)

// format is the version of the form on disk.
const format = 1

// metaKey is where Meta stands in the header of a file.
const metaKey = "tokenrouter.rows"

// Save writes the rows as a safetensors file, which has its name only when it is
// whole.
func (r *Rows) Save(path string) error {
	return tensor.Create(path, r.write)
}

func (r *Rows) write(w io.Writer) error {
	meta := r.Meta
	meta.Format = format
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	n := r.Len()
	sources := []tensor.Source{
		floats("hidden", n, r.Hidden, r.States), floats("logits", n, r.TopK, r.Logits), floats("signals", n, Signals, r.Measures),
		ints("problem", r.Problem), ints("pos", r.Pos), ints("token", r.Token), ints("large_token", r.Other),
		octets("label", r.Labels), octets("mismatch", r.Differ),
	}
	if r.Embedded {
		sources = append([]tensor.Source{floats("embedding", n, r.Hidden, r.Embeddings)}, sources...)
	}
	return safetensors.Write(w, map[string]string{metaKey: string(text)}, sources)
}

func floats(name string, rows, cols int, x []float32) tensor.Source {
	return tensor.Source{Name: name, Type: tensor.F32, Shape: []int{rows, cols}, Write: func(w io.Writer) error {
		return chunks(w, len(x), func(b []byte, i int) []byte {
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(x[i]))
		})
	}}
}

func ints(name string, x []int32) tensor.Source {
	return tensor.Source{Name: name, Type: tensor.I32, Shape: []int{len(x)}, Write: func(w io.Writer) error {
		return chunks(w, len(x), func(b []byte, i int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(x[i])) })
	}}
}

func octets(name string, x []uint8) tensor.Source {
	return tensor.Source{Name: name, Type: tensor.U8, Shape: []int{len(x)}, Write: func(w io.Writer) error {
		_, err := w.Write(x)
		return err
	}}
}

// chunks writes n values through a small buffer.
func chunks(w io.Writer, n int, put func(b []byte, i int) []byte) error {
	var b []byte
	for i := range n {
		if b = put(b, i); len(b) >= 1<<16 || i == n-1 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return nil
}

// Load reads a file that Save wrote.
func Load(path string) (*Rows, error) {
	var r *Rows
	err := tensor.Guard(func() error {
		m, err := tensor.Map(path)
		if err != nil {
			return err
		}
		defer m.Close()
		if r, err = parse(m.Data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return r, err
}

func parse(b []byte) (*Rows, error) {
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, err
	}
	text, ok := f.Meta[metaKey]
	if !ok {
		return nil, fmt.Errorf("it holds no rows for heads (nothing stands under %s in its header); tokenrouter head collect writes such files", metaKey)
	}
	r := &Rows{}
	if err := json.Unmarshal([]byte(text), &r.Meta); err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	if r.Format != format {
		return nil, fmt.Errorf("it has format %d, this program reads %d; collect the rows anew", r.Format, format)
	}
	c := columns{f: f, n: -1}
	r.Problem, r.Pos, r.Token, r.Other = c.ints("problem"), c.ints("pos"), c.ints("token"), c.ints("large_token")
	r.Labels, r.Differ = c.octets("label"), c.octets("mismatch")
	r.States, r.Logits, r.Measures = c.floats("hidden", r.Hidden), c.floats("logits", r.TopK), c.floats("signals", Signals)
	if r.Embedded {
		r.Embeddings = c.floats("embedding", r.Hidden)
	}
	if c.err == nil {
		c.err = r.check()
	}
	if c.err != nil {
		return nil, c.err
	}
	return r, nil
}

// columns reads tensors of one number of rows; the first fault stays.
type columns struct {
	f   *safetensors.File
	n   int // rows, -1 before the first
	err error
}

func (c *columns) take(name string, typ tensor.Type, cols int) []byte {
	if c.err != nil {
		return nil
	}
	t, ok := c.f.Tensor(name)
	switch {
	case !ok:
		c.err = fmt.Errorf("it has no column %s", name)
	case t.Type != typ:
		c.err = fmt.Errorf("column %s is of type %s, not %s", name, t.Type, typ)
	case cols > 0 && (len(t.Shape) != 2 || t.Shape[1] != cols) || cols == 0 && len(t.Shape) != 1:
		c.err = fmt.Errorf("column %s has the shape %v; its header says %d values a row", name, t.Shape, max(cols, 1))
	case c.n >= 0 && t.Shape[0] != c.n:
		c.err = fmt.Errorf("column %s has %d rows, others have %d", name, t.Shape[0], c.n)
	default:
		c.n = t.Shape[0]
		return t.Data
	}
	return nil
}

func (c *columns) ints(name string) []int32 {
	b := c.take(name, tensor.I32, 0)
	out := make([]int32, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func (c *columns) octets(name string) []uint8 {
	return append([]uint8{}, c.take(name, tensor.U8, 0)...)
}

func (c *columns) floats(name string, cols int) []float32 {
	if cols <= 0 && c.err == nil {
		c.err = fmt.Errorf("its header gives column %s %d values a row", name, cols)
	}
	b := c.take(name, tensor.F32, cols)
	out := make([]float32, len(b)/4)
	kernels.FromF32(out, b)
	for i, x := range out {
		if c.err == nil && (math.IsNaN(float64(x)) || math.IsInf(float64(x), 0)) {
			c.err = fmt.Errorf("column %s: row %d holds %v", name, i/cols, x)
		}
	}
	return out
}
