package model

import (
	"encoding/json"
	"fmt"
)

// Architecture is the only one that Load accepts.
const Architecture = "Qwen3ForCausalLM"

// Config is the shape of a model, from its config.json.
type Config struct {
	Vocab     int // rows of the embedding, at least the tokenizer's size
	Hidden    int
	Layers    int
	Heads     int // query heads
	KVHeads   int // divides Heads
	HeadDim   int // even
	FFN       int
	MaxPos    int // positions 0..MaxPos-1
	Eps       float32
	RopeTheta float64
	Tied      bool // the LM head is the embedding
}

// Limits that keep every product of sizes far from overflow.
const (
	maxWidth  = 1 << 20
	maxVocab  = 1 << 22
	maxLayers = 1 << 10
	maxPos    = 1 << 20
)

// configFile is config.json as written by Hugging Face's transformers.
type configFile struct {
	Architectures []string        `json:"architectures"`
	AttentionBias bool            `json:"attention_bias"`
	HiddenAct     string          `json:"hidden_act"`
	SlidingWindow bool            `json:"use_sliding_window"`
	RopeScaling   json.RawMessage `json:"rope_scaling"`
	Tied          bool            `json:"tie_word_embeddings"`
	Vocab         int             `json:"vocab_size"`
	Hidden        int             `json:"hidden_size"`
	Layers        int             `json:"num_hidden_layers"`
	Heads         int             `json:"num_attention_heads"`
	KVHeads       int             `json:"num_key_value_heads"`
	HeadDim       int             `json:"head_dim"`
	FFN           int             `json:"intermediate_size"`
	MaxPos        int             `json:"max_position_embeddings"`
	Eps           float64         `json:"rms_norm_eps"`
	RopeTheta     float64         `json:"rope_theta"`
	EOS           intList         `json:"eos_token_id"`
}

// intList is a number or a list of numbers.
type intList []int32

func (l *intList) UnmarshalJSON(b []byte) error {
	var n *int32
	if json.Unmarshal(b, &n) == nil {
		if n != nil {
			*l = intList{*n}
		}
		return nil
	}
	var many []int32
	if err := json.Unmarshal(b, &many); err != nil {
		return err
	}
	*l = many
	return nil
}

// parseConfig reads and checks config.json.
func parseConfig(b []byte) (Config, intList, error) {
	var f configFile
	if err := json.Unmarshal(b, &f); err != nil {
		return Config{}, nil, fmt.Errorf("config.json is damaged: %w", err)
	}
	if len(f.Architectures) != 1 || f.Architectures[0] != Architecture {
		return Config{}, nil, fmt.Errorf("config.json: the architecture is %q, only %s is supported: choose a Qwen3 model", f.Architectures, Architecture)
	}
	switch {
	case f.HiddenAct != "silu":
		return Config{}, nil, fmt.Errorf("config.json: hidden_act is %q, a Qwen3 model has silu", f.HiddenAct)
	case f.AttentionBias:
		return Config{}, nil, fmt.Errorf("config.json: attention_bias is set, which is not supported: choose a Qwen3 model without")
	case f.SlidingWindow:
		return Config{}, nil, fmt.Errorf("config.json: use_sliding_window is set, which is not supported: choose a model with full attention")
	case len(f.RopeScaling) > 0 && string(f.RopeScaling) != "null":
		return Config{}, nil, fmt.Errorf("config.json: rope_scaling is set, which is not supported: set it to null and keep to the original context")
	}
	c := Config{
		Vocab: f.Vocab, Hidden: f.Hidden, Layers: f.Layers, Heads: f.Heads, KVHeads: f.KVHeads,
		HeadDim: f.HeadDim, FFN: f.FFN, MaxPos: f.MaxPos, Eps: float32(f.Eps), RopeTheta: f.RopeTheta, Tied: f.Tied,
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	return c, f.EOS, c.check()
}

// check holds every size against its limits.
func (c *Config) check() error {
	for _, s := range []struct {
		name       string
		value, max int
	}{
		{"vocab_size", c.Vocab, maxVocab},
		{"hidden_size", c.Hidden, maxWidth},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxWidth},
		{"num_key_value_heads", c.KVHeads, maxWidth},
		{"head_dim", c.HeadDim, maxWidth},
		{"intermediate_size", c.FFN, maxWidth},
		{"max_position_embeddings", c.MaxPos, maxPos},
	} {
		if s.value < 1 || s.value > s.max {
			return fmt.Errorf("config.json: %s is %d, allowed are 1..%d: the file is damaged", s.name, s.value, s.max)
		}
	}
	switch {
	case int64(c.Heads)*int64(c.HeadDim) > maxWidth:
		return fmt.Errorf("config.json: %d heads of %d values are more than the limit of %d: the file is damaged", c.Heads, c.HeadDim, maxWidth)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("config.json: %d attention heads cannot share %d key-value heads evenly: the file is damaged", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("config.json: head_dim is %d, rotary positions need an even one: the file is damaged", c.HeadDim)
	case int64(c.MaxPos)*int64(c.HeadDim) > 1<<26:
		return fmt.Errorf("config.json: %d positions of %d values need too large a table: lower max_position_embeddings", c.MaxPos, c.HeadDim)
	case !(c.Eps > 0 && c.Eps < 1):
		return fmt.Errorf("config.json: rms_norm_eps is %v, a number between 0 and 1 is needed: the file is damaged", c.Eps)
	case !(c.RopeTheta > 1 && c.RopeTheta < 1e12):
		return fmt.Errorf("config.json: rope_theta is %v, a number above 1 is needed: the file is damaged", c.RopeTheta)
	}
	return nil
}

// params counts the weights, the embedding once where it is tied.
func (c *Config) params() int {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	layer := 2*c.Hidden + 2*c.HeadDim + c.Hidden*(2*q+2*kv) + 3*c.Hidden*c.FFN
	n := c.Vocab*c.Hidden + c.Layers*layer + c.Hidden
	if !c.Tied {
		n += c.Vocab * c.Hidden
	}
	return n
}
