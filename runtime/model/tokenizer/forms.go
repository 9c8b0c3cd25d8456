package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// useKnown ends the refusals of what a file asks for.
const useKnown = "use a tokenizer of the Qwen2, Qwen3 or Llama 3 family"

// preTokenizer, normalizer and postProcessor are the forms of tokenizer.json.
type preTokenizer struct {
	Type    string `json:"type"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Behavior       string         `json:"behavior"`
	Invert         bool           `json:"invert"`
	AddPrefixSpace bool           `json:"add_prefix_space"`
	UseRegex       *bool          `json:"use_regex"`
	Parts          []preTokenizer `json:"pretokenizers"`
}

type normalizer struct {
	Type  string       `json:"type"`
	Parts []normalizer `json:"normalizers"`
}

type postProcessor struct {
	Type   string `json:"type"`
	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
	Parts []postProcessor `json:"processors"`
}

// nfc tells whether text is normalised to NFC.
func (n *normalizer) nfc() (bool, error) {
	switch {
	case n == nil:
		return false, nil
	case n.Type == "NFC":
		return true, nil
	case n.Type != "Sequence":
		return false, fmt.Errorf("the normalizer is %q, only NFC is supported", n.Type)
	}
	found := false
	for i := range n.Parts {
		nfc, err := n.Parts[i].nfc()
		if err != nil {
			return false, err
		}
		found = found || nfc
	}
	return found, nil
}

// first is the special token that a template processor puts before a text.
func (p *postProcessor) first() (string, error) {
	switch {
	case p == nil || p.Type == "ByteLevel":
		return "", nil
	case p.Type == "Sequence":
		found := ""
		for i := range p.Parts {
			one, err := p.Parts[i].first()
			if err != nil {
				return "", err
			}
			if one != "" {
				found = one
			}
		}
		return found, nil
	case p.Type != "TemplateProcessing":
		return "", fmt.Errorf("the post_processor is %q, only ByteLevel and TemplateProcessing are supported", p.Type)
	}
	found := ""
	for i, e := range p.Single {
		if e.Special == nil {
			continue
		}
		if i > 0 {
			return "", fmt.Errorf("post_processor adds %.80q after the first place: only a token at the beginning is supported", e.Special.ID)
		}
		found = e.Special.ID
	}
	return found, nil
}

// rule finds the split rule.
func (p *preTokenizer) rule() (*rule, error) {
	if p == nil {
		return nil, errors.New("pre_tokenizer is missing: " + useKnown)
	}
	if p.Type != "Sequence" || len(p.Parts) != 2 || p.Parts[0].Type != "Split" || p.Parts[1].Type != "ByteLevel" {
		return nil, errors.New("pre_tokenizer is not Split followed by ByteLevel: " + useKnown)
	}
	split, level := p.Parts[0], p.Parts[1]
	if split.Behavior != "Isolated" || split.Invert {
		return nil, fmt.Errorf("the pre-tokenizer Split with behavior %q, invert %v is not supported: %s", split.Behavior, split.Invert, useKnown)
	}
	if level.AddPrefixSpace || level.UseRegex == nil || *level.UseRegex {
		return nil, errors.New("ByteLevel with add_prefix_space or use_regex is not supported: " + useKnown)
	}
	at := slices.IndexFunc(rules, func(r rule) bool { return r.regex == split.Pattern.Regex })
	if at < 0 {
		return nil, fmt.Errorf("the split pattern %.200q is not one of Qwen2, Qwen3 or Llama 3: %s", split.Pattern.Regex, useKnown)
	}
	return &rules[at], nil
}

// tokenName is a token's text, or an object with the text under content.
type tokenName string

func (n *tokenName) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if s != nil {
			*n = tokenName(*s)
		}
		return nil
	}
	var o struct {
		Content string `json:"content"`
	}
	err := json.Unmarshal(b, &o)
	*n = tokenName(o.Content)
	return err
}

// templates is a template, or a list of named ones of which "default" counts.
type templates string

func (t *templates) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if s != nil {
			*t = templates(*s)
		}
		return nil
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for _, e := range list {
		if e.Name == "default" {
			*t = templates(e.Template)
		}
	}
	return nil
}
