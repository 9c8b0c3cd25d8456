package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// file is what is read of tokenizer.json; vocabulary and merges stay as they
// stand in the file.
type file struct {
	added  []addedToken
	nfc    bool
	rule   *rule
	first  string // the special token that the post-processor puts first
	vocab  []byte
	merges []byte
	whole  bool
}

// config is what is read of tokenizer_config.json.
type config struct {
	Template templates `json:"chat_template"`
	AddBOS   *bool     `json:"add_bos_token"`
	BOS      tokenName `json:"bos_token"`
	EOS      tokenName `json:"eos_token"`
}

// Load reads tokenizer.json and tokenizer_config.json of a Qwen2, Qwen3 or
// Llama 3 checkpoint. What the files ask for beyond byte-level BPE with the
// split rules of those families is refused by name. A chat template that
// cannot be read is an error of EncodeChat, not of Load.
func Load(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	var f file
	if err := f.read(tokenizerJSON); err != nil {
		return nil, err
	}
	var cfg config
	if err := json.Unmarshal(configJSON, &cfg); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json is damaged: %w", err)
	}
	t := newTokenizer(f.rule, f.nfc)
	if err := f.build(t); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	var err error
	if t.bos, err = t.mark("bos_token", string(cfg.BOS)); err == nil {
		t.eos, err = t.mark("eos_token", string(cfg.EOS))
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	if f.first != "" {
		if t.bos, err = t.mark("the first token of post_processor", f.first); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %w", err)
		}
	}
	t.addBOS = f.first != "" || t.rule.bos && t.bos >= 0
	if cfg.AddBOS != nil {
		t.addBOS = *cfg.AddBOS
	}
	if t.addBOS && t.bos < 0 {
		return nil, errors.New("tokenizer_config.json: add_bos_token is set, but there is no bos_token")
	}
	t.finish(string(cfg.Template))
	return t, nil
}

// read takes the file apart.
func (f *file) read(raw []byte) error {
	s := scanner{b: raw}
	model := false
	small := map[string][]byte{}
	err := s.object(func(key string) (err error) {
		switch key {
		case "model":
			model = true
			err = f.readModel(&s, small)
		default:
			small[key], err = s.value()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return fmt.Errorf("tokenizer.json is damaged: %w", err)
	}
	if !model {
		return errors.New("tokenizer.json: model is missing")
	}
	if err := f.check(small); err != nil {
		return fmt.Errorf("tokenizer.json: %w", err)
	}
	return nil
}

func (f *file) readModel(s *scanner, small map[string][]byte) error {
	return s.object(func(key string) (err error) {
		v, err := s.value()
		switch key {
		case "vocab":
			f.vocab = v
		case "merges":
			f.merges = v
		default:
			small["model."+key] = v
		}
		return err
	})
}

// parse reads one of the small parts; one that is missing or null leaves out
// as it is.
func parse(small map[string][]byte, key string, out any) error {
	raw, ok := small[key]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s is damaged: %w", key, err)
	}
	return nil
}

// check refuses what this package does not implement.
func (f *file) check(small map[string][]byte) error {
	var m struct {
		kind, prefix, suffix string
		bytes                bool
		norm                 *normalizer
		pre                  *preTokenizer
		post                 *postProcessor
		added                []struct {
			ID      int32  `json:"id"`
			Content string `json:"content"`
			Special bool   `json:"special"`
			Word    bool   `json:"single_word"`
			Left    bool   `json:"lstrip"`
			Right   bool   `json:"rstrip"`
		}
	}
	if err := errors.Join(
		parse(small, "model.type", &m.kind),
		parse(small, "model.continuing_subword_prefix", &m.prefix),
		parse(small, "model.end_of_word_suffix", &m.suffix),
		parse(small, "model.byte_fallback", &m.bytes),
		parse(small, "model.ignore_merges", &f.whole),
		parse(small, "normalizer", &m.norm),
		parse(small, "pre_tokenizer", &m.pre),
		parse(small, "post_processor", &m.post),
		parse(small, "added_tokens", &m.added),
	); err != nil {
		return err
	}
	switch {
	case m.kind != "BPE":
		return fmt.Errorf("the model type is %q, only BPE is supported", m.kind)
	case m.bytes, m.prefix != "", m.suffix != "":
		return errors.New("byte_fallback and subword prefixes or suffixes are not supported: " + useKnown)
	}
	for _, a := range m.added {
		if a.Word || a.Left || a.Right {
			return fmt.Errorf("added token %.80q has single_word, lstrip or rstrip set, which is not supported: %s", a.Content, useKnown)
		}
		f.added = append(f.added, addedToken{a.ID, a.Content, a.Special})
	}
	var err error
	if f.nfc, err = m.norm.nfc(); err != nil {
		return err
	}
	if f.first, err = m.post.first(); err != nil {
		return err
	}
	f.rule, err = m.pre.rule()
	return err
}

// build fills the tables of t.
func (f *file) build(t *Tokenizer) error {
	v := vocabulary{added: f.added, data: make([]byte, 0, len(f.vocab)/2)}
	added := make(map[string]int32, len(f.added))
	for _, a := range f.added {
		added[a.text] = a.id
	}
	s := scanner{b: f.vocab}
	var buf []byte
	err := s.list('{', '}', func() (err error) {
		if buf, err = s.text(buf[:0]); err != nil {
			return err
		}
		if !s.take(':') {
			return s.fail("a colon")
		}
		e := entry{from: len(v.data)}
		if e.id, err = s.integer(); err != nil {
			return err
		}
		var ok bool
		if v.data, ok = appendByteLevel(v.data, buf); !ok {
			// An added token may stand in the vocabulary in plain form.
			if id, ok := added[string(buf)]; ok && id == e.id {
				v.data = v.data[:e.from]
				return nil
			}
			return fmt.Errorf("token %.80q is not in byte-level form", buf)
		}
		e.to = len(v.data)
		v.entries = append(v.entries, e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	x, err := t.fill(&v)
	if err != nil {
		return err
	}
	if f.whole {
		t.whole = &x
	}
	return f.addMerges(t, &x)
}

// addMerges reads the merges, each ["a", "b"] or, in older files, "a b".
func (f *file) addMerges(t *Tokenizer, x *index) error {
	if f.merges == nil {
		return nil
	}
	a := mergeAdder{t: t, x: x}
	s := scanner{b: f.merges}
	var text, both []byte
	return s.array(func() (err error) {
		if s.peek() == '"' {
			if text, err = s.text(text[:0]); err != nil {
				return err
			}
			both, err = a.addPair(text, both)
			return err
		}
		parts, cut := 0, 0
		both = both[:0]
		err = s.array(func() (err error) {
			if parts++; parts > 2 {
				return fmt.Errorf("merge %d is not a pair of strings", a.rank)
			}
			cut = len(both)
			if text, err = s.text(text[:0]); err != nil {
				return err
			}
			var ok bool
			if both, ok = appendByteLevel(both, text); !ok {
				return fmt.Errorf("merge %d: %.80q is not in byte-level form", a.rank, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if parts != 2 {
			return fmt.Errorf("merge %d is not a pair of strings", a.rank)
		}
		return a.add(both, cut)
	})
}
