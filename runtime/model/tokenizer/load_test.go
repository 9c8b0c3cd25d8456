package tokenizer

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestLoadRefuses(t *testing.T) {
	raw, cfg := files(t)
	edit := func(old, new string) []byte {
		out := bytes.Replace(raw, []byte(old), []byte(new), 1)
		if bytes.Equal(out, raw) {
			t.Fatalf("%q is not in the file", old)
		}
		return out
	}
	for name, c := range map[string]struct {
		tok, cfg []byte
		want     string
	}{
		"not JSON":       {[]byte("{"), cfg, "tokenizer.json is damaged"},
		"config":         {raw, []byte("["), "tokenizer_config.json is damaged"},
		"bos":            {raw, []byte(`{"add_bos_token": true}`), "add_bos_token is set, but there is no bos_token"},
		"unknown bos":    {raw, []byte(`{"bos_token": "<s>"}`), `bos_token is "<s>", which is no added token`},
		"unknown eos":    {raw, []byte(`{"eos_token": {"content": "<s>"}}`), `eos_token is "<s>"`},
		"no model":       {[]byte(`{"version": "1.0"}`), cfg, "model is missing"},
		"trailing":       {append(slices.Clone(raw), '}'), cfg, "something follows"},
		"control":        {edit(`"ġ": 221`, "\"ġ\n\": 221"), cfg, "no control character"},
		"escape":         {edit(`"ġ": 221`, `"\q": 221`), cfg, "an escape of JSON"},
		"fraction":       {edit(`"ġ": 221`, `"ġ": 221.5`), cfg, "a comma or '}'"},
		"long number":    {edit(`"ġ": 221`, `"ġ": 99999999999999999999`), cfg, "a whole number of 32 bits"},
		"text as id":     {edit(`"ġ": 221`, `"ġ": "221"`), cfg, "a whole number"},
		"empty token":    {edit(`"ġ": 221`, `"": 221`), cfg, "token 221 is empty"},
		"merge of three": {edit("\".\",\n    \"Ċ\"", "\".\", \"Ċ\", \"Ċ\""), cfg, "merge 0 is not a pair"},
		"merge level":    {edit("\".\",\n    \"Ċ\"", "\".\",\n    \"☃\""), cfg, "not in byte-level form"},
		"strip":          {edit(`"lstrip": false`, `"lstrip": true`), cfg, "lstrip"},
		"behavior":       {edit(`"Isolated"`, `"Removed"`), cfg, `behavior "Removed"`},
		"processor":      {edit("\"post_processor\": {", "\"post_processor\": {\"type\": \"BertProcessing\"}, \"other\": {"), cfg, `"BertProcessing"`},
		"end token": {
			edit("\"post_processor\": {", `"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|im_end|>"}}]}, "other": {`), cfg,
			"adds \"<|im_end|>\" after the first place",
		},
		"type":           {edit(`"type": "BPE"`, `"type": "Unigram"`), cfg, `"Unigram"`},
		"byte fallback":  {edit(`"byte_fallback": false`, `"byte_fallback": true`), cfg, "byte_fallback"},
		"normalizer":     {edit(`"type": "NFC"`, `"type": "NFKC"`), cfg, `"NFKC"`},
		"pattern":        {edit(`|\\s+"`, `|\\s"`), cfg, "split pattern"},
		"pre-tokenizer":  {edit(`"type": "Split"`, `"type": "Digits"`), cfg, "not Split"},
		"prefix space":   {edit("\"add_prefix_space\": false,\n    \"trim", "\"add_prefix_space\": true,\n    \"trim"), cfg, "ByteLevel"},
		"missing byte":   {edit(`"ġ": 221`, `"ġġ": 221`), cfg, "no token for byte"},
		"same id":        {edit(`"ġ": 221`, `"ġ": 220`), cfg, "id 220 is given to"},
		"negative id":    {edit(`"ġ": 221`, `"ġ": -1`), cfg, "has id -1"},
		"huge id":        {edit(`"ġ": 221`, `"ġ": 2000000000`), cfg, "has id 2000000000"},
		"holes":          {edit(`"ġ": 221`, `"ġ": 4000000`), cfg, "only 423 tokens"},
		"not byte level": {edit(`"ġ": 221`, `"☃": 221`), cfg, "byte-level form"},
		"merge":          {edit("\".\",\n    \"Ċ\"", "\".\",\n    \"nope\""), cfg, "merge 0"},
		"merge shape":    {edit("\".\",\n    \"Ċ\"", "\".\""), cfg, "not a pair"},
		"added clash":    {edit(`"id": 417`, `"id": 416`), cfg, "id 416 is given to"},
		"added twice":    {edit(`\u003c/think\u003e`, `\u003cthink\u003e`), cfg, "appears twice"},
	} {
		if _, err := Load(c.tok, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// The forms that published files take beside the one of the tiny family.
func TestLoadForms(t *testing.T) {
	raw, cfg := files(t)
	edit := func(raw []byte, pairs ...string) []byte {
		for i := 0; i < len(pairs); i += 2 {
			out := bytes.Replace(raw, []byte(pairs[i]), []byte(pairs[i+1]), 1)
			if bytes.Equal(out, raw) {
				t.Fatalf("%q is not in the file", pairs[i])
			}
			raw = out
		}
		return raw
	}
	const post = "\"post_processor\": {"
	first := `"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>"}}, {"Sequence": {"id": "A"}}]}]}, "other": {`
	llama3 := edit(raw, `\\p{N}| ?`, `\\p{N}{1,3}| ?`, "\"normalizer\": {", "\"normalizer\": null, \"other2\": {", `"ignore_merges": false`, `"ignore_merges": true`)
	bos := []byte(`{"bos_token": {"content": "<|endoftext|>"}, "eos_token": "<|im_end|>"}`)
	for name, c := range map[string]struct {
		tok, cfg []byte
		rule     string
		nfc      bool
		whole    bool
		add      bool
	}{
		"as it is":          {raw, cfg, "Qwen2", true, false, false},
		"sequence":          {edit(raw, `"type": "NFC"`, `"type": "Sequence", "normalizers": [{"type": "NFC"}]`), cfg, "Qwen2", true, false, false},
		"empty sequence":    {edit(raw, `"type": "NFC"`, `"type": "Sequence", "normalizers": []`), cfg, "Qwen2", false, false, false},
		"named BOS":         {raw, bos, "Qwen2", true, false, false},
		"BOS by config":     {raw, []byte(`{"bos_token": "<|endoftext|>", "add_bos_token": true}`), "Qwen2", true, false, true},
		"BOS by processor":  {edit(raw, post, first), []byte("{}"), "Qwen2", true, false, true},
		"config wins":       {edit(raw, post, first), []byte(`{"add_bos_token": false}`), "Qwen2", true, false, false},
		"Llama 3":           {llama3, bos, "Llama 3", false, true, true},
		"Llama 3, no BOS":   {llama3, cfg, "Llama 3", false, true, false},
		"Llama 3, told not": {llama3, []byte(`{"bos_token": "<|endoftext|>", "add_bos_token": false}`), "Llama 3", false, true, false},
	} {
		tok, err := Load(c.tok, c.cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tok.rule.name != c.rule || tok.nfc != c.nfc || (tok.whole != nil) != c.whole || tok.addBOS != c.add {
			t.Errorf("%s: rule %s, NFC %v, whole words %v, BOS %v", name, tok.rule.name, tok.nfc, tok.whole != nil, tok.addBOS)
		}
		if c.add {
			want, _ := tok.ID("<|endoftext|>")
			if got := tok.Prompt("a"); len(got) != 2 || got[0] != want {
				t.Errorf("%s: prompt %v", name, got)
			}
		}
	}
}

// Some files declare "!" their padding; it stays a letter like any other.
func TestByteAsAddedToken(t *testing.T) {
	raw, cfg := files(t)
	raw = bytes.Replace(raw, []byte(`"added_tokens": [`), []byte(`"added_tokens": [{"id": 0, "content": "!", "special": true},`), 1)
	tok, err := Load(raw, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode("!"); !slices.Equal(got, []int32{0}) || tok.IsSpecial(0) {
		t.Errorf("got %v, special %v", got, tok.IsSpecial(0))
	}
}

// Cut anywhere, the file is an error and never a panic.
func TestLoadTruncated(t *testing.T) {
	raw, cfg := files(t)
	for n := 0; n < len(raw)-1; n += 7 {
		if _, err := Load(raw[:n], cfg); err == nil || !strings.Contains(err.Error(), "tokenizer.json is damaged") {
			t.Fatalf("%d of %d bytes: %v", n, len(raw), err)
		}
	}
}

// Deep nesting is an error, not the end of the stack.
func TestLoadNested(t *testing.T) {
	for _, key := range []string{"normalizer", "model", "version", "added_tokens"} {
		for _, open := range []string{"[", `{"a":`, `{"normalizers":[`} {
			raw := []byte(`{"` + key + `":` + strings.Repeat(open, 1<<20))
			if _, err := Load(raw, []byte("{}")); err == nil {
				t.Errorf("%s: no error", key)
			}
		}
	}
}

// Older files write a merge as one string.
func TestMergesAsStrings(t *testing.T) {
	raw, cfg := files(t)
	re := regexp.MustCompile(`\[\s*"([^"]+)",\s*"([^"]+)"\s*\]`)
	other, err := Load(re.ReplaceAll(raw, []byte(`"$1 $2"`)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	tok, text := load(t), "Ana doubles the pile. Ana loses 82."
	if got, want := other.Encode(text), tok.Encode(text); !slices.Equal(got, want) || other.merges.n != tok.merges.n {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzLoad(f *testing.F) {
	raw, cfg := files(f)
	f.Add(raw, cfg)
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`), []byte("{}"))
	f.Fuzz(func(t *testing.T, tok, cfg []byte) {
		l, err := Load(tok, cfg)
		if err != nil {
			return
		}
		const text = "It's 12 o'clock\n<think>"
		if got := l.Decode(l.Encode(text)); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
