package checkpoint

import (
	"cmp"
	"fmt"

	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tensor"
)

// TypeCount is how much of a checkpoint is stored in a type.
type TypeCount struct {
	Type    tensor.Type
	Tensors int
	Bytes   int64
}

// Description is what a checkpoint says about its model.
type Description struct {
	Name, Path string
	Kind       Kind
	Config     family.Config
	Params     int64
	Bytes      int64 // of the weight files
	Types      []TypeCount
	Need       Need // as stored, with the default format of keys and values
	// RopeFactors says that a tensor of the file scales the rotary positions.
	RopeFactors bool

	Tokens     int    // of the tokenizer
	Vocabulary string // the tokenizer's hash: models with the same one can write one sequence
	Template   bool   // there is a chat template
	EOS        []int32
	Generation Generation
}

// Describe collects what there is to say about the checkpoint without reading
// its weights. The tokenizer is read.
func (c *Checkpoint) Describe() (Description, error) {
	d := Description{
		Name: c.Name, Path: c.Path, Kind: c.Kind, Config: c.Config, Params: c.Config.Params(), Bytes: c.Bytes(),
		Generation: c.Generation, Types: c.types(),
	}
	if err := c.describe(&d); err != nil {
		return d, fmt.Errorf("model %s: %w", cmp.Or(c.Path, c.Name), err)
	}
	return d, nil
}

// describe adds what takes more than a look at the weights' headers.
func (c *Checkpoint) describe(d *Description) error {
	t, err := c.Tokenizer()
	if err != nil {
		return err
	}
	d.RopeFactors = c.factors != nil
	d.Tokens, d.Vocabulary, d.Template = t.Size(), t.Hash(), t.Template() != ""
	if d.EOS, err = c.EOS(); err != nil {
		return err
	}
	d.Need, err = c.Need("", "")
	return err
}

// types counts the tensors of each type, in the order of the forward pass.
func (c *Checkpoint) types() []TypeCount {
	var out []TypeCount
	at := map[tensor.Type]int{}
	for _, w := range c.weights {
		t, _ := c.Weights.Tensor(w.Name) // check has seen it
		i, ok := at[t.Type]
		if !ok {
			i = len(out)
			at[t.Type], out = i, append(out, TypeCount{Type: t.Type})
		}
		out[i].Tensors++
		out[i].Bytes += int64(len(t.Data))
	}
	return out
}
