package family

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// jsonKeys are the keys of config.json.
var jsonKeys = keys{
	file: "config.json", vocab: "vocab_size", hidden: "hidden_size", layers: "num_hidden_layers",
	heads: "num_attention_heads", kvHeads: "num_key_value_heads", headDim: "head_dim", ffn: "intermediate_size",
	maxPos: "max_position_embeddings", eps: "rms_norm_eps", theta: "rope_theta", scaling: "rope_type of rope_scaling",
	factor: "factor of rope_scaling", low: "low_freq_factor", high: "high_freq_factor",
	original: "original_max_position_embeddings", fast: "beta_fast", slow: "beta_slow", attention: "attention_factor",
}

// configFile is config.json as written by Hugging Face's transformers.
type configFile struct {
	Architectures []string        `json:"architectures"`
	AttentionBias bool            `json:"attention_bias"`
	MLPBias       bool            `json:"mlp_bias"`
	HiddenAct     string          `json:"hidden_act"`
	SlidingWindow bool            `json:"use_sliding_window"`
	LayerTypes    []string        `json:"layer_types"`
	Quantization  json.RawMessage `json:"quantization_config"`
	Partial       *float64        `json:"partial_rotary_factor"`
	Tied          bool            `json:"tie_word_embeddings"`
	Vocab         int             `json:"vocab_size"`
	Hidden        int             `json:"hidden_size"`
	Layers        int             `json:"num_hidden_layers"`
	Heads         int             `json:"num_attention_heads"`
	KVHeads       *int            `json:"num_key_value_heads"`
	HeadDim       *int            `json:"head_dim"`
	FFN           int             `json:"intermediate_size"`
	MaxPos        int             `json:"max_position_embeddings"`
	Original      int             `json:"original_max_position_embeddings"`
	Eps           float64         `json:"rms_norm_eps"`
	RopeTheta     *float64        `json:"rope_theta"`
	RopeScaling   *ropeFile       `json:"rope_scaling"`
	Rope          *ropeFile       `json:"rope_parameters"` // transformers 5: scaling and theta
	EOS           IDs             `json:"eos_token_id"`
}

// ropeFile is rope_scaling, or rope_parameters.
type ropeFile struct {
	Type      string   `json:"rope_type"`
	OldType   string   `json:"type"`
	Theta     *float64 `json:"rope_theta"`
	Partial   *float64 `json:"partial_rotary_factor"`
	Factor    float64  `json:"factor"`
	Low       float64  `json:"low_freq_factor"`
	High      float64  `json:"high_freq_factor"`
	Original  int      `json:"original_max_position_embeddings"`
	Fast      float64  `json:"beta_fast"`
	Slow      float64  `json:"beta_slow"`
	Attention *float64 `json:"attention_factor"`
	Mscale    float64  `json:"mscale"`
	MscaleAll float64  `json:"mscale_all_dim"`
	Truncate  *bool    `json:"truncate"`
}

// IDs is a number or a list of numbers in a JSON file.
type IDs []int32

// UnmarshalJSON reads either form; null gives none.
func (l *IDs) UnmarshalJSON(b []byte) error {
	var n *int32
	if json.Unmarshal(b, &n) == nil {
		*l = nil
		if n != nil {
			*l = IDs{*n}
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

// FromJSON reads and checks config.json. The ids are those of eos_token_id.
func FromJSON(b []byte) (Config, IDs, error) {
	var f configFile
	if err := json.Unmarshal(b, &f); err != nil {
		return Config{}, nil, fmt.Errorf("config.json is damaged: %w", err)
	}
	if len(f.Architectures) != 1 {
		return Config{}, nil, fmt.Errorf("config.json: architectures is %.200q, exactly one is needed: the file is damaged", f.Architectures)
	}
	fam, err := find("config.json", f.Architectures[0], func(f *family) string { return f.architecture })
	if err != nil {
		return Config{}, nil, err
	}
	if err := f.refuse(); err != nil {
		return Config{}, nil, err
	}
	c := Config{
		Family: fam.name,
		Vocab:  f.Vocab, Hidden: f.Hidden, Layers: f.Layers, Heads: f.Heads, KVHeads: f.Heads, HeadDim: fam.headDim,
		FFN: f.FFN, MaxPos: f.MaxPos, Eps: float32(f.Eps), Tied: f.Tied,
		QKNorm: fam.qkNorm, QKVBias: fam.qkvBias,
	}
	if !fam.qkvBias { // there the key is not the file's to set
		c.QKVBias, c.OBias = f.AttentionBias, f.AttentionBias
	}
	if fam == &llama {
		c.MLPBias = f.MLPBias
	}
	if f.KVHeads != nil {
		c.KVHeads = *f.KVHeads
	}
	switch {
	case f.HeadDim != nil:
		c.HeadDim = *f.HeadDim
	case c.HeadDim == 0 && c.Heads > 0:
		if c.Hidden%c.Heads != 0 {
			return Config{}, nil, fmt.Errorf("config.json: head_dim is missing, and hidden_size %d is no multiple of %d heads: the file is damaged", c.Hidden, c.Heads)
		}
		c.HeadDim = c.Hidden / c.Heads
	}
	if c.Rope, err = f.rope(); err != nil {
		return Config{}, nil, err
	}
	if err := c.check(&jsonKeys); err != nil {
		return Config{}, nil, err
	}
	c.stretch()
	return c, f.EOS, nil
}

// refuse names what would change the arithmetic and is not implemented.
func (f *configFile) refuse() error {
	for _, t := range f.LayerTypes {
		if t != "full_attention" {
			return fmt.Errorf("config.json: layer_types has %.80q, which is not supported: choose a model with full attention in every layer", t)
		}
	}
	switch {
	case f.HiddenAct != "silu":
		return fmt.Errorf("config.json: hidden_act is %.80q, the supported families have silu: the file is damaged", f.HiddenAct)
	case f.SlidingWindow:
		return fmt.Errorf("config.json: use_sliding_window is set, which is not supported: choose a model with full attention")
	case len(f.Quantization) > 0 && string(f.Quantization) != "null":
		var q struct {
			Method string `json:"quant_method"`
		}
		_ = json.Unmarshal(f.Quantization, &q) // without a name it is refused all the same
		return fmt.Errorf("config.json: the weights are quantised (quantization_config, method %.80q), which is not supported: use the original weights, or a GGUF file", q.Method)
	}
	for _, p := range []*float64{f.Partial, f.Rope.partial(), f.RopeScaling.partial()} {
		if p != nil && *p != 1 {
			return fmt.Errorf("config.json: partial_rotary_factor is %v, which is not supported: choose a model that rotates whole heads", *p)
		}
	}
	return nil
}

func (r *ropeFile) partial() *float64 {
	if r == nil {
		return nil
	}
	return r.Partial
}

// rope reads rope_theta and rope_scaling, or rope_parameters, which is both.
func (f *configFile) rope() (Rope, error) {
	r := Rope{Theta: 10000, Scale: 1} // the default of all three families
	if f.RopeTheta != nil {
		r.Theta = *f.RopeTheta
	}
	s := f.RopeScaling
	if f.Rope != nil {
		s = f.Rope
	}
	if s == nil {
		return r, nil
	}
	if s.Theta != nil {
		r.Theta = *s.Theta
	}
	name := cmp.Or(s.Type, s.OldType)
	if name == "" && s.Factor != 0 {
		return r, fmt.Errorf("config.json: rope_scaling has a factor but no rope_type: the file is damaged")
	}
	var err error
	if r.Kind, err = kind(&jsonKeys, name); err != nil || r.Kind == Unscaled {
		return r, err
	}
	r.Factor, r.Low, r.High = s.Factor, s.Low, s.High
	r.Original = cmp.Or(s.Original, f.Original)
	if r.Kind != Yarn {
		return r, nil
	}
	if r.Original == 0 {
		r.Original = f.MaxPos
	}
	if r.Factor == 0 && r.Original > 0 {
		r.Factor = float64(f.MaxPos) / float64(r.Original)
	}
	r.yarn(s)
	return r, nil
}

// yarn fills in what YaRN has beyond a factor (transformers,
// modeling_rope_utils.py).
func (r *Rope) yarn(s *ropeFile) {
	r.Fast, r.Slow = cmp.Or(s.Fast, 32), cmp.Or(s.Slow, 1)
	r.Exact = s.Truncate != nil && !*s.Truncate
	switch {
	case s.Attention != nil:
		r.Scale = *s.Attention
	case s.Mscale != 0 && s.MscaleAll != 0:
		r.Scale = yarnScale(r.Factor, s.Mscale) / yarnScale(r.Factor, s.MscaleAll)
	default:
		r.Scale = yarnScale(r.Factor, 1)
	}
}
