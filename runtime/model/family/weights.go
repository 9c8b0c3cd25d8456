package family

import "strconv"

// Convention is whose names a file has for its tensors.
type Convention uint8

// The conventions.
const (
	HuggingFace Convention = iota
	GGUF
)

// Role is what a tensor is to the model.
type Role uint8

// The roles. Weights of projections have a row for each output.
const (
	Embed Role = iota
	Head
	Norm
	Norm1
	Norm2
	QNorm
	KNorm
	Q
	K
	V
	O
	Gate
	Up
	Down
	QBias
	KBias
	VBias
	OBias
	GateBias
	UpBias
	DownBias
	roles
)

// names are the tensors' names by convention; those of a layer are behind the
// layer's prefix.
var names = [2][roles]string{
	HuggingFace: {
		Embed: "model.embed_tokens.weight", Head: "lm_head.weight", Norm: "model.norm.weight",
		Norm1: "input_layernorm.weight", Norm2: "post_attention_layernorm.weight",
		QNorm: "self_attn.q_norm.weight", KNorm: "self_attn.k_norm.weight",
		Q: "self_attn.q_proj.weight", K: "self_attn.k_proj.weight", V: "self_attn.v_proj.weight", O: "self_attn.o_proj.weight",
		Gate: "mlp.gate_proj.weight", Up: "mlp.up_proj.weight", Down: "mlp.down_proj.weight",
		QBias: "self_attn.q_proj.bias", KBias: "self_attn.k_proj.bias", VBias: "self_attn.v_proj.bias", OBias: "self_attn.o_proj.bias",
		GateBias: "mlp.gate_proj.bias", UpBias: "mlp.up_proj.bias", DownBias: "mlp.down_proj.bias",
	},
	GGUF: {
		Embed: "token_embd.weight", Head: "output.weight", Norm: "output_norm.weight",
		Norm1: "attn_norm.weight", Norm2: "ffn_norm.weight",
		QNorm: "attn_q_norm.weight", KNorm: "attn_k_norm.weight",
		Q: "attn_q.weight", K: "attn_k.weight", V: "attn_v.weight", O: "attn_output.weight",
		Gate: "ffn_gate.weight", Up: "ffn_up.weight", Down: "ffn_down.weight",
		QBias: "attn_q.bias", KBias: "attn_k.bias", VBias: "attn_v.bias", OBias: "attn_output.bias",
		GateBias: "ffn_gate.bias", UpBias: "ffn_up.bias", DownBias: "ffn_down.bias",
	},
}

var layerPrefix = [2]string{HuggingFace: "model.layers.", GGUF: "blk."}

// Name is what a file calls the tensor of a role; layer counts for those that
// each layer has.
func Name(conv Convention, role Role, layer int) string {
	if role <= Norm {
		return names[conv][role]
	}
	return layerPrefix[conv] + strconv.Itoa(layer) + "." + names[conv][role]
}

// Weight is a tensor that a model's file must have.
type Weight struct {
	Name  string
	Role  Role
	Layer int // 0 where the role is no layer's
	Rows  int
	Cols  int // 0: a vector of Rows values
	// Heads is set where the file holds the rows of each head in pairs; see Row.
	Heads int
}

// Row is where in the file row i of the weight lies. The model's order is by
// halves: pair j of a head is its rows j and j + half, as rotary positions turn
// them. A paired file has those two next to each other.
func (w *Weight) Row(i int) int {
	if w.Heads == 0 {
		return i
	}
	dim := w.Rows / w.Heads
	head, in := i/dim*dim, i%dim
	if half := dim / 2; in < half {
		return head + 2*in
	} else {
		return head + 2*(in-half) + 1
	}
}

// Weights lists the tensors of a model in the order of the forward pass.
func (c *Config) Weights(conv Convention) []Weight {
	d, q, kv, ffn := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.FFN
	layer := []Weight{
		{Role: Norm1, Rows: d},
		{Role: Q, Rows: q, Cols: d, Heads: c.Heads},
		{Role: K, Rows: kv, Cols: d, Heads: c.KVHeads},
		{Role: V, Rows: kv, Cols: d},
	}
	if c.QKVBias {
		layer = append(layer,
			Weight{Role: QBias, Rows: q, Heads: c.Heads},
			Weight{Role: KBias, Rows: kv, Heads: c.KVHeads},
			Weight{Role: VBias, Rows: kv})
	}
	if c.QKNorm {
		layer = append(layer, Weight{Role: QNorm, Rows: c.HeadDim}, Weight{Role: KNorm, Rows: c.HeadDim})
	}
	layer = append(layer, Weight{Role: O, Rows: d, Cols: q})
	if c.OBias {
		layer = append(layer, Weight{Role: OBias, Rows: d})
	}
	layer = append(layer,
		Weight{Role: Norm2, Rows: d},
		Weight{Role: Gate, Rows: ffn, Cols: d},
		Weight{Role: Up, Rows: ffn, Cols: d},
		Weight{Role: Down, Rows: d, Cols: ffn})
	if c.MLPBias {
		layer = append(layer, Weight{Role: GateBias, Rows: ffn}, Weight{Role: UpBias, Rows: ffn}, Weight{Role: DownBias, Rows: d})
	}
	paired := conv == GGUF && c.paired()
	out := make([]Weight, 0, 3+c.Layers*len(layer))
	out = append(out, Weight{Name: Name(conv, Embed, 0), Role: Embed, Rows: c.Vocab, Cols: d})
	for l := range c.Layers {
		for _, w := range layer {
			w.Name, w.Layer = Name(conv, w.Role, l), l
			if !paired {
				w.Heads = 0
			}
			out = append(out, w)
		}
	}
	out = append(out, Weight{Name: Name(conv, Norm, 0), Role: Norm, Rows: d})
	if !c.Tied {
		out = append(out, Weight{Name: Name(conv, Head, 0), Role: Head, Rows: c.Vocab, Cols: d})
	}
	return out
}

func (c *Config) paired() bool {
	for _, f := range families {
		if f.name == c.Family {
			return f.paired
		}
	}
	return false
}
