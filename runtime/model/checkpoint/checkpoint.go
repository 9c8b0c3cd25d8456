package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tensor"
	"tokenrouter/runtime/model/tokenizer"
)

// Kind is the form of a checkpoint.
type Kind string

// The kinds.
const (
	GGUF        Kind = "gguf"
	Safetensors Kind = "safetensors"
)

// Generation is what a checkpoint recommends for sampling. Zero values mean
// that it says nothing.
type Generation struct {
	MaxNewTokens int
	DoSample     bool
	Temperature  float32
	TopK         int
	TopP         float32
}

// check holds the numbers against their ranges; where names their source.
func (g *Generation) check(where string) error {
	if g.MaxNewTokens < 0 || g.TopK < 0 || !(g.Temperature >= 0) || !(g.TopP >= 0 && g.TopP <= 1) {
		return fmt.Errorf("%s has a number out of range: max_new_tokens, temperature and top_k are at least 0, top_p is 0..1", where)
	}
	return nil
}

// Checkpoint is an open model on disk. Its fields are not to be changed. It is
// safe for concurrent use but for Close.
type Checkpoint struct {
	Name       string // the model's, for people
	Path       string // as given to Open; empty for a file system
	Kind       Kind
	Config     family.Config
	Generation Generation
	Weights    tensor.Store

	conv      family.Convention
	source    string          // what names the shape in errors
	weights   []family.Weight // what the shape asks for
	factors   []float32       // of family.RopeFactors, nil without
	files     []file
	tokenizer func() (*tokenizer.Tokenizer, error)
	ends      func(*tokenizer.Tokenizer) ([]int32, error)
	ignored   []string // tensors that are left alone
}

// file is a weight file.
type file struct {
	name string
	size int64
	open func() (io.ReadCloser, error)
}

// Close ends the use of the weights.
func (c *Checkpoint) Close() error { return c.Weights.Close() }

// Bytes is the size of the weight files.
func (c *Checkpoint) Bytes() int64 {
	var n int64
	for _, f := range c.files {
		n += f.size
	}
	return n
}

// Tokenizer reads the tokenizer, on the first call. It can be used after Close.
func (c *Checkpoint) Tokenizer() (*tokenizer.Tokenizer, error) { return c.tokenizer() }

// once keeps the tokenizer that load reads, and holds it against the model.
func (c *Checkpoint) once(load func() (*tokenizer.Tokenizer, error)) func() (*tokenizer.Tokenizer, error) {
	return sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
		var t *tokenizer.Tokenizer
		err := tensor.Guard(func() (err error) {
			t, err = load()
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := c.rows(t.Size()); err != nil {
			return nil, err
		}
		return t, nil
	})
}

// rows holds the tokenizer's size against the model.
func (c *Checkpoint) rows(tokens int) error {
	if tokens > c.Config.Vocab {
		return fmt.Errorf("the tokenizer has %d tokens, %s only %d rows: the files do not belong together", tokens, c.source, c.Config.Vocab)
	}
	return nil
}

// EOS lists the tokens that end an answer.
func (c *Checkpoint) EOS() ([]int32, error) {
	t, err := c.Tokenizer()
	if err != nil {
		return nil, err
	}
	ids, err := c.ends(t)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if id < 0 || int(id) >= c.Config.Vocab {
			return nil, fmt.Errorf("eos_token_id %d is outside the vocabulary of %d: the files do not belong together", id, c.Config.Vocab)
		}
	}
	return ids, nil
}

// Hash is the SHA-256 in hex of the weight file or, where there are several, of
// them one behind the other in the order of their names. The files are read,
// not mapped, so that the memory in use does not grow.
func (c *Checkpoint) Hash() (string, error) {
	h, buf := sha256.New(), make([]byte, 256<<10)
	for _, f := range c.files {
		if err := copyFile(h, f, buf); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func copyFile(h io.Writer, f file, buf []byte) error {
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{r}, buf)
	if err == nil && n != f.size {
		err = fmt.Errorf("%s changed while it was read: %d bytes instead of %d", f.name, n, f.size)
	}
	return err
}

// Angles are the angles by which the pairs of a head turn from one position to
// the next, and what cosines and sines are multiplied by.
func (c *Checkpoint) Angles() (angles []float64, scale float64) {
	angles, scale = c.Config.Rope.Frequencies(c.Config.HeadDim)
	for i, f := range c.factors {
		angles[i] /= float64(f)
	}
	return angles, scale
}

// check holds the tensors against the shape.
func (c *Checkpoint) check() error {
	c.weights = c.Config.Weights(c.conv)
	known := make(map[string]bool, len(c.weights))
	for i := range c.weights {
		w := &c.weights[i]
		known[w.Name] = true
		want := []int{w.Rows}
		if w.Cols > 0 {
			want = []int{w.Rows, w.Cols}
		}
		if _, err := c.find(w.Name, want...); err != nil {
			return err
		}
	}
	for _, n := range c.Weights.Names() {
		switch {
		case known[n]:
		case ignorable(n):
			c.ignored = append(c.ignored, n)
		default:
			return fmt.Errorf("tensor %.80q does not belong to a model of family %s with %d layers: %s and weights are of different models", n, c.Config.Family, c.Config.Layers, c.source)
		}
	}
	return c.readFactors()
}

// find gives a tensor of the shape that the model asks for.
func (c *Checkpoint) find(name string, want ...int) (tensor.Tensor, error) {
	t, ok := c.Weights.Tensor(name)
	switch {
	case !ok:
		return t, fmt.Errorf("there is no tensor %q, which %s asks for: a part of the weights is missing, fetch the model again", name, c.source)
	case !slices.Equal(t.Shape, want):
		return t, fmt.Errorf("tensor %q has shape %v, %s implies %v: the files are damaged or of different models", name, t.Shape, c.source, want)
	case !t.Type.Known():
		return t, fmt.Errorf("tensor %q is of type %v, which is not supported: choose a file of the model in %s", name, t.Type, readable())
	}
	return t, nil
}

// readable lists the types that can be read.
func readable() string {
	var names []string
	for _, t := range tensor.Readable() {
		names = append(names, t.String())
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// ignorable says that a tensor may stand in a file though no shape asks for it:
// a copy of the embedding as the head of a tied model, and tables of rotary
// positions that follow from the configuration.
func ignorable(name string) bool {
	const inv = ".rotary_emb.inv_freq"
	return name == family.Name(family.HuggingFace, family.Head, 0) || name == family.RopeFactors || strings.HasSuffix(name, inv)
}

// readFactors reads the factors of a GGUF file's rotary positions.
func (c *Checkpoint) readFactors() error {
	if _, ok := c.Weights.Tensor(family.RopeFactors); !ok {
		return nil
	}
	t, err := c.find(family.RopeFactors, c.Config.HeadDim/2)
	if err != nil {
		return err
	}
	c.factors = make([]float32, t.Len())
	tensor.Dequantize(t.Type, c.factors, t.Data)
	for i, f := range c.factors {
		if !(f >= 1e-6 && f <= 1e6) {
			return fmt.Errorf("tensor %q has %v at %d, where a factor above 0 is needed: the file is damaged", family.RopeFactors, f, i)
		}
	}
	c.ignored = slices.DeleteFunc(c.ignored, func(n string) bool { return n == family.RopeFactors })
	return nil
}

// isMissing says that a file is not there.
func isMissing(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err != nil
}
