package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Spec is what a GGUF file says about its tokenizer, under tokenizer.*. The
// strings are copied where they are kept.
type Spec struct {
	Model    string   // ggml.model; byte-level BPE is called gpt2
	Pre      string   // ggml.pre
	Tokens   []string // ggml.tokens, by id
	Types    []int32  // ggml.token_type, by id
	Merges   []string // ggml.merges: "left right" in the order of rank
	BOS, EOS int32    // ggml.bos_token_id, eos_token_id; -1 where missing
	AddBOS   *bool    // ggml.add_bos_token; nil where missing: the rule of Pre decides (case H4)
	Template string   // chat_template
}

// Token types of GGUF (llama.cpp, enum llama_token_type).
const (
	typeNormal  = 1
	typeUnknown = 2
	typeControl = 3
	typeUser    = 4 // added, part of the text
	typeUnused  = 5 // rows of the matrix without a token
)

// FromGGUF makes a tokenizer of a GGUF file's metadata. An unknown Pre is
// refused with the names that are known. GGUF does not say whether text is
// normalised: with Pre "qwen2" it is, since all published Qwen files do so.
func FromGGUF(spec Spec) (*Tokenizer, error) {
	r, err := spec.rule()
	if err != nil {
		return nil, err
	}
	t := newTokenizer(r, slices.Contains(r.ggmlNFC, spec.Pre))
	if err := spec.build(t); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name string
		id   int32
		to   *int32
	}{{"bos_token_id", spec.BOS, &t.bos}, {"eos_token_id", spec.EOS, &t.eos}} {
		if m.id >= 0 && t.Bytes(m.id) == nil {
			return nil, fmt.Errorf("tokenizer.ggml.%s is %d, which is no token", m.name, m.id)
		}
		*m.to = max(m.id, -1)
	}
	t.addBOS = r.bos && t.bos >= 0
	if spec.AddBOS != nil {
		t.addBOS = *spec.AddBOS
	}
	if t.addBOS && t.bos < 0 {
		return nil, errors.New("tokenizer.ggml.add_bos_token is set, but bos_token_id is missing")
	}
	t.finish(spec.Template)
	return t, nil
}

func (spec *Spec) rule() (*rule, error) {
	if spec.Model != "gpt2" {
		return nil, fmt.Errorf("tokenizer.ggml.model is %.80q, only gpt2 (byte-level BPE) is supported: %s", spec.Model, useKnown)
	}
	var known []string
	for i := range rules {
		if slices.Contains(rules[i].ggml, spec.Pre) {
			return &rules[i], nil
		}
		known = append(known, rules[i].ggml...)
	}
	return nil, fmt.Errorf("tokenizer.ggml.pre is %.80q, known are %s", spec.Pre, strings.Join(known, ", "))
}

func (spec *Spec) build(t *Tokenizer) error {
	if len(spec.Tokens) > maxID {
		return fmt.Errorf("tokenizer.ggml.tokens has %d entries, allowed are %d", len(spec.Tokens), maxID)
	}
	if len(spec.Types) != len(spec.Tokens) {
		return fmt.Errorf("tokenizer.ggml.token_type has %d entries, tokens has %d", len(spec.Types), len(spec.Tokens))
	}
	var v vocabulary
	var buf []byte
	for i, s := range spec.Tokens {
		id := int32(i)
		switch typ := spec.Types[i]; typ {
		case typeNormal:
			e := entry{id: id, from: len(v.data)}
			buf = append(buf[:0], s...)
			var ok bool
			if v.data, ok = appendByteLevel(v.data, buf); !ok {
				return fmt.Errorf("token %d, %.80q, is not in byte-level form", id, s)
			}
			e.to = len(v.data)
			v.entries = append(v.entries, e)
		case typeControl, typeUser, typeUnknown:
			v.added = append(v.added, addedToken{id, strings.Clone(s), typ != typeUser})
		case typeUnused:
		default:
			return fmt.Errorf("token %d, %.80q, has type %d, which byte-level BPE does not know", id, s, typ)
		}
	}
	x, err := t.fill(&v)
	if err != nil {
		return err
	}
	if t.rule.whole {
		t.whole = &x
	}
	a := mergeAdder{t: t, x: &x}
	var both []byte
	for _, m := range spec.Merges {
		buf = append(buf[:0], m...)
		if both, err = a.addPair(buf, both); err != nil {
			return fmt.Errorf("tokenizer.ggml.merges: %w", err)
		}
	}
	return nil
}
