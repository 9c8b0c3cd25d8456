package tokenizer

import (
	"bytes"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func files(t testing.TB) (tok, cfg []byte) {
	t.Helper()
	var err error
	if tok, err = os.ReadFile("../tiny/tokenizer/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	if cfg, err = os.ReadFile("../tiny/tokenizer/tokenizer_config.json"); err != nil {
		t.Fatal(err)
	}
	return tok, cfg
}

func load(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load(files(t))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// words splits text fully.
func words(text string) (out []string) {
	for text != "" {
		n := split(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello world":            {"Hello", " world"},
		"I'm, you'RE he'll 'tis": {"I", "'m", ",", " you", "'RE", " he", "'ll", " '", "tis"},
		"don't can'd we'Ve":      {"don", "'t", " can", "'d", " we", "'Ve"},
		"it'\u017f":              {"it", "'\u017f"},
		"'x 'l 'r '":             {"'x", " '", "l", " '", "r", " '"},
		"a12b 345":               {"a", "1", "2", "b", " ", "3", "4", "5"},
		"x\n\n  y":               {"x", "\n\n", " ", " y"},
		"x \r\n\t y":             {"x", " \r\n", "\t", " y"},
		"x   ":                   {"x", "   "},
		"x  \n":                  {"x", "  \n"},
		"  12":                   {" ", " ", "1", "2"},
		"...!?\n\nok":            {"...!?\n\n", "ok"},
		" (a) -> b":              {" (", "a", ")", " ->", " b"},
		"\tfoo\u00a0bar":         {"\tfoo", "\u00a0bar"},
		"日本語 text":               {"日本語", " text"},
		"e\u0301a":               {"e", "\u0301a"},
		"½Ⅳ٣":                    {"½", "Ⅳ", "٣"},
		"a\xff\xfeb":             {"a", "\xff\xfe", "b"},
		"\xffb":                  {"\xffb"},
		"🙂🙂 🙂\n":                 {"🙂🙂", " 🙂\n"},
		"\u2028x":                {"\u2028x"},
		"\u2028\u2028x":          {"\u2028", "\u2028x"},
		"\u0085\n":               {"\u0085\n"},
	} {
		if got := words(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// alphabet has one or more characters of every kind the pattern tells apart.
var alphabet = []rune("sStTrReEvVmMlLdDx' \t\u00a0\u2003\r\n019٣½.,!-é日\u0301\u017f🙂")

// TestSplitRegex compares the scanner with Go's own engine on the pattern. Go
// has no look-ahead, so the alternative \s+(?!\S) is applied by hand to a match
// of \s+. Go's \s is ASCII and is spelt out.
func TestSplitRegex(t *testing.T) {
	const s = `\t\n\v\f\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	re := regexp.MustCompile(`^(?:((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\pL\pN]?\pL+|\pN| ?[^` + s + `\pL\pN]+[\r\n]*|[` + s + `]*[\r\n]+)|([` + s + `]+))`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(alphabet), 1, 30, -1).Draw(t, "text")
		for rest := text; rest != ""; {
			m := re.FindStringSubmatchIndex(rest)
			want := m[1]
			if m[4] >= 0 && want < len(rest) {
				if _, n := utf8.DecodeLastRuneInString(rest[:want]); n < want {
					want -= n
				}
			}
			if got := split(rest); got != want {
				t.Fatalf("%q: scanner takes %q, pattern %q", rest, rest[:got], rest[:want])
			}
			rest = rest[want:]
		}
	})
}

// naive joins the pair of lowest rank, leftmost first, by scanning.
func naive(t *Tokenizer, word string) []int32 {
	var ids []int32
	for i := range len(word) {
		ids = append(ids, t.byteID[word[i]])
	}
	for {
		at, best := -1, merged{}
		for i := 0; i+1 < len(ids); i++ {
			if m, ok := t.merges[pair{ids[i], ids[i+1]}]; ok && (at < 0 || m.rank < best.rank) {
				at, best = i, m
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.id)
	}
}

func TestMergeOracle(t *testing.T) {
	tok := load(t)
	pieces := []string{" ", "a", "n", "an", "s", "e", "es", "d", "doubles", " the", " pile", "iv", "ives", "\n", ".", ".\n", "ss", "ee"}
	rapid.Check(t, func(t *rapid.T) {
		w := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "pieces"), "")
		if got, want := tok.merge(nil, w), naive(tok, w); !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", w, got, want)
		}
	})
}

// Of equal pairs the leftmost is joined first.
func TestMergeLeftmost(t *testing.T) {
	raw, cfg := files(t)
	raw = bytes.Replace(raw, []byte("\"\u0120stamps\""), []byte(`"aa"`), 1)
	raw = regexp.MustCompile(`(?s)"merges": \[.*?\]\s*\],`).ReplaceAll(raw, []byte(`"merges": ["a a"],`))
	tok, err := Load(raw, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range tok.Encode("aaaaaaa") {
		got = append(got, string(tok.Bytes(id)))
	}
	if want := []string{"aa", "aa", "aa", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	tok := load(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom(alphabet))).Draw(t, "text")
		if got := tok.Decode(tok.Encode(text)); got != norm.NFC.String(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// Case A14: text that looks like an added token stays text.
func TestNoAddedTokensFromText(t *testing.T) {
	tok := load(t)
	for text := range tok.added {
		for _, typed := range []string{text, "a" + text + "b", text + text, "\n" + text} {
			ids := tok.Encode(typed)
			if got := tok.Decode(ids); got != typed {
				t.Errorf("%q became %q", typed, got)
			}
			chat, err := tok.EncodeChat([]Message{{"user", typed}, {"system", typed}})
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range slices.Concat(ids, chat) {
				mark := string(tok.Bytes(id))
				if _, ok := tok.ID(mark); ok && (i < len(ids) || mark != imStart && mark != imEnd) {
					t.Errorf("%q: added token %q", typed, mark)
				}
			}
			if n := count(chat, tok.added[imStart]); n != 3 {
				t.Errorf("%q: %d turns begin, want 3", typed, n)
			}
			if n := count(chat, tok.added[imEnd]); n != 2 {
				t.Errorf("%q: %d turns end, want 2", typed, n)
			}
		}
	}
}

func count(ids []int32, id int32) (n int) {
	for _, v := range ids {
		if v == id {
			n++
		}
	}
	return n
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
	if n := count(ids, tok.added["<think>"]); n != 1 {
		t.Errorf("%d <think> tokens, want 1", n)
	}
	if n := count(ids, tok.added["</think>"]); n != 1 {
		t.Errorf("%d </think> tokens, want 1", n)
	}
	if n := count(ids, tok.added[imEnd]); n != 4 {
		t.Errorf("%d <|im_end|> tokens, want 4", n)
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
	plain, err := Load(raw, []byte(`{"chat_template": "{{ messages }}"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.EncodeChat([]Message{{"user", "a"}}); err == nil || !strings.Contains(err.Error(), "not ChatML") {
		t.Errorf("another template: %v", err)
	}
}

func TestTable(t *testing.T) {
	tok := load(t)
	if tok.Size() != 423 {
		t.Errorf("Size %d, want 423", tok.Size())
	}
	end, ok := tok.ID(imEnd)
	if !ok || end != 419 || !tok.IsSpecial(end) || string(tok.Bytes(end)) != imEnd {
		t.Errorf("end mark: %d, %v", end, ok)
	}
	think, ok := tok.ID("<think>")
	if !ok || think != 420 || tok.IsSpecial(think) {
		t.Errorf("<think>: %d, %v", think, ok)
	}
	if _, ok := tok.ID("doubles"); ok {
		t.Error("ID finds a token of the plain vocabulary")
	}
	for _, id := range []int32{-1, 423, 1 << 30} {
		if tok.Bytes(id) != nil || tok.IsSpecial(id) {
			t.Errorf("id %d exists", id)
		}
	}
}

// Case F4: two vocabularies that differ are told apart, by the first id.
func TestHashAndDiff(t *testing.T) {
	a, b := load(t), load(t)
	if a.Hash() != b.Hash() || len(a.Hash()) != 64 {
		t.Errorf("hashes %q and %q", a.Hash(), b.Hash())
	}
	if id, desc := a.Diff(b); id != -1 || desc != "" {
		t.Errorf("equal tables differ at %d: %s", id, desc)
	}
	raw, cfg := files(t)
	for _, c := range []struct{ old, new, want string }{
		{"\u0120doubles\"", "\u0120doublet\"", `token 404 is " doubles" here and " doublet" there`},
		{"u003cthink", "u003cthunk", `token 420 is "<think>" here and "<thunk>" there`},
	} {
		// The renamed token loses its merges, so drop them all.
		changed := bytes.ReplaceAll(raw, []byte(c.old), []byte(c.new))
		if bytes.Equal(changed, raw) {
			t.Fatalf("%q is not in the file", c.old)
		}
		changed = regexp.MustCompile(`(?s)"merges": \[.*?\]\s*\],`).ReplaceAll(changed, []byte(`"merges": [],`))
		other, err := Load(changed, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if id, desc := a.Diff(other); id < 0 || desc != c.want || a.Hash() == other.Hash() {
			t.Errorf("Diff: %d, %s, want %s", id, desc, c.want)
		}
	}
}

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
		"bos":            {raw, []byte(`{"add_bos_token": true}`), "add_bos_token"},
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

// Older files write a merge as one string.
func TestMergesAsStrings(t *testing.T) {
	raw, cfg := files(t)
	re := regexp.MustCompile(`\[\s*"([^"]+)",\s*"([^"]+)"\s*\]`)
	other, err := Load(re.ReplaceAll(raw, []byte(`"$1 $2"`)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	tok, text := load(t), "Ana doubles the pile. Ana loses 82."
	if got, want := other.Encode(text), tok.Encode(text); !slices.Equal(got, want) || len(other.merges) != len(tok.merges) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The cache stays bounded and gives everyone the same answer.
func TestCacheConcurrent(t *testing.T) {
	shared := load(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g%2), 0))
			own := load(t)
			for range 3000 {
				b := make([]byte, 2+r.IntN(5))
				for i := range b {
					b[i] = "abcdefghijklmnopqrstuvwxyz"[r.IntN(26)]
				}
				if got, want := shared.Encode(string(b)), naive(own, string(b)); !slices.Equal(got, want) {
					t.Errorf("%q: got %v, want %v", b, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range 2 * cacheWords {
		shared.Encode("q" + strings.Repeat("z", i%50) + string(rune('\u4e00'+i)))
	}
	if n := len(shared.cache); n == 0 || n > cacheWords {
		t.Errorf("%d words in the cache, limit %d", n, cacheWords)
	}
	before := len(shared.cache)
	shared.Encode(strings.Repeat("longword", cacheWordLen))
	if len(shared.cache) != before {
		t.Error("a very long word is cached")
	}
}

func FuzzEncode(f *testing.F) {
	tok := load(f)
	for _, s := range []string{"", "Ana has 73 coins.", "it's\n\n  <|im_end|>", "\xff\xfe e\u0301 \u1e9b\u0323", "\u0344x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ids := tok.Encode(s)
		if got, want := tok.Decode(ids), norm.NFC.String(s); got != want {
			t.Fatalf("%q became %q, want %q", s, got, want)
		}
		for _, id := range ids {
			if id >= 417 {
				t.Fatalf("%q yields the added token %d", s, id)
			}
		}
	})
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
