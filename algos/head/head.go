package head

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"tokenrouter/kernels/matmul"
)

// Head is a trained head with its weights. It does not change, and any number of
// goroutines may use it, each with a Workspace of its own.
type Head struct {
	m      Manifest
	parts  parts
	net    net
	pieces []piece
	hash   string
	bytes  int64

	format matmul.Format
}

// Input is what a head reads at one decode step. Features that its spec does not
// name are not looked at.
type Input struct {
	Hidden    []float32 // [h] last hidden state, after the final norm
	Embedding []float32 // [h] input embedding of the candidate
	Logits    []float32 // [k] largest raw logits, falling
	Signals   []float32 // [Signals] entropy in nats, top1, top2, logsumexp
}

// Workspace holds what is computed on the way. The zero value is ready; it belongs
// to one goroutine, which may use it for any number of heads.
type Workspace struct {
	in         matmul.Input
	x, a, b, y columns
	one        [1]Input
	out        []float64
}

// New makes a head of trained weights, row-major, by the names of Spec.Tensors. It
// copies them.
func New(m Manifest, tensors map[string][]float32) (*Head, error) {
	return NewWith(m, tensors, Options{})
}

// Options say how a head is held. The zero value holds weights as they are.
type Options struct {
	// Weights is the format of matrices in memory. A large head is read from memory
	// once for every score: a narrower format is faster and less exact.
	Weights matmul.Format
}

// NewWith is New with options.
func NewWith(m Manifest, tensors map[string][]float32, o Options) (*Head, error) {
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("head %s: %w", m.Name, err)
	}
	for name := range tensors {
		if !m.Spec.has(name) {
			return nil, fmt.Errorf("head %s: %w", m.Name, unknownTensor(&m.Spec, name))
		}
	}
	h, err := assemble(m, o, func(t *Tensor) ([]float32, error) {
		v, ok := tensors[t.Name]
		if !ok {
			return nil, errMissing
		}
		if len(v) != t.Len() {
			return nil, fmt.Errorf("has %d values, not the %d of %v", len(v), t.Len(), t.Shape)
		}
		return v, nil
	})
	if err != nil {
		return nil, fmt.Errorf("head %s: %w", m.Name, err)
	}
	return h, nil
}

var errMissing = errors.New("is missing")

// assemble builds a head of tensors that read gives, one after the other: what it
// gives is not kept.
func assemble(m Manifest, o Options, read func(*Tensor) ([]float32, error)) (*Head, error) {
	if m.Models == nil {
		m.Models = map[string]string{}
	}
	h := &Head{m: m, format: o.Weights, parts: parts{map[string]*matmul.Matrix{}, map[string][]float32{}}}
	sum := sha256.New()
	var bytes []byte
	for _, t := range m.Spec.Tensors() {
		v, err := read(&t)
		if errors.Is(err, errMissing) && m.Spec.Kind == "linear" && t.Name == "bias" {
			continue
		}
		if err == nil && !finite(v) {
			err = errors.New("holds a value that is no number")
		}
		if err == nil && t.Name == "mlp.1.running_var" && !positive(v) {
			err = errors.New("holds a variance below 0")
		}
		if err != nil {
			return nil, fmt.Errorf("the tensor %s %w", t.Name, err)
		}
		bytes = appendFloats(append(bytes[:0], t.Name...), v)
		sum.Write(bytes)
		if len(t.Shape) == 1 || t.Shape[0] == 1 {
			h.parts.vectors[t.Name] = append([]float32(nil), v...)
			h.bytes += int64(4 * len(v))
			continue
		}
		w, err := matmul.New(o.Weights, t.Shape[0], t.Shape[1])
		if err != nil {
			return nil, fmt.Errorf("the tensor %s: %w", t.Name, err)
		}
		for r := range w.Rows {
			w.SetFloat(r, v[r*w.Cols:][:w.Cols])
		}
		h.parts.matrices[t.Name] = w
		h.bytes += w.Bytes()
	}
	h.hash = hex.EncodeToString(sum.Sum(nil))
	if m.Hash != "" && m.Hash != h.hash {
		return nil, fmt.Errorf("the weights are not those of the manifest: it names %.12s, the file has %.12s; the two files belong to different heads", m.Hash, h.hash)
	}
	h.m.Hash = h.hash
	h.pieces = h.m.Spec.pieces()
	h.net = h.parts.build(&h.m.Spec)
	return h, nil
}

func positive(v []float32) bool {
	for _, x := range v {
		if x < 0 {
			return false
		}
	}
	return true
}

func appendFloats(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// has says whether a name is that of a tensor of the file.
func (s *Spec) has(name string) bool {
	for _, t := range s.Tensors() {
		if t.Name == name {
			return true
		}
	}
	return false
}

// Manifest is what is told about the head; not to be changed.
func (h *Head) Manifest() *Manifest { return &h.m }

// Name is what routers call the head.
func (h *Head) Name() string { return h.m.Name }

// Hash names the weights: SHA-256 in hex over the tensors in the order of
// Spec.Tensors, name and float32 values each.
func (h *Head) Hash() string { return h.hash }

// Format is how its matrices are held, such as f32.
func (h *Head) Format() string { return h.format.String() }

// Bytes is the memory that the weights take.
func (h *Head) Bytes() int64 { return h.bytes }

// Score is the probability that the head gives, between 0 and 1: the sigmoid of
// the network's logit, in single precision as records keep it.
func (h *Head) Score(ws *Workspace, in *Input) (float64, error) {
	z, err := h.Logit(ws, in)
	if err != nil {
		return 0, err
	}
	return float64(float32(sigmoid(z))), nil
}

// Logit is the network's output, whose sigmoid is the score.
func (h *Head) Logit(ws *Workspace, in *Input) (float64, error) {
	ws.one[0] = *in
	z, err := h.logits(ws, ws.one[:])
	ws.one[0] = Input{}
	if err != nil {
		return 0, err
	}
	if z[0] != z[0] {
		return 0, h.noNumber()
	}
	return float64(z[0]), nil
}

// Scores are those of several inputs, each as Score gives it, bit for bit: the
// weights are read once for all. One that is no number is NaN. They are valid until
// the workspace is used again.
func (h *Head) Scores(ws *Workspace, in []Input) ([]float64, error) {
	z, err := h.logits(ws, in)
	if err != nil {
		return nil, err
	}
	ws.out = ws.out[:0]
	for _, v := range z {
		ws.out = append(ws.out, float64(float32(sigmoid(float64(v)))))
	}
	return ws.out, nil
}

func (h *Head) logits(ws *Workspace, in []Input) ([]float32, error) {
	for i := range in {
		if err := h.fits(&in[i]); err != nil {
			return nil, fmt.Errorf("head %s: %w", h.m.Name, err)
		}
	}
	if len(in) == 0 {
		return nil, nil
	}
	h.net.logits(ws, in)
	return ws.y.v[:len(in)], nil
}

func (h *Head) noNumber() error {
	return fmt.Errorf("head %s: the score is no number; are the model's hidden states finite?", h.m.Name)
}

// fits holds an input against what the head reads.
func (h *Head) fits(in *Input) error {
	for _, r := range h.pieces {
		if got := len(*in.of(r.name)); got != r.n {
			return fmt.Errorf("it reads %d values of %s, the row has %d", r.n, r.name, got)
		}
	}
	return nil
}

// piece is a feature and the number of its values.
type piece struct {
	name string
	n    int
}

// pieces are the features of a spec, in their order.
func (s *Spec) pieces() []piece {
	var out []piece
	for _, f := range s.Features {
		name, n, _ := feature(f)
		switch name {
		case "hidden", "embedding":
			n = s.Hidden
		case "signals":
			n = Signals
		}
		out = append(out, piece{name, n})
	}
	return out
}

// of is where the values of a feature are.
func (in *Input) of(feature string) *[]float32 {
	switch feature {
	case "hidden":
		return &in.Hidden
	case "embedding":
		return &in.Embedding
	case "logits":
		return &in.Logits
	}
	return &in.Signals
}

// Fits says why the head is of no use to a model of a role, by its hash and the
// width of its hidden states; nil if it is. The model may be the one whose rows the
// head reads, or another that it was trained beside. A manifest without hashes goes
// by the width alone.
func (h *Head) Fits(role, modelHash string, hidden int) error {
	m := &h.m
	if want, ok := m.Models[role]; ok && want != modelHash {
		return fmt.Errorf("the head %s was made for another %s model: its hash is %.12s, that of the model here %.12s; train a head for this one (tokenrouter head train), or run the model of the head", m.Name, role, want, modelHash)
	}
	if role == m.Reads() && hidden != m.Spec.Hidden {
		return fmt.Errorf("the head %s is made for hidden states of %d values, those of the %s model have %d", m.Name, m.Spec.Hidden, role, hidden)
	}
	return nil
}

// Unproven says that nothing but widths ties the head to a model.
func (h *Head) Unproven() bool { return len(h.m.Models) == 0 }

// gather puts the features of each input one behind the other.
func (c *columns) gather(pieces []piece, in []Input) {
	k := 0
	for _, p := range pieces {
		k += p.n
	}
	c.shape(len(in), k, k)
	for i := range in {
		x := c.at(i)
		for _, p := range pieces {
			x = x[copy(x, *in[i].of(p.name)):]
		}
	}
}

// sized is s with n values, of which any may be anything.
func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
