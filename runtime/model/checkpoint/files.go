package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/tensor"
	"tokenrouter/runtime/model/tokenizer"
)

// maxSmall is the limit of a JSON file beside the weights; the largest
// tokenizer.json in use has some 30 MB.
const maxSmall = 256 << 20

// readSmall reads a file of a folder that is no weights.
func readSmall(fsys fs.FS, name string) ([]byte, error) {
	b, err := tensor.ReadFile(fsys, name, maxSmall)
	if err == nil && tensor.Pointer(b) {
		err = fmt.Errorf("%s: %s", name, tensor.Fetch)
	}
	return b, err
}

// readGeneration reads generation_config.json, where there is one.
func (c *Checkpoint) readGeneration(fsys fs.FS) (family.IDs, error) {
	const name = "generation_config.json"
	b, err := readSmall(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var g struct {
		EOS          family.IDs `json:"eos_token_id"`
		MaxNewTokens int        `json:"max_new_tokens"`
		DoSample     bool       `json:"do_sample"`
		Temperature  float32    `json:"temperature"`
		TopK         int        `json:"top_k"`
		TopP         float32    `json:"top_p"`
	}
	if err := json.Unmarshal(b, &g); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	c.Generation = Generation{g.MaxNewTokens, g.DoSample, g.Temperature, g.TopK, g.TopP}
	return g.EOS, c.Generation.check(name)
}

// readTokenizer reads the tokenizer of a folder.
func readTokenizer(fsys fs.FS) (*tokenizer.Tokenizer, error) {
	tok, err := readSmall(fsys, "tokenizer.json")
	if err != nil {
		return nil, err
	}
	cfg, err := readSmall(fsys, "tokenizer_config.json")
	if errors.Is(err, fs.ErrNotExist) {
		cfg, err = []byte("{}"), nil
	}
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(tok, cfg)
	if err != nil {
		return nil, err
	}
	// Newer folders hold the template in a file of its own, which then counts.
	const template = "chat_template.jinja"
	b, err := readSmall(fsys, template)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return nil, err
	}
	if err := t.SetTemplate(string(b)); err != nil {
		return nil, fmt.Errorf("%s: %w", template, err)
	}
	return t, nil
}

// sampling reads the recommendation that newer converters write.
func (c *Checkpoint) sampling(f *gguf.File) error {
	const p = "general.sampling."
	if v, ok := f.Float(p + "temp"); ok {
		c.Generation.Temperature, c.Generation.DoSample = float32(v), v > 0
	}
	if v, ok := f.Float(p + "top_p"); ok {
		c.Generation.TopP = float32(v)
	}
	if v, ok := f.Int(p + "top_k"); ok && v != -1 { // -1 is off
		if v != int64(int32(v)) {
			return fmt.Errorf("gguf: %stop_k is %d, which is out of range: convert the model again", p, v)
		}
		c.Generation.TopK = int(v)
	}
	return c.Generation.check("gguf: " + p + "*")
}

// endKeys reads the end tokens that the metadata name.
func endKeys(f *gguf.File) ([]int32, error) {
	var ids []int32
	for _, key := range []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"} {
		id, err := tokenID(f, key)
		if err != nil {
			return nil, err
		}
		if id >= 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// tokenID reads a token of the metadata; -1 where the file says nothing or, as
// some do, the largest number for none.
func tokenID(f *gguf.File, key string) (int32, error) {
	v, ok := f.Int(key)
	if !ok {
		if slices.Contains(f.Keys(), key) {
			return 0, f.Missing(key, "a number")
		}
		return -1, nil
	}
	if v == -1 || v == 1<<32-1 {
		return -1, nil
	}
	if v < 0 || v > 1<<31-1 {
		return 0, fmt.Errorf("gguf: %s is %d, which is no token: convert the model again", key, v)
	}
	return int32(v), nil
}

// ggufTokenizer reads the tokenizer of a GGUF file.
func ggufTokenizer(f *gguf.File) (*tokenizer.Tokenizer, error) {
	const p = "tokenizer.ggml."
	var s tokenizer.Spec
	var ok bool
	if s.Model, ok = f.String(p + "model"); !ok {
		return nil, f.Missing(p+"model", "a string")
	}
	s.Pre, _ = f.String(p + "pre") // old files have none; then the tokenizer decides
	if s.Tokens, ok = f.Strings(p + "tokens"); !ok {
		return nil, f.Missing(p+"tokens", "a list of strings")
	}
	if s.Types, ok = f.Int32s(p + "token_type"); !ok {
		return nil, f.Missing(p+"token_type", "a list of numbers")
	}
	s.Merges, _ = f.Strings(p + "merges") // only byte-level BPE has them; the tokenizer asks
	s.Template, _ = f.String("tokenizer.chat_template")
	var err error
	if s.BOS, err = tokenID(f, p+"bos_token_id"); err != nil {
		return nil, err
	}
	if s.EOS, err = tokenID(f, p+"eos_token_id"); err != nil {
		return nil, err
	}
	if add, ok := f.Bool(p + "add_bos_token"); ok {
		s.AddBOS = &add
	}
	return tokenizer.FromGGUF(s)
}
