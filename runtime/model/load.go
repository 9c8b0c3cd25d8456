package model

import (
	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tensor"
)

// load lays the model out, checks that it fits, and fills it: the weights are
// packed while the tokenizer and the sum of the files are read.
func load(c *checkpoint.Checkpoint, o *Options) (*Model, error) {
	p, err := c.Plan(o.Format)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: c.Name, Config: c.Config, Generation: c.Generation, notes: p.Notes, layers: make([]layer, c.Config.Layers)}
	if m.kv, err = c.KV(p, o.KV); err != nil {
		return nil, err
	}
	if err := fits(p); err != nil {
		return nil, err
	}
	if err := tensor.Guard(func() error { m.vectors(p); return nil }); err != nil {
		return nil, err
	}
	tasks := []func() error{
		func() (err error) {
			m.hash, err = c.Hash()
			return err
		},
		func() (err error) {
			if m.Tokenizer, err = c.Tokenizer(); err == nil {
				m.eos, err = c.EOS()
			}
			return err
		},
	}
	bar := &progress{total: p.Bytes, report: o.Progress}
	for i := range p.Matrices {
		plan := &p.Matrices[i]
		w, err := matmul.New(plan.Format, plan.Rows, plan.Cols)
		if err != nil {
			return m, err
		}
		m.place(plan, w)
		m.bytes += w.Bytes()
		tasks = append(tasks, packing(c.Weights, plan, w, bar)...)
	}
	if c.Config.Tied {
		m.head = m.embed
	}
	m.format = p.Formats()[0].Format.String()
	if err := runAll(o.Threads, tasks); err != nil {
		return m, err
	}
	angles, scale := c.Angles()
	m.rope = newRope(angles, scale, c.Config.MaxPos)
	return m, nil
}

// place puts a matrix where the forward pass looks for it.
func (m *Model) place(p *checkpoint.Matrix, w *matmul.Matrix) {
	switch p.Role {
	case family.Embed:
		m.embed = w
	case family.Head:
		m.head = w
	case family.Q:
		m.layers[p.Layer].qkv = w
	case family.O:
		m.layers[p.Layer].o = w
	case family.Gate:
		m.layers[p.Layer].gateUp = w
	case family.Down:
		m.layers[p.Layer].down = w
	}
}

// vectors reads norms and biases.
func (m *Model) vectors(p *checkpoint.Plan) {
	c := &m.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for i := range p.Vectors {
		s := &p.Vectors[i]
		v := read(s)
		m.bytes += 4 * int64(len(v))
		if s.Role == family.Norm {
			m.norm = v
			continue
		}
		l := &m.layers[s.Layer]
		switch s.Role {
		case family.Norm1:
			l.norm1 = v
		case family.Norm2:
			l.norm2 = v
		case family.QNorm:
			l.qNorm = v
		case family.KNorm:
			l.kNorm = v
		case family.QBias:
			l.qkvBias = append(make([]float32, 0, q+2*kv), v...)
		case family.KBias, family.VBias:
			l.qkvBias = append(l.qkvBias, v...)
		case family.OBias:
			l.oBias = v
		case family.GateBias:
			l.gateUpBias = interleave(nil, v, 0)
		case family.UpBias:
			l.gateUpBias = interleave(l.gateUpBias, v, 1)
		case family.DownBias:
			l.downBias = v
		}
	}
}

// read gives a vector in the model's order.
func read(s *checkpoint.Source) []float32 {
	raw := make([]float32, s.Rows)
	tensor.Dequantize(s.Tensor.Type, raw, s.Tensor.Data)
	v := make([]float32, s.Rows)
	for i := range v {
		v[i] = raw[s.Weight.Row(i)]
	}
	return v
}

// interleave puts the values of gate (which 0) or up (1) where their rows stand
// in the common matrix.
func interleave(out, v []float32, which int) []float32 {
	const lanes = checkpoint.Lanes
	if out == nil {
		out = make([]float32, 2*((len(v)+lanes-1)/lanes*lanes))
	}
	for i, x := range v {
		out[i/lanes*2*lanes+which*lanes+i%lanes] = x
	}
	return out
}

// part is the size of what one task packs: small enough that little of a file
// is in memory twice, large enough that claims and releases cost nothing.
const part = 2 << 20

// packing cuts a matrix into tasks, of rows that lie together in memory.
func packing(store tensor.Store, p *checkpoint.Matrix, w *matmul.Matrix, bar *progress) []func() error {
	const together = 16 // the kernels' groups of rows
	bytes, rows := p.Bytes(), int64(p.Rows)
	step := max(int(part*rows/max(bytes, 1))/together*together, together)
	var tasks []func() error
	for from := 0; from < p.Rows; from += step {
		to := min(from+step, p.Rows)
		tasks = append(tasks, func() error {
			pack(store, p, w, from, to)
			bar.add(bytes*int64(to)/rows - bytes*int64(from)/rows)
			return nil
		})
	}
	return tasks
}

// pack sets rows from..to-1 and lets their pages in the file go.
func pack(store tensor.Store, p *checkpoint.Matrix, w *matmul.Matrix, from, to int) {
	type span struct{ first, last int }
	used := make([]span, len(p.From))
	for i := range used {
		used[i] = span{1 << 62, -1}
	}
	var buf []float32
	for r := from; r < to; r++ {
		k, row := p.At(r)
		if k < 0 {
			continue // memory is zero
		}
		s := &p.From[k]
		at := s.Weight.Row(row)
		raw := s.Tensor.Row(at, at+1)
		switch {
		case checkpoint.Same(s.Tensor.Type, p.Format):
			w.SetRaw(r, raw)
		case s.Tensor.Type == tensor.Q4_0 && p.Format == matmul.Q8:
			w.SetQ4AsQ8(r, raw)
		default:
			if buf == nil {
				buf = make([]float32, p.Cols)
			}
			tensor.Dequantize(s.Tensor.Type, buf, raw)
			w.SetFloat(r, buf)
		}
		used[k] = span{min(used[k].first, at), max(used[k].last, at)}
	}
	for k, u := range used {
		if u.last >= 0 {
			store.Release(tensor.Tensor{Data: p.From[k].Tensor.Row(u.first, u.last+1)})
		}
	}
}
