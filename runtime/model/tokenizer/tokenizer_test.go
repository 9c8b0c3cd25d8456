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

func TestRoundTrip(t *testing.T) {
	tok := load(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom(alphabet))).Draw(t, "text")
		if got := tok.Decode(tok.Encode(text)); got != norm.NFC.String(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestTable(t *testing.T) {
	tok := load(t)
	if tok.Size() != 423 {
		t.Errorf("Size %d, want 423", tok.Size())
	}
	end, ok := tok.ID("<|im_end|>")
	if !ok || end != 419 || !tok.IsSpecial(end) || string(tok.Bytes(end)) != "<|im_end|>" {
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
		{"\u0120doubles\"", "\u0120doublet\"", `token 404 is " doubles" in the first and " doublet" in the second`},
		{"u003cthink", "u003cthunk", `token 420 is "<think>" in the first and "<thunk>" in the second`},
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
		if got, want := tok.Decode(ids), nfc(s); got != want {
			t.Fatalf("%q became %q, want %q", s, got, want)
		}
		for _, id := range ids {
			if id >= 417 {
				t.Fatalf("%q yields the added token %d", s, id)
			}
		}
	})
}
