package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// A GGUF of the same vocabulary is the same tokenizer, unused rows or not.
func TestGGUFEqual(t *testing.T) {
	tok := load(t)
	other, err := FromGGUF(specOf(t, tok))
	if err != nil {
		t.Fatal(err)
	}
	if id, desc := tok.Diff(other); id != -1 || tok.Hash() != other.Hash() || tok.Size() != other.Size() {
		t.Errorf("they differ: %s", desc)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom(alphabet))).Draw(t, "text")
		if got, want := other.Encode(text), tok.Encode(text); !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
	})
	msgs := []Message{{"user", "Ana has 3 coins."}}
	a, err1 := tok.EncodeChat(msgs)
	b, err2 := other.EncodeChat(msgs)
	if err1 != nil || err2 != nil || !slices.Equal(a, b) {
		t.Errorf("conversations: %v %v, %v %v", a, err1, b, err2)
	}
}

// The names under tokenizer.ggml.pre choose the rule, and what follows from it.
func TestGGUFPre(t *testing.T) {
	for pre, want := range map[string]struct {
		words []string
		nfc   bool
	}{
		"qwen2":            {[]string{"a", " ", "1", "2", "3", "4"}, true},
		"deepseek-r1-qwen": {[]string{"a", " ", "1", "2", "3", "4"}, false},
		"llama-bpe":        {[]string{"a", " ", "123", "4"}, false},
		"llama3":           {[]string{"a", " ", "123", "4"}, false},
		"llama-v3":         {[]string{"a", " ", "123", "4"}, false},
	} {
		s := specOf(t, load(t))
		s.Pre = pre
		tok, err := FromGGUF(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := words(tok.rule, "a 1234"); !slices.Equal(got, want.words) {
			t.Errorf("%s: words %q", pre, got)
		}
		if got := tok.Decode(tok.Encode("e\u0301")) == "\u00e9"; got != want.nfc {
			t.Errorf("%s: NFC is %v", pre, got)
		}
		// The file names no BOS, so none is added whatever the rule.
		if tok.addBOS {
			t.Errorf("%s: BOS is added, but there is none", pre)
		}
	}
}

// Llama 3 takes a word that is a token as it is, though the merges end in
// other tokens (ignore_merges of tokenizer.json).
func TestWholeWords(t *testing.T) {
	edit := func(s *Spec) {
		// No merge leads to it.
		s.Tokens, s.Types = append(s.Tokens, "xyz", "Ġxyz"), append(s.Types, typeNormal, typeNormal)
	}
	whole := llama(t, edit)
	id := int32(whole.Size()) - 2
	if got := whole.Encode("xyz xyz"); !slices.Equal(got, []int32{id, id + 1}) {
		t.Errorf("got %v, want %d and %d", got, id, id+1)
	}
	s := specOf(t, load(t))
	edit(&s)
	merged, err := FromGGUF(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := merged.Encode("xyz"); len(got) != 3 {
		t.Errorf("without the rule: %v", got)
	}
}

func TestGGUFRefuses(t *testing.T) {
	yes := true
	at := func(s *Spec, text string) int { return slices.Index(s.Tokens, text) }
	for name, c := range map[string]struct {
		edit func(s *Spec)
		want string
	}{
		"model":        {func(s *Spec) { s.Model = "llama" }, `tokenizer.ggml.model is "llama"`},
		"pre":          {func(s *Spec) { s.Pre = "gpt-4o" }, `tokenizer.ggml.pre is "gpt-4o", known are qwen2, deepseek-r1-qwen, llama-bpe, llama3, llama-v3`},
		"no pre":       {func(s *Spec) { s.Pre = "" }, `tokenizer.ggml.pre is ""`},
		"types":        {func(s *Spec) { s.Types = s.Types[1:] }, "token_type has 689 entries, tokens has 690"},
		"type":         {func(s *Spec) { s.Types[300] = 6 }, "has type 6"},
		"no bytes":     {func(s *Spec) { s.Types[65] = typeUnused }, "no token for byte"},
		"byte level":   {func(s *Spec) { s.Tokens[300] = "☃" }, "token 300, \"☃\", is not in byte-level form"},
		"empty":        {func(s *Spec) { s.Tokens[300] = "" }, "token 300 is empty"},
		"empty mark":   {func(s *Spec) { s.Tokens[at(s, "<think>")] = "" }, "of 0 bytes"},
		"long mark":    {func(s *Spec) { s.Tokens[at(s, "<think>")] = strings.Repeat("<", 257) }, "of 257 bytes"},
		"twice":        {func(s *Spec) { s.Tokens[300] = s.Tokens[301] }, "has ids 300 and 301"},
		"mark twice":   {func(s *Spec) { s.Tokens[at(s, "<think>")] = "</think>" }, "appears twice"},
		"merge":        {func(s *Spec) { s.Merges[7] = "nope nope" }, "tokenizer.ggml.merges: merge 7"},
		"merge shape":  {func(s *Spec) { s.Merges[7] = "nope" }, `merge 7: "nope" has no two parts`},
		"merge level":  {func(s *Spec) { s.Merges[7] = "☃ a" }, "not in byte-level form"},
		"bos":          {func(s *Spec) { s.BOS = 1 << 30 }, "tokenizer.ggml.bos_token_id is 1073741824, which is no token"},
		"eos unused":   {func(s *Spec) { s.EOS = int32(len(s.Tokens)) - 1 }, "eos_token_id"},
		"bos missing":  {func(s *Spec) { s.AddBOS = &yes }, "add_bos_token is set, but bos_token_id is missing"},
		"many holes":   {func(s *Spec) { manyHoles(s) }, "the largest id is"},
		"no tokens":    {func(s *Spec) { s.Tokens, s.Types, s.Merges = nil, nil, nil; s.BOS, s.EOS = -1, -1 }, "no token for byte"},
		"special word": {func(s *Spec) { s.Types[300] = typeControl }, "names a token that is not in the vocabulary"},
	} {
		s := specOf(t, load(t))
		c.edit(&s)
		if _, err := FromGGUF(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// manyHoles puts a token behind more unused rows than any checkpoint has.
func manyHoles(s *Spec) {
	for range maxHoles + 1000 {
		s.Tokens, s.Types = append(s.Tokens, ""), append(s.Types, typeUnused)
	}
	s.Tokens, s.Types = append(s.Tokens, "<|far|>"), append(s.Types, typeControl)
}

// What the spec holds may lie in a mapping that goes away.
func TestGGUFCopies(t *testing.T) {
	s := specOf(t, load(t))
	text := strings.Join(s.Tokens, "")
	buf := []byte(text)
	want, err := FromGGUF(s)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for i, tok := range s.Tokens {
		s.Tokens[i] = unsafe.String(unsafe.SliceData(buf[at:]), len(tok))
		at += len(tok)
	}
	got, err := FromGGUF(s)
	if err != nil {
		t.Fatal(err)
	}
	clear(buf)
	if id, desc := got.Diff(want); id != -1 {
		t.Error(desc)
	}
	if _, ok := got.ID("<|im_end|>"); !ok {
		t.Error("an added token is gone")
	}
}

func FuzzGGUF(f *testing.F) {
	base := specOf(f, load(f))
	f.Add(int32(300), "Ġx", int32(1), 3, "a b", int32(5), "{{ bos_token }}")
	f.Add(int32(419), "<|x|>", int32(3), 0, "", int32(-1), "{% if %}")
	f.Fuzz(func(t *testing.T, id int32, text string, typ int32, merge int, pair string, bos int32, template string) {
		s := base
		s.Tokens, s.Types, s.Merges = slices.Clone(s.Tokens), slices.Clone(s.Types), slices.Clone(s.Merges)
		s.Tokens[uint32(id)%uint32(len(s.Tokens))] = text
		s.Types[uint32(id)%uint32(len(s.Types))] = typ
		s.Merges[uint(merge)%uint(len(s.Merges))] = pair
		s.BOS, s.Template = bos, template
		tok, err := FromGGUF(s)
		if err != nil {
			return
		}
		const plain = "It's 12 o'clock\n<think>"
		if got := tok.Decode(tok.Encode(plain)); got != plain {
			t.Fatalf("%q became %q", plain, got)
		}
		_, _ = tok.EncodeChat([]Message{{"user", text}})
	})
}
