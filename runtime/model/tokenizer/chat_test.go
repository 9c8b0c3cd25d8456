package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Templates of the forms in use, written for these tests.
const (
	thinkTemplate = `{%- if messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {{- '<|im_start|>user\n' + m.content + '<|im_end|>\n' }}
    {%- elif m.role == 'assistant' %}
        {%- set content = m.content.split('</think>')[-1].lstrip('\n') if '</think>' in m.content else m.content %}
        {{- '<|im_start|>assistant\n' + ('<think>\n\n</think>\n\n' if loop.last else '') + content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}`
	headerTemplate = `{{- bos_token }}{% for m in messages %}
{{- '<|start|>' + m['role'] + '<|end|>\n\n' + m['content'] | trim + '<|eot|>' }}
{%- endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant<|end|>\n\n' }}{% endif %}`
	// builtTemplate puts marks together from parts, and contents side by side.
	builtTemplate = `{% for m in messages %}{{ '<|' ~ 'start' ~ '|>' ~ m.content ~ m.content }}{% endfor %}<{{ messages[0].content }}>`
)

// llama is a tokenizer of Llama 3's kind over the tiny family's vocabulary.
func llama(t testing.TB, edit func(s *Spec)) *Tokenizer {
	t.Helper()
	s := specOf(t, load(t))
	s.Pre = "llama-bpe"
	s.Template = headerTemplate
	s.BOS = int32(len(s.Tokens))
	for _, text := range []string{"<|bos|>", "<|start|>", "<|end|>", "<|eot|>"} {
		s.Tokens, s.Types = append(s.Tokens, text), append(s.Types, typeControl)
	}
	s.EOS = int32(len(s.Tokens)) - 1
	if edit != nil {
		edit(&s)
	}
	tok, err := FromGGUF(s)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// withTemplate is the tiny family's tokenizer with another template.
func withTemplate(t testing.TB, source string) *Tokenizer {
	t.Helper()
	tok := load(t)
	if err := tok.SetTemplate(source); err != nil {
		t.Fatal(err)
	}
	return tok
}

func count(ids []int32, id int32) (n int) {
	for _, v := range ids {
		if v == id {
			n++
		}
	}
	return n
}

// specials counts the special tokens among ids.
func specials(t *Tokenizer, ids []int32) (n int) {
	for _, id := range ids {
		if t.IsSpecial(id) {
			n++
		}
	}
	return n
}

// Case A14: text that looks like an added token stays text, in every role but
// for the visible marks of an assistant.
func TestNoAddedTokensFromText(t *testing.T) {
	for name, tok := range map[string]*Tokenizer{
		"tiny": load(t), "think": withTemplate(t, thinkTemplate), "llama": llama(t, nil),
		"built": llama(t, func(s *Spec) { s.Template = builtTemplate }),
	} {
		conversation := func(a, b string) []int32 {
			ids, err := tok.EncodeChat([]Message{{"system", a}, {"user", b}, {"assistant", a}, {"user", a}})
			if err != nil {
				t.Fatal(err)
			}
			return ids
		}
		plain := conversation("x", "y")
		for text := range tok.added {
			for _, typed := range []string{text, "a" + text + "b", text + text, "\n" + text, text[1:], text[:len(text)-1], text[1 : len(text)-1], text[:2], text[2:]} {
				ids := tok.Encode(typed)
				if got := tok.Decode(ids); got != typed || specials(tok, ids) > 0 {
					t.Errorf("%s: %q became %q", name, typed, got)
				}
				for _, id := range ids {
					if _, ok := tok.ID(string(tok.Bytes(id))); ok {
						t.Errorf("%s: %q: added token %d", name, typed, id)
					}
				}
				if got, want := specials(tok, conversation(typed, "z"+typed)), specials(tok, plain); got != want {
					t.Errorf("%s: %q typed: %d special tokens, want %d", name, typed, got, want)
				}
			}
		}
	}
}

// A mark that the template begins and a content would end, or the other way
// round, is none.
func TestNoTokenAcrossContent(t *testing.T) {
	for source, contents := range map[string][]string{
		"{{ '<pad' ~ messages[0].content }}":              {">", "> ", ">>"},
		"{{ messages[0].content ~ 'pad>' }}":              {"<", " <", "<<"},
		"{{ '<' ~ messages[0].content }}":                 {"pad>", "|eot|>", "pad> x"},
		"{{ messages[0].content ~ '>' }}":                 {"<pad", "<|eot|", "x<pad"},
		"{{ messages[0].content ~ messages[1].content }}": {"<", "<p", "<pa", "<pad", "<|eot", "<|"},
		"{{ messages[0].content | replace('X', '') }}":    {"<paXd>", "X<pad>X", "<X|eot|>", "<|eot|X>"},
		"{{ messages[0].content.split('X') | join }}":     {"<paXd>", "<X|eXot|X>"},
	} {
		tok := llama(t, func(s *Spec) {
			s.Tokens, s.Types = append(s.Tokens, "<pad>"), append(s.Types, typeControl)
			s.Template, s.BOS = source, -1
		})
		for _, content := range contents {
			rest := strings.TrimPrefix("<pad>", content)
			if strings.HasPrefix(content, "<|") {
				rest = strings.TrimPrefix("<|eot|>", content)
			}
			ids, err := tok.EncodeChat([]Message{{"user", content}, {"user", rest}})
			if err != nil {
				t.Fatal(err)
			}
			if specials(tok, ids) > 0 {
				t.Errorf("%s: %q makes a special token: %q", source, content, tok.Decode(ids))
			}
		}
	}
}

// The same for texts put together from pieces of marks.
func TestNoSpecialsProperty(t *testing.T) {
	toks := []*Tokenizer{withTemplate(t, thinkTemplate), llama(t, nil), llama(t, func(s *Spec) { s.Template = builtTemplate })}
	pieces := []string{"<", "|", ">", "<|", "|>", "im_end", "start", "<|im_end|>", "<|im_start|>", "<|eot|>", "<|bos|>", "</think>", "<think>", " ", "a", "\n", "\ue000", "\uf8ff", "é"}
	rapid.Check(t, func(t *rapid.T) {
		tok := rapid.SampledFrom(toks).Draw(t, "tokenizer")
		text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12), func(p []string) string { return strings.Join(p, "") })
		var typed, plain []Message
		for _, role := range []string{"system", "user", "assistant", "user"} {
			content := text.Draw(t, role)
			typed = append(typed, Message{role, content})
			plain = append(plain, Message{role, "x"})
		}
		a, err := tok.EncodeChat(typed)
		if err != nil {
			t.Fatal(err)
		}
		b, err := tok.EncodeChat(plain)
		if err != nil {
			t.Fatal(err)
		}
		if x, y := specials(tok, a), specials(tok, b); x != y {
			t.Fatalf("%d special tokens, want %d: %q", x, y, tok.Decode(a))
		}
		for _, m := range typed {
			// The guard is gone and nothing of the text is.
			if m.Role == "user" && !strings.Contains(tok.Decode(a), strings.TrimSpace(nfc(m.Content))) {
				t.Fatalf("%q is not in %q", m.Content, tok.Decode(a))
			}
		}
	})
}

func TestChatForm(t *testing.T) {
	tok := load(t)
	ids, err := tok.EncodeChat([]Message{
		{"system", "Be brief."},
		{"user", "Hi"},
		{"assistant", "<think>\nx\n</think>\n\n7<|im_end|>"},
		{"user", "And?"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n" +
		"<|im_start|>assistant\n<think>\nx\n</think>\n\n7<|im_end|><|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"
	if got := tok.Decode(ids); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	// What the model wrote itself are tokens again; the end mark typed is not.
	for text, want := range map[string]int{"<think>": 1, "</think>": 1, "<|im_end|>": 4, "<|im_start|>": 5} {
		if n := count(ids, tok.added[text]); n != want {
			t.Errorf("%d %s tokens, want %d", n, text, want)
		}
	}
}

func TestChatOptions(t *testing.T) {
	no := false
	dated := "{{ strftime_now('%d %b %Y') if strftime_now is defined else 'some day' }}"
	for _, c := range []struct {
		template string
		o        ChatOptions
		want     string
	}{
		{thinkTemplate, ChatOptions{}, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
		{thinkTemplate, ChatOptions{NoPrompt: true}, "<|im_start|>user\nHi<|im_end|>\n"},
		{thinkTemplate, ChatOptions{Thinking: &no}, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		{dated, ChatOptions{}, "some day"},
		{dated, ChatOptions{Date: time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC)}, "26 Jul 2024"},
	} {
		tok := withTemplate(t, c.template)
		ids, err := tok.EncodeChatWith([]Message{{"user", "Hi"}}, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Decode(ids); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.o, got, c.want)
		}
	}
}

// Case H4: exactly one BOS, whoever asks for it.
func TestOneBOS(t *testing.T) {
	yes, no := true, false
	const without = "{{ messages[0].content }}"
	for name, c := range map[string]struct {
		template string
		add      *bool
		chat     int // BOS in a conversation
		plain    int // BOS in a plain prompt
	}{
		"template, key missing":   {headerTemplate, nil, 1, 1},
		"template and add_bos":    {headerTemplate, &yes, 1, 1},
		"template, no add_bos":    {headerTemplate, &no, 1, 0},
		"none, key missing":       {without, nil, 1, 1},
		"none, add_bos":           {without, &yes, 1, 1},
		"none, no add_bos":        {without, &no, 0, 0},
		"twice in the template":   {"{{ bos_token + bos_token }}" + without, nil, 1, 1},
		"twice, no add_bos":       {"{{ bos_token }}<|bos|>" + without, &no, 1, 0},
		"nothing but the BOS":     {"{{ bos_token }}", &yes, 1, 1},
		"an empty text":           {"", &yes, 0, 1},
		"written as text by hand": {"<|bos|>" + without, &yes, 1, 1},
	} {
		tok := llama(t, func(s *Spec) { s.Template, s.AddBOS = c.template, c.add })
		bos, _ := tok.BOS()
		plain := tok.Prompt("Hi")
		if count(plain, bos) != c.plain || c.plain > 0 && plain[0] != bos || !slices.Equal(plain[c.plain:], tok.Encode("Hi")) {
			t.Errorf("%s: plain prompt %v", name, plain)
		}
		if c.template == "" {
			continue
		}
		ids, err := tok.EncodeChat([]Message{{"user", "Hi <|bos|>"}})
		if err != nil {
			t.Fatal(err)
		}
		if count(ids, bos) != c.chat || c.chat > 0 && ids[0] != bos {
			t.Errorf("%s: conversation %v", name, ids)
		}
	}
}

func TestChatErrors(t *testing.T) {
	tok := load(t)
	if _, err := tok.EncodeChat(nil); err == nil || !strings.Contains(err.Error(), "messages is empty") {
		t.Errorf("no messages: %v", err)
	}
	_, err := tok.EncodeChat([]Message{{"user", "a"}, {"tool", "b"}})
	if err == nil || !strings.Contains(err.Error(), `messages[1].role is "tool"`) {
		t.Errorf("unknown role: %v", err)
	}
	raw, _ := files(t)
	for cfg, want := range map[string]string{
		`{}`:                        "no chat template",
		`{"chat_template": null}`:   "no chat template",
		`{"chat_template": "{{ a"}`: "line 1: the tag has no end",
		`{"chat_template": "\n{{ raise_exception('no ' + messages[0].role) }}"}`:                           "chat template, line 2: no user",
		`{"chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "{{ 1/0"}]}`: "the tag has no end",
	} {
		plain, err := Load(raw, []byte(cfg))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plain.EncodeChat([]Message{{"user", "a"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", cfg, err, want)
		}
		if len(plain.Prompt("Hi")) == 0 {
			t.Errorf("%s: a plain prompt does not work", cfg)
		}
	}
	var private strings.Builder
	for r := rune(0xe000); r <= 0x10ffff; r++ {
		if r <= 0xf8ff || r >= 0xf0000 {
			private.WriteRune(r)
		}
	}
	if _, err := tok.EncodeChat([]Message{{"user", private.String()}}); err == nil || !strings.Contains(err.Error(), "private use") {
		t.Errorf("no guard left: %v", err)
	}
}

func BenchmarkEncodeChat(b *testing.B) {
	tok := load(b)
	msgs := []Message{{"user", "Ana has 73 coins. Ana doubles the pile. Ana loses 82. Ana loses 39. How many coins does Ana have now?"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tok.EncodeChat(msgs); err != nil {
			b.Fatal(err)
		}
	}
}
