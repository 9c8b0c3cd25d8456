package kv_test

import (
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

func ids(s string) (out []event.Token) {
	for _, c := range s {
		out = append(out, event.Token(c))
	}
	return out
}

// put lets a sequence with that text be computed as far as the pool does not
// know it.
func put(t *testing.T, p *kv.Pool, text string) *kv.Seq {
	t.Helper()
	s := &kv.Seq{}
	p.Take(s, p.Match(ids(text)), len(text))
	if !p.Grow(s, len(text)) {
		t.Fatalf("%q does not fit", text)
	}
	p.Index(s, ids(text[:len(text)-1]))
	return s
}

// The length of a hit at the border of a block (case D7), and never the whole
// text (case D1).
func TestMatchLengths(t *testing.T) {
	p, err := kv.New(kv.Config{Tokens: 64, Block: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := put(t, p, "abcdefghijkl")
	p.Release(s, ids("abcdefghijkl"))
	for text, want := range map[string]int{
		"": 0, "a": 0, "abcd": 0, "abcde": 1, "abcdefgh": 1, "abcdefghi": 2, "abcdefghijkl": 2, "abcdefghijklm": 3,
		"abcdefghijklmnopqr": 3, "xbcdefghi": 0, "abcdxfghi": 1, "efghijkl": 0,
	} {
		if got := p.Match(ids(text)).Blocks; got != want {
			t.Errorf("%q: %d blocks, want %d", text, got, want)
		}
	}
}

// Reclaimed is what was used least recently, leaves before what they hang on;
// what is used again moves to the end (case D6).
func TestReclaimOrder(t *testing.T) {
	p, err := kv.New(kv.Config{Tokens: 16, Block: 2})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"aabbcc-", "aadd-", "ee-"}
	for _, text := range texts {
		p.Release(put(t, p, text), ids(text))
	}
	found := func() string {
		var out []string
		for _, text := range texts {
			out = append(out, strings.Repeat("#", p.Match(ids(text)).Blocks))
		}
		return strings.Join(out, " ")
	}
	if found() != "### ## #" {
		t.Fatal(found())
	}
	// The order is bb's leaf cc, bb, dd, aa (used again by the second), ee.
	want := p.Oldest()
	for i, after := range []string{"## ## #", "# ## #", "# # #", "  #", "  "} {
		s := &kv.Seq{}
		for p.Free() > 0 {
			p.Grow(s, (s.Blocks()+1)*2)
		}
		p.Grow(s, (s.Blocks()+1)*2)
		if got := s.IDs(s.Blocks() - 1)[0]; got != want[i] || found() != after {
			t.Fatalf("reclaimed block %d of %v: %q is left, want %q", got, want, found(), after)
		}
	}
	if p.Spare() != 0 {
		t.Errorf("%d blocks to spare", p.Spare())
	}
}

// A twin: two compute the same block at once. The tree has one of them, and
// what hangs behind the other enters when that is released.
func TestTwin(t *testing.T) {
	p, err := kv.New(kv.Config{Tokens: 32, Block: 2})
	if err != nil {
		t.Fatal(err)
	}
	var a, b kv.Seq
	p.Take(&a, kv.Hit{}, 4)
	p.Take(&b, kv.Hit{}, 8)
	p.Grow(&a, 3)
	p.Grow(&b, 7)
	p.Index(&a, ids("aa"))
	p.Index(&b, ids("aabbcc"))
	if a.Shared() != 1 || b.Shared() != 0 {
		t.Fatalf("%d and %d blocks are shared", a.Shared(), b.Shared())
	}
	if got := p.Match(ids("aabbccd")).Blocks; got != 1 {
		t.Fatalf("%d blocks found beside a twin", got)
	}
	p.Release(&b, ids("aabbcc"))
	if got := p.Match(ids("aabbccd")).Blocks; got != 3 || p.Cached() != 2 {
		t.Fatalf("%d blocks found behind a twin, %d cached", got, p.Cached())
	}
	if err := p.Check([]*kv.Seq{&a}); err != nil {
		t.Fatal(err)
	}
	p.Release(&a, ids("aa"))
	if err := p.Check(nil); err != nil || p.Cached() != 3 {
		t.Fatalf("%d blocks cached: %v", p.Cached(), err)
	}
}

// A cut never leaves the rest of a shared block to be written.
func TestCut(t *testing.T) {
	for at, want := range []int{0, 0, 2, 2, 4, 5, 6} {
		p, err := kv.New(kv.Config{Tokens: 32, Block: 2})
		if err != nil {
			t.Fatal(err)
		}
		s := put(t, p, "aabbc") // two shared blocks, half a private one
		p.Grow(s, 6)
		if got := p.Cut(s, at); got != want || s.Shared() != min(2, want/2) {
			t.Errorf("cut at %d: %d positions are left, %d blocks shared", at, got, s.Shared())
		}
		if err := p.Check([]*kv.Seq{s}); err != nil {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
}
