package head

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kinds are the networks that a head may be.
var Kinds = []string{"linear", "mlp", "citer", "r2r"}

// Limits on what a manifest may ask for.
const (
	maxWidth     = 1 << 16
	maxWidths    = 32
	maxTopLogits = 4096
	maxExpansion = 16
	maxParams    = 1 << 29
)

// Spec is the shape of a head.
type Spec struct {
	Kind string `json:"kind"`
	// Features are the inputs, concatenated in this order:
	//
	//	hidden     the model's last hidden state, after the final norm
	//	embedding  the row of the model's input embedding of the candidate
	//	logits:K   the K largest raw logits, falling
	//	signals    entropy in nats, top1, top2, logsumexp
	//
	// Linear and mlp take any of them; citer is fixed to hidden, r2r to hidden,
	// embedding, logits:K.
	Features []string `json:"features"`
	Hidden   int      `json:"hidden"` // width of the model
	// Widths are those of the hidden layers: of mlp at least one; of citer two, 2h
	// and h where there are none; of r2r one per residual block, six of 1024 where
	// there are none.
	Widths     []int  `json:"widths,omitempty"`
	Activation string `json:"activation,omitempty"` // of mlp: relu (also if empty) or gelu
	Expansion  int    `json:"expansion,omitempty"`  // of the blocks of r2r: 4 if 0
}

// Signals is the number of values of the feature signals.
const Signals = 4

// Tensor is a tensor of a head's file.
type Tensor struct {
	Name  string
	Shape []int
}

// Len is the number of values.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// feature splits a feature into its name and, of logits, their number.
func feature(f string) (name string, k int, err error) {
	name, count, has := strings.Cut(f, ":")
	switch name {
	case "hidden", "embedding", "signals":
		if !has {
			return name, 0, nil
		}
	case "logits":
		k, err := strconv.Atoi(count)
		if err == nil && k >= 1 && k <= maxTopLogits && strconv.Itoa(k) == count {
			return name, k, nil
		}
		return "", 0, fmt.Errorf("the feature %.40q needs a number of logits from 1 to %d, such as logits:100", f, maxTopLogits)
	}
	return "", 0, fmt.Errorf("there is no feature %.40q; there are hidden, embedding, logits:K and signals", f)
}

// Has says whether a feature (without its number) is among the inputs.
func (s *Spec) Has(name string) bool {
	return slices.ContainsFunc(s.Features, func(f string) bool {
		n, _, err := feature(f)
		return err == nil && n == name
	})
}

// TopLogits is how many of the largest logits the head reads, 0 for none.
func (s *Spec) TopLogits() int {
	for _, f := range s.Features {
		if n, k, err := feature(f); err == nil && n == "logits" {
			return k
		}
	}
	return 0
}

// Inputs is the number of values that the features make.
func (s *Spec) Inputs() int {
	sum := 0
	for _, r := range s.pieces() {
		sum += r.n
	}
	return sum
}

// Check says what is wrong with a shape.
func (s *Spec) Check() error {
	if !slices.Contains(Kinds, s.Kind) {
		return fmt.Errorf("there is no kind %.40q of head; there are %s", s.Kind, strings.Join(Kinds, ", "))
	}
	if s.Hidden < 1 || s.Hidden > maxWidth {
		return fmt.Errorf("hidden is %d; the width of a model lies between 1 and %d", s.Hidden, maxWidth)
	}
	if err := s.checkFeatures(); err != nil {
		return err
	}
	if len(s.Widths) > maxWidths {
		return fmt.Errorf("%d widths; a head has at most %d", len(s.Widths), maxWidths)
	}
	for _, w := range s.Widths {
		if w < 1 || w > maxWidth {
			return fmt.Errorf("a width of %d; widths lie between 1 and %d", w, maxWidth)
		}
	}
	switch {
	case s.Kind == "linear" && len(s.Widths) > 0:
		return fmt.Errorf("a linear head has no widths; it has %v", s.Widths)
	case s.Kind == "mlp" && len(s.Widths) == 0:
		return fmt.Errorf("an mlp needs the width of at least one hidden layer")
	case s.Kind == "citer" && len(s.Widths) != 0 && len(s.Widths) != 2:
		return fmt.Errorf("a citer head has two widths, not %d", len(s.Widths))
	case s.Activation != "" && (s.Kind != "mlp" || s.Activation != "relu" && s.Activation != "gelu"):
		return fmt.Errorf("the activation %.40q of a head of kind %s; an mlp has relu or gelu, the others have none to choose", s.Activation, s.Kind)
	case s.Expansion != 0 && (s.Kind != "r2r" || s.Expansion < 1 || s.Expansion > maxExpansion):
		return fmt.Errorf("the expansion %d of a head of kind %s; r2r has one, from 1 to %d", s.Expansion, s.Kind, maxExpansion)
	}
	if n := s.Params(); n > maxParams {
		return fmt.Errorf("a head of %d weights; at most %d are supported", n, maxParams)
	}
	return nil
}

func (s *Spec) checkFeatures() error {
	if len(s.Features) == 0 || len(s.Features) > 4 {
		return fmt.Errorf("%d features; a head has one to four: hidden, embedding, logits:K, signals", len(s.Features))
	}
	var names []string
	for _, f := range s.Features {
		name, _, err := feature(f)
		if err != nil {
			return err
		}
		if slices.Contains(names, name) {
			return fmt.Errorf("the feature %s stands there twice", name)
		}
		names = append(names, name)
	}
	switch {
	case s.Kind == "citer" && !slices.Equal(names, []string{"hidden"}):
		return fmt.Errorf("the features of a citer head are hidden, not %s", strings.Join(s.Features, ", "))
	case s.Kind == "r2r" && !slices.Equal(names, []string{"hidden", "embedding", "logits"}):
		return fmt.Errorf("the features of an r2r head are hidden, embedding, logits:100, not %s", strings.Join(s.Features, ", "))
	}
	return nil
}

// widths are those of the hidden layers, defaults filled in.
func (s *Spec) widths() []int {
	switch {
	case len(s.Widths) > 0:
		return s.Widths
	case s.Kind == "citer":
		return []int{2 * s.Hidden, s.Hidden}
	case s.Kind == "r2r":
		return slices.Repeat([]int{1024}, 6)
	}
	return nil
}

func (s *Spec) expansion() int {
	if s.Expansion == 0 {
		return 4
	}
	return s.Expansion
}

// Tensors lists the tensors of the file, in the order in which they are stored.
// Names are those of the published modules' state dicts where there are any. The
// bias of a linear head may be left out.
func (s *Spec) Tensors() []Tensor {
	var out []Tensor
	linear := func(name string, to, from int) {
		out = append(out, Tensor{name + "weight", []int{to, from}}, Tensor{name + "bias", []int{to}})
	}
	vectors := func(name string, n int, ends ...string) {
		for _, end := range ends {
			out = append(out, Tensor{name + end, []int{n}})
		}
	}
	w := s.widths()
	switch s.Kind {
	case "linear":
		linear("", 1, s.Inputs())
	case "mlp":
		from := s.Inputs()
		for i, to := range append(slices.Clone(w), 1) {
			linear(fmt.Sprintf("layers.%d.", i), to, from)
			from = to
		}
	case "citer":
		linear("mlp.0.", w[0], s.Hidden)
		vectors("mlp.1.", w[0], "weight", "bias", "running_mean", "running_var")
		linear("mlp.4.", w[1], w[0])
		linear("linear.", 1, w[1])
	case "r2r":
		linear("logits_projection.", s.Hidden, s.TopLogits())
		linear("combined_projection.", w[0], 3*s.Hidden)
		linear("backbone.input_projection.", w[0], w[0])
		for i, from := range w {
			to, at := w[min(i+1, len(w)-1)], fmt.Sprintf("backbone.blocks.%d.", i)
			vectors(at+"layer_norm.", from, "weight", "bias")
			linear(at+"mlp.0.", s.expansion()*from, from)
			linear(at+"mlp.3.", to, s.expansion()*from)
			if to != from {
				linear(at+"dim_change.", to, from)
			}
		}
		last := w[len(w)-1]
		vectors("backbone.output_layer.0.", last, "weight", "bias")
		linear("backbone.output_layer.1.", 1, last)
	}
	return out
}

// Params is the number of trained weights: running statistics are none.
func (s *Spec) Params() int64 {
	var n int64
	for _, t := range s.Tensors() {
		if !strings.Contains(t.Name, "running_") {
			n += int64(t.Len())
		}
	}
	return n
}
