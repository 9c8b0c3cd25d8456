package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/tui/frame"
)

// modelsInfoCmd describes one model.
type modelsInfoCmd struct {
	Model         string `arg:"" help:"A GGUF file, a folder with safetensors, or the name of a model."`
	WeightsFormat string `placeholder:"FORMAT" help:"What it takes with weights held as f32, f16, bf16, q8 or q4 (default: as they are stored)."`
	KVFormat      string `name:"kv-format" placeholder:"FORMAT" help:"Likewise with keys and values held as f16 or f32."`
	JSON          bool   `help:"Print one JSON object."`
}

// modelInfo is the stable form of models info --json.
type modelInfo struct {
	Name       string       `json:"name"`
	Path       string       `json:"path"`
	Kind       string       `json:"kind"`
	Bytes      int64        `json:"bytes"`
	Family     string       `json:"family"`
	Params     int64        `json:"parameters"`
	Layers     int          `json:"layers"`
	Hidden     int          `json:"hidden"`
	Heads      int          `json:"heads"`
	KVHeads    int          `json:"kv_heads"`
	HeadDim    int          `json:"head_dim"`
	FFN        int          `json:"feed_forward"`
	Tied       bool         `json:"tied_embedding"`
	Context    int          `json:"context"`
	RopeTheta  float64      `json:"rope_base"`
	RopeKind   string       `json:"rope_scaling"` // "" for none, "tensor" by one of the file
	RopeFactor float64      `json:"rope_factor"`
	Types      []storedType `json:"stored"`
	Weights    int64        `json:"weights_bytes"`   // in memory
	Formats    []heldFormat `json:"weights"`         // formats of the matrices there
	KVBytes    int64        `json:"kv_bytes_per_1k"` // of 1,000 tokens
	KV         string       `json:"kv"`              // format
	Rows       int          `json:"vocabulary_rows"` // of the logits
	Tokens     int          `json:"vocabulary"`      // tokens
	Hash       string       `json:"vocabulary_hash"` // models with the same one can write one text
	Template   bool         `json:"chat_template"`   // of its own
	EOS        []int32      `json:"eos"`
	Sampling   samplingInfo `json:"sampling"`
	Notes      []string     `json:"notes"`

	ends []string // texts of EOS
}

// storedType is how much of a model is stored in one type.
type storedType struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// heldFormat is how much of the matrices is held in one format.
type heldFormat struct {
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
}

// samplingInfo is what the checkpoint recommends; all zero is greedy.
type samplingInfo struct {
	Sample       bool    `json:"sample"`
	Temperature  float64 `json:"temperature"`
	TopK         int     `json:"top_k"`
	TopP         float64 `json:"top_p"`
	MaxNewTokens int     `json:"max_new_tokens"`
}

func (m *modelsInfoCmd) Run() error {
	c, name, err := openModel(m.Model)
	if err != nil {
		return usage(err)
	}
	defer c.Close()
	info, err := describe(c, name, m.WeightsFormat, m.KVFormat)
	if err != nil {
		return usage(err)
	}
	if m.JSON {
		return printJSON(os.Stdout, info)
	}
	return info.print(os.Stdout)
}

// openModel opens the checkpoint of a model that a person names.
func openModel(text string) (*checkpoint.Checkpoint, string, error) {
	o, err := findModel(text, "")
	if err != nil {
		return nil, "", err
	}
	c, err := o.open()
	return c, o.name, err
}

// open opens the checkpoint, embedded or on disk.
func (o *origin) open() (*checkpoint.Checkpoint, error) {
	if o.embedded() {
		return tiny.Open(o.name)
	}
	c, err := checkpoint.Open(o.path)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, offer)
	}
	return c, nil
}

func describe(c *checkpoint.Checkpoint, name, weights, kv string) (*modelInfo, error) {
	d, err := c.Describe()
	if err != nil {
		return nil, err
	}
	need, err := c.Need(weights, kv)
	if err != nil {
		return nil, err
	}
	g := &d.Generation
	cfg := &d.Config
	out := &modelInfo{
		Name: name, Path: d.Path, Kind: string(d.Kind), Bytes: d.Bytes, Family: cfg.Family, Params: d.Params,
		Layers: cfg.Layers, Hidden: cfg.Hidden, Heads: cfg.Heads, KVHeads: cfg.KVHeads, HeadDim: cfg.HeadDim, FFN: cfg.FFN,
		Tied: cfg.Tied, Context: cfg.MaxPos, RopeTheta: cfg.Rope.Theta, RopeKind: string(cfg.Rope.Kind), RopeFactor: cfg.Rope.Factor,
		Weights: need.Weights, KVBytes: 1000 * need.KVToken, KV: need.KV.String(),
		Rows: cfg.Vocab, Tokens: d.Tokens, Hash: d.Vocabulary, Template: d.Template, EOS: d.EOS,
		Sampling: samplingInfo{g.DoSample, float64(g.Temperature), g.TopK, float64(g.TopP), g.MaxNewTokens},
		Notes:    append([]string{}, need.Notes...),
	}
	if d.RopeFactors {
		out.RopeKind = ropeTensor
	}
	for _, t := range d.Types {
		out.Types = append(out.Types, storedType{t.Type.String(), t.Tensors, t.Bytes})
	}
	for _, f := range need.Formats {
		out.Formats = append(out.Formats, heldFormat{f.Format.String(), f.Bytes})
	}
	tok, err := c.Tokenizer()
	if err != nil {
		return nil, err
	}
	for _, id := range d.EOS {
		out.ends = append(out.ends, fmt.Sprintf("%d %q", id, tok.Bytes(id)))
	}
	return out, nil
}

func (o *modelInfo) print(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("model", "%s", o.Name)
	where := "embedded"
	if o.Path != "" {
		where = fmt.Sprintf("%s (%s, %s)", frame.Clean(o.Path, false), o.Kind, bytesText(o.Bytes))
	}
	row("where", "%s", where)
	row("architecture", "%s: %d layers of width %d, %d heads of %d over %d of keys and values, feed-forward %d",
		o.Family, o.Layers, o.Hidden, o.Heads, o.HeadDim, o.KVHeads, o.FFN)
	head := "a head of its own"
	if o.Tied {
		head = "the head is the embedding"
	}
	row("parameters", "%s, %s", count(o.Params), head)
	row("context", "%s", o.context())
	var stored []string
	for _, t := range o.Types {
		stored = append(stored, fmt.Sprintf("%d %s (%s)", t.Tensors, t.Type, bytesText(t.Bytes)))
	}
	row("stored", "tensors: %s", strings.Join(stored, ", "))
	var held []string
	for _, f := range o.Formats {
		held = append(held, fmt.Sprintf("%s (%s)", f.Format, bytesText(f.Bytes)))
	}
	row("in memory", "weights %s as %s; keys and values as %s, %s per 1,000 tokens",
		bytesText(o.Weights), strings.Join(held, ", "), o.KV, bytesText(o.KVBytes))
	row("vocabulary", "%d tokens in %d rows, hash %s", o.Tokens, o.Rows, o.Hash)
	template := "no template, so prompts are plain text"
	if o.Template {
		template = "by its own template"
	}
	row("chat", "%s; an answer ends with %s", template, strings.Join(o.ends, ", "))
	row("sampling", "%s", o.Sampling.text())
	for _, n := range o.Notes {
		row("note", "%s", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ropeTensor is the scaling of a GGUF file that brings the divisors of its rotary
// frequencies along, as those of Llama 3 do.
const ropeTensor = "tensor"

func (o *modelInfo) context() string {
	text := fmt.Sprintf("%d positions, rope base %s", o.Context, strconv.FormatFloat(o.RopeTheta, 'f', -1, 64))
	switch o.RopeKind {
	case string(family.Unscaled):
	case ropeTensor:
		text += ", scaled by a tensor of the file"
	default:
		text += fmt.Sprintf(", %s scaling by %g", o.RopeKind, o.RopeFactor)
	}
	return text
}

func (s *samplingInfo) text() string {
	if !s.Sample {
		return "greedy"
	}
	text := fmt.Sprintf("temperature %.4g", s.Temperature)
	if s.TopK > 0 {
		text += fmt.Sprintf(", top-k %d", s.TopK)
	}
	if s.TopP > 0 && s.TopP < 1 {
		text += fmt.Sprintf(", top-p %.4g", s.TopP)
	}
	return text
}
