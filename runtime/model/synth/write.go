package synth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
)

// Options say how a model is written.
type Options struct {
	// Format of the matrices. GGUF: q8_0 (default), q4_0, q4_k_m, bf16, f16,
	// f32; folder: bf16 (default), f16, f32. Where a row is no whole number of
	// blocks, a matrix gets the next format that fits: q4_k and q6_k become q5_0
	// and q8_0, those of blocks of 32 become f16.
	Format string
	Seed   uint64
	// Shards is the number of weight files of a folder, 0 for one.
	Shards int
	// Tokenizer has tokenizer.json and tokenizer_config.json in its root. A
	// vocabulary smaller than the shape's is filled up with unused rows.
	Tokenizer fs.FS
	// Progress, if set, is told the bytes of weights made so far.
	Progress func(done, total int64)
}

// Formats lists the names of formats for a path, the default first.
func Formats(path string) []string {
	if isGGUF(path) {
		return []string{"q8_0", "q4_0", "q4_k_m", "bf16", "f16", "f32"}
	}
	return []string{"bf16", "f16", "f32"}
}

func isGGUF(path string) bool { return strings.HasSuffix(path, ".gguf") }

// Write makes a model: a GGUF file where the path ends in .gguf, else a folder,
// which may exist. Weights appear under their name only when they are complete.
// Memory in use stays at a few MiB whatever the shape.
func Write(path string, s Shape, o Options) error {
	if err := write(path, s, o); err != nil {
		return fmt.Errorf("synth: %w", err)
	}
	return nil
}

func write(path string, s Shape, o Options) error {
	if err := s.check(); err != nil {
		return err
	}
	formats := Formats(path)
	if o.Format == "" {
		o.Format = formats[0]
	}
	if !slices.Contains(formats, o.Format) {
		return fmt.Errorf("format %q: for %s choose one of %s", o.Format, path, strings.Join(formats, ", "))
	}
	if o.Tokenizer == nil {
		return errors.New("a tokenizer is needed")
	}
	v, err := readVocabulary(o.Tokenizer)
	if err != nil {
		return err
	}
	if len(v.tokens) > s.Vocab {
		return fmt.Errorf("shape %s has a vocabulary of %d, the tokenizer one of %d: choose a larger shape", s.Name, s.Vocab, len(v.tokens))
	}
	if isGGUF(path) {
		return writeGGUF(path, s, o, v)
	}
	return writeFolder(path, s, o, v)
}

func writeGGUF(path string, s Shape, o Options, v *vocabulary) error {
	all := s.matrices()
	w := newWriter(s, o, len(v.tokens))
	var tensors []tensor.Source
	if factors := s.ropeFactors(); factors != nil {
		tensors = append(tensors, vectorSource("rope_freqs.weight", factors))
	}
	for i, m := range all {
		tensors = append(tensors, w.source(m, m.gguf, ggufType(o.Format, s, i, all), m.ggufRow))
	}
	w.count(tensors)
	return tensor.Create(path, func(out io.Writer) error { return gguf.Write(out, s.ggufMeta(o.Format, v), tensors) })
}

func vectorSource(name string, v []float32) tensor.Source {
	return tensor.Source{Name: name, Type: tensor.F32, Shape: []int{len(v)}, Write: func(w io.Writer) error {
		b := make([]byte, 4*len(v))
		tensor.Quantize(tensor.F32, b, v)
		_, err := w.Write(b)
		return err
	}}
}

func writeFolder(dir string, s Shape, o Options, v *vocabulary) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := s.folderFiles(o.Format, v)
	if err != nil {
		return err
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		if files[name], err = fs.ReadFile(o.Tokenizer, name); err != nil {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	kind := map[string]tensor.Type{"f32": tensor.F32, "f16": tensor.F16, "bf16": tensor.BF16}[o.Format]
	w := newWriter(s, o, len(v.tokens))
	var tensors []tensor.Source
	for _, m := range s.matrices() {
		tensors = append(tensors, w.source(m, m.hf, kind, func(row int) int { return row }))
	}
	w.count(tensors)
	return safetensors.WriteDir(dir, o.Shards, tensors)
}

// ggufType is the type of the i-th tensor: vectors stay F32 as in every GGUF
// file, q4_k_m has the mixture of that name.
func ggufType(format string, s Shape, i int, all []matrix) tensor.Type {
	m := all[i]
	if m.vector {
		return tensor.F32
	}
	t := map[string]tensor.Type{
		"f32": tensor.F32, "f16": tensor.F16, "bf16": tensor.BF16, "q8_0": tensor.Q8_0, "q4_0": tensor.Q4_0, "q4_k_m": tensor.Q4_K,
	}[format]
	if format == "q4_k_m" && moreBits(m, s) {
		t = tensor.Q6_K
	}
	for m.cols%t.Block() != 0 {
		switch t {
		case tensor.Q4_K:
			t = tensor.Q5_0
		case tensor.Q6_K:
			t = tensor.Q8_0
		default:
			t = tensor.F16
		}
	}
	return t
}

// moreBits says that a matrix of q4_k_m is one of its Q6_K: the LM head, and
// values and down projections of the first and last eighth of the layers and of
// every third between.
func moreBits(m matrix, s Shape) bool {
	if m.role == roleVocab {
		return s.Tied || m.hf == "lm_head.weight"
	}
	var layer int
	if _, err := fmt.Sscanf(m.gguf, "blk.%d.", &layer); err != nil {
		return false
	}
	eighth := s.Layers / 8
	often := layer < eighth || layer >= s.Layers-eighth || (layer-eighth)%3 == 2
	return often && (strings.HasSuffix(m.gguf, "attn_v.weight") || strings.HasSuffix(m.gguf, "ffn_down.weight"))
}

// writer makes tensors from chunks of rows that are drawn and rounded on all
// cores, and written in order.
type writer struct {
	shape       Shape
	options     Options
	used        int
	done, total int64
	chunks      []chan chunk
	free        []chunk
}

// chunk is memory for some rows.
type chunk struct {
	bytes  []byte
	values []float32
}

// chunkBytes is about how much is drawn at a time.
const chunkBytes = 1 << 19

func newWriter(s Shape, o Options, used int) *writer {
	w := &writer{shape: s, options: o, used: used}
	for range 2 * runtime.GOMAXPROCS(0) {
		w.chunks = append(w.chunks, make(chan chunk, 1))
		w.free = append(w.free, chunk{})
	}
	return w
}

// count sets the total of the progress.
func (w *writer) count(tensors []tensor.Source) {
	for _, t := range tensors {
		w.total += t.Size()
	}
}

// source is a tensor whose rows are drawn in an order of their own.
func (w *writer) source(m matrix, name string, t tensor.Type, order func(row int) int) tensor.Source {
	shape := []int{m.rows, m.cols}
	if m.vector {
		shape = shape[1:]
	}
	return tensor.Source{Name: name, Type: t, Shape: shape, Write: func(out io.Writer) error {
		return w.write(out, newGenerator(w.shape, m, w.options.Seed, w.used), t, order)
	}}
}

func (w *writer) write(out io.Writer, g *generator, t tensor.Type, order func(row int) int) error {
	size := t.Bytes(g.cols)
	step := max(1, chunkBytes/size)
	launched := 0
	launch := func() {
		from := launched * step
		if from >= g.rows {
			return
		}
		slot := launched % len(w.chunks)
		launched++
		c := w.free[slot]
		go func() {
			n := min(step, g.rows-from)
			c.bytes, c.values = grow(c.bytes, n*size), grow(c.values, g.cols)
			for r := range n {
				g.row(c.values, order(from+r))
				tensor.Quantize(t, c.bytes[r*size:], c.values)
			}
			w.chunks[slot] <- c
		}()
	}
	for range w.chunks {
		launch()
	}
	var failed error
	for i := 0; i < launched; i++ {
		slot := i % len(w.chunks)
		c := <-w.chunks[slot]
		w.free[slot] = c
		if failed != nil {
			continue // only wait for what was launched
		}
		if _, failed = out.Write(c.bytes); failed != nil {
			continue
		}
		if w.done += int64(len(c.bytes)); w.options.Progress != nil {
			w.options.Progress(w.done, w.total)
		}
		launch()
	}
	return failed
}

// grow gives a slice of n elements, of s where it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
