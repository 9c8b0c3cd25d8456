package synth

import "fmt"

// family is how a family's files differ from those of the others.
type family struct {
	architecture string // in config.json
	gguf         string // general.architecture
	qkNorm       bool   // norms on queries and keys
	qkvBias      bool
	permuted     bool // GGUF has the rows of queries and keys in pairs (2i, 2i+1)
}

var families = map[string]family{
	"qwen3": {architecture: "Qwen3ForCausalLM", gguf: "qwen3", qkNorm: true},
	"qwen2": {architecture: "Qwen2ForCausalLM", gguf: "qwen2", qkvBias: true},
	"llama": {architecture: "LlamaForCausalLM", gguf: "llama", permuted: true},
}

// role is what a tensor is for; it decides how its values are drawn.
type role int

const (
	roleVocab     role = iota // embedding and LM head: a row for each token
	roleInner                 // reads a normed vector: values of deviation 1 come out
	roleAttention             // writes what was attended to into the residual
	roleFFN                   // writes the FFN's output into the residual
	roleNorm
	roleBias
)

// matrix is a tensor of the model under its two names. A vector has one row.
type matrix struct {
	hf, gguf   string
	rows, cols int
	vector     bool
	role       role
	permute    int // rows of a head to be paired in GGUF, 0 for none
}

// matrices lists the tensors in the order in which they are used.
func (s Shape) matrices() []matrix {
	f := families[s.Family]
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	vector := func(hf, gguf string, n int, r role) matrix {
		return matrix{hf: hf, gguf: gguf, rows: 1, cols: n, vector: true, role: r}
	}
	all := []matrix{{hf: "model.embed_tokens.weight", gguf: "token_embd.weight", rows: s.Vocab, cols: s.Hidden, role: roleVocab}}
	for i := range s.Layers {
		hf, gguf := fmt.Sprintf("model.layers.%d.", i), fmt.Sprintf("blk.%d.", i)
		pair := 0
		if f.permuted {
			pair = s.HeadDim
		}
		all = append(all, vector(hf+"input_layernorm.weight", gguf+"attn_norm.weight", s.Hidden, roleNorm))
		for _, p := range []struct {
			name       string
			rows, pair int
		}{{"q", q, pair}, {"k", kv, pair}, {"v", kv, 0}} {
			hfName, ggufName := hf+"self_attn."+p.name+"_proj.", gguf+"attn_"+p.name+"."
			all = append(all, matrix{hf: hfName + "weight", gguf: ggufName + "weight", rows: p.rows, cols: s.Hidden, role: roleInner, permute: p.pair})
			if f.qkvBias {
				all = append(all, vector(hfName+"bias", ggufName+"bias", p.rows, roleBias))
			}
		}
		if f.qkNorm {
			all = append(all,
				vector(hf+"self_attn.q_norm.weight", gguf+"attn_q_norm.weight", s.HeadDim, roleNorm),
				vector(hf+"self_attn.k_norm.weight", gguf+"attn_k_norm.weight", s.HeadDim, roleNorm))
		}
		all = append(all,
			matrix{hf: hf + "self_attn.o_proj.weight", gguf: gguf + "attn_output.weight", rows: s.Hidden, cols: q, role: roleAttention},
			vector(hf+"post_attention_layernorm.weight", gguf+"ffn_norm.weight", s.Hidden, roleNorm),
			matrix{hf: hf + "mlp.gate_proj.weight", gguf: gguf + "ffn_gate.weight", rows: s.FFN, cols: s.Hidden, role: roleInner},
			matrix{hf: hf + "mlp.up_proj.weight", gguf: gguf + "ffn_up.weight", rows: s.FFN, cols: s.Hidden, role: roleInner},
			matrix{hf: hf + "mlp.down_proj.weight", gguf: gguf + "ffn_down.weight", rows: s.Hidden, cols: s.FFN, role: roleFFN})
	}
	all = append(all, vector("model.norm.weight", "output_norm.weight", s.Hidden, roleNorm))
	if !s.Tied {
		all = append(all, matrix{hf: "lm_head.weight", gguf: "output.weight", rows: s.Vocab, cols: s.Hidden, role: roleVocab})
	}
	return all
}

// ggufRow is the row of the tensor in Hugging Face's order that stands at a row
// in GGUF's: there the two halves of a head that are rotated together lie side
// by side.
func (m matrix) ggufRow(row int) int {
	if m.permute == 0 {
		return row
	}
	head, at := row/m.permute*m.permute, row%m.permute
	return head + at%2*(m.permute/2) + at/2
}
