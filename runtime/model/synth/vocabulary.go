package synth

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// Kinds of tokens in GGUF (enum llama_token_type).
const (
	tokenNormal  = 1
	tokenControl = 3
	tokenUser    = 4 // added, but part of the text
	tokenUnused  = 5
)

// vocabulary is a byte-level BPE tokenizer in the terms of GGUF.
type vocabulary struct {
	tokens   []string
	types    []int32
	merges   []string // "left right"
	template string
	eos, pad int32 // -1 for none
}

// readVocabulary reads tokenizer.json and tokenizer_config.json. Package
// tokenizer is what checks them; here only what is copied is looked at.
func readVocabulary(fsys fs.FS) (*vocabulary, error) {
	var f struct {
		Added []struct {
			ID      int32  `json:"id"`
			Content string `json:"content"`
			Special bool   `json:"special"`
		} `json:"added_tokens"`
		Model struct {
			Type   string            `json:"type"`
			Vocab  map[string]int32  `json:"vocab"`
			Merges []json.RawMessage `json:"merges"`
		} `json:"model"`
	}
	if err := readJSON(fsys, "tokenizer.json", &f); err != nil {
		return nil, err
	}
	var c struct {
		Template string          `json:"chat_template"`
		EOS      json.RawMessage `json:"eos_token"`
		Pad      json.RawMessage `json:"pad_token"`
	}
	if err := readJSON(fsys, "tokenizer_config.json", &c); err != nil {
		return nil, err
	}
	if f.Model.Type != "BPE" {
		return nil, fmt.Errorf("tokenizer.json: the model type is %q, only BPE is supported", f.Model.Type)
	}
	v := &vocabulary{template: c.Template, eos: -1, pad: -1}
	top := int32(-1)
	for _, id := range f.Model.Vocab {
		top = max(top, id)
	}
	for _, a := range f.Added {
		top = max(top, a.ID)
	}
	if n := len(f.Model.Vocab) + len(f.Added); top < 0 || int(top) >= n+1<<12 {
		return nil, fmt.Errorf("tokenizer.json: the largest id is %d, %d tokens are given", top, n)
	}
	v.tokens, v.types = make([]string, top+1), make([]int32, top+1)
	for s, id := range f.Model.Vocab {
		if id < 0 {
			return nil, fmt.Errorf("tokenizer.json: token %.80q has id %d", s, id)
		}
		v.tokens[id], v.types[id] = s, tokenNormal
	}
	byText := map[string]int32{}
	for _, a := range f.Added {
		if a.ID < 0 {
			return nil, fmt.Errorf("tokenizer.json: token %.80q has id %d", a.Content, a.ID)
		}
		v.tokens[a.ID], v.types[a.ID] = a.Content, tokenUser
		if a.Special {
			v.types[a.ID] = tokenControl
		}
		byText[a.Content] = a.ID
	}
	v.fill(0)
	for _, m := range f.Model.Merges {
		pair, err := readMerge(m)
		if err != nil {
			return nil, err
		}
		v.merges = append(v.merges, pair)
	}
	for _, t := range []struct {
		text json.RawMessage
		id   *int32
	}{{c.EOS, &v.eos}, {c.Pad, &v.pad}} {
		if id, ok := byText[tokenText(t.text)]; ok {
			*t.id = id
		}
	}
	if v.eos < 0 {
		return nil, fmt.Errorf("tokenizer_config.json: eos_token %s is no added token of tokenizer.json", c.EOS)
	}
	return v, nil
}

// fill names unused rows, of which there are at least n in all, as llama.cpp's
// converter does.
func (v *vocabulary) fill(n int) {
	for len(v.tokens) < n {
		v.tokens, v.types = append(v.tokens, ""), append(v.types, 0)
	}
	for id, t := range v.types {
		if t == 0 {
			v.tokens[id], v.types[id] = fmt.Sprintf("[PAD%d]", id), tokenUnused
		}
	}
}

// readMerge reads a merge in either form: "left right" or ["left", "right"].
func readMerge(b json.RawMessage) (string, error) {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s, nil
	}
	var pair [2]string
	if err := json.Unmarshal(b, &pair); err != nil {
		return "", fmt.Errorf("tokenizer.json: a merge is damaged: %w", err)
	}
	return pair[0] + " " + pair[1], nil
}

// tokenText reads a token's text: a string or an object with it.
func tokenText(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	var o struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(b, &o) // what is neither names no token
	return o.Content
}

func readJSON(fsys fs.FS, name string, v any) error {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", name, err)
	}
	return nil
}
