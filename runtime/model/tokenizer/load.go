package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Bounds of token ids: the largest vocabularies in use have about 2^18, with
// few ids unused.
const (
	maxID    = 1 << 22
	maxHoles = 1 << 12
)

// file is what is read of tokenizer.json.
type file struct {
	Added []struct {
		ID      int32  `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer *struct {
		Type string `json:"type"`
	} `json:"normalizer"`
	PreTokenizer *preTokenizer `json:"pre_tokenizer"`
	Model        struct {
		Type         string           `json:"type"`
		Vocab        map[string]int32 `json:"vocab"`
		Merges       []mergeEntry     `json:"merges"`
		ByteFallback bool             `json:"byte_fallback"`
		IgnoreMerges bool             `json:"ignore_merges"`
		Prefix       string           `json:"continuing_subword_prefix"`
		Suffix       string           `json:"end_of_word_suffix"`
	} `json:"model"`
}

type preTokenizer struct {
	Type    string `json:"type"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	AddPrefixSpace bool           `json:"add_prefix_space"`
	UseRegex       *bool          `json:"use_regex"`
	Parts          []preTokenizer `json:"pretokenizers"`
}

// mergeEntry is ["a", "b"] or, in older files, "a b".
type mergeEntry [2]string

func (m *mergeEntry) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		left, right, ok := strings.Cut(s, " ")
		if !ok {
			return fmt.Errorf("merge %q has no two parts", s)
		}
		*m = mergeEntry{left, right}
		return nil
	}
	var two []string
	if err := json.Unmarshal(b, &two); err != nil || len(two) != 2 {
		return fmt.Errorf("merge %.80s is not a pair of strings", b)
	}
	*m = mergeEntry{two[0], two[1]}
	return nil
}

// Load reads tokenizer.json and tokenizer_config.json. What the file asks for
// beyond byte-level BPE with Qwen's split rule is refused by name.
func Load(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(tokenizerJSON, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json is damaged: %w", err)
	}
	var cfg struct {
		Template string `json:"chat_template"`
		AddBOS   bool   `json:"add_bos_token"`
	}
	if err := json.Unmarshal(configJSON, &cfg); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json is damaged: %w", err)
	}
	if cfg.AddBOS {
		return nil, errors.New("tokenizer_config.json: add_bos_token is set, which the Qwen3 chat form does not know: use a Qwen3 tokenizer")
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	t := &Tokenizer{
		added:  map[string]int32{},
		merges: make(map[pair]merged, len(f.Model.Merges)),
		cache:  map[string][]int32{},
		nfc:    f.Normalizer != nil,
		chat:   strings.Contains(cfg.Template, imStart) && strings.Contains(cfg.Template, imEnd),
	}
	if err := t.fill(&f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	t.hash = t.computeHash()
	return t, nil
}

// check refuses what this package does not implement.
func (f *file) check() error {
	m := &f.Model
	switch {
	case m.Type != "BPE":
		return fmt.Errorf("the model type is %q, only BPE is supported", m.Type)
	case m.ByteFallback, m.IgnoreMerges, m.Prefix != "", m.Suffix != "":
		return errors.New("byte_fallback, ignore_merges and subword prefixes or suffixes are not supported: use a Qwen3 tokenizer")
	case f.Normalizer != nil && f.Normalizer.Type != "NFC":
		return fmt.Errorf("the normalizer is %q, only NFC is supported", f.Normalizer.Type)
	case f.PreTokenizer == nil:
		return errors.New("pre_tokenizer is missing: use a Qwen3 tokenizer")
	}
	parts := f.PreTokenizer.Parts
	if f.PreTokenizer.Type != "Sequence" || len(parts) != 2 || parts[0].Type != "Split" || parts[1].Type != "ByteLevel" {
		return errors.New("pre_tokenizer is not Split followed by ByteLevel: use a Qwen3 tokenizer")
	}
	if parts[0].Pattern.Regex != splitRegex {
		return fmt.Errorf("the split pattern %.200q is not Qwen3's: use a Qwen3 tokenizer", parts[0].Pattern.Regex)
	}
	if parts[1].AddPrefixSpace || parts[1].UseRegex == nil || *parts[1].UseRegex {
		return errors.New("ByteLevel with add_prefix_space or use_regex is not supported: use a Qwen3 tokenizer")
	}
	return nil
}

// fill builds the tables.
func (t *Tokenizer) fill(f *file) error {
	top := int32(-1)
	for s, id := range f.Model.Vocab {
		if id < 0 || id > maxID {
			return fmt.Errorf("token %.80q has id %d, allowed are 0..%d", s, id, maxID)
		}
		top = max(top, id)
	}
	for _, a := range f.Added {
		if a.ID < 0 || a.ID > maxID || a.Content == "" {
			return fmt.Errorf("added token %.80q has id %d: a text and an id 0..%d are needed", a.Content, a.ID, maxID)
		}
		top = max(top, a.ID)
	}
	if known := len(f.Model.Vocab) + len(f.Added); int(top) >= known+maxHoles {
		return fmt.Errorf("the largest id is %d, but only %d tokens are given", top, known)
	}
	t.bytes = make([][]byte, top+1)
	t.special = make([]bool, top+1)
	for s, id := range f.Model.Vocab {
		b, ok := fromByteLevel(s)
		if !ok {
			return fmt.Errorf("token %.80q is not in byte-level form", s)
		}
		if t.bytes[id] != nil {
			return fmt.Errorf("id %d is given to %q and to %q", id, t.bytes[id], b)
		}
		t.bytes[id] = b
	}
	for _, a := range f.Added {
		// An added token may repeat an entry of the vocabulary, not another one.
		if have := t.bytes[a.ID]; have != nil && string(have) != a.Content {
			return fmt.Errorf("id %d is given to %q and to %q", a.ID, have, a.Content)
		}
		if _, ok := t.added[a.Content]; ok {
			return fmt.Errorf("added token %.80q appears twice", a.Content)
		}
		t.bytes[a.ID] = []byte(a.Content)
		t.special[a.ID] = a.Special
		t.added[a.Content] = a.ID
		if !a.Special {
			t.visible = append(t.visible, a.Content)
		}
	}
	for b := range 256 {
		id, ok := f.Model.Vocab[string(byteRune[b])]
		if !ok {
			return fmt.Errorf("there is no token for byte %#02x, so not every text can be written", b)
		}
		t.byteID[b] = id
	}
	for rank, m := range f.Model.Merges {
		left, ok1 := f.Model.Vocab[m[0]]
		right, ok2 := f.Model.Vocab[m[1]]
		id, ok3 := f.Model.Vocab[m[0]+m[1]]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d (%.40q + %.40q) names a token that is not in the vocabulary", rank, m[0], m[1])
		}
		if _, ok := t.merges[pair{left, right}]; !ok {
			t.merges[pair{left, right}] = merged{rank: int32(rank), id: id}
		}
	}
	return nil
}

// byteRune is the character that stands for a byte in a byte-level vocabulary
// (Radford et al. 2019): printable ones for themselves, the others from U+0100.
var byteRune = func() (t [256]rune) {
	n := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			t[b] = b
			continue
		}
		t[b] = n
		n++
	}
	return t
}()

var runeByte = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range byteRune {
		m[r] = byte(b)
	}
	return m
}()

// fromByteLevel turns a vocabulary entry into the bytes it stands for.
func fromByteLevel(s string) ([]byte, bool) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := runeByte[r]
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, len(out) > 0
}
