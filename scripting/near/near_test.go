package near

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBest(t *testing.T) {
	fields := []string{"entropy", "entropy_norm", "top1", "top2", "margin"}
	for word, want := range map[string]string{
		"entropi": "entropy", "entorpy": "entropy", "Entropy": "entropy", "top3": "top1", "marign": "margin",
		"entropynorm": "entropy_norm", "zebra": "", "x": "", "entropy": "",
	} {
		if got := Best(word, fields); got != want {
			t.Errorf("Best(%q) = %q, want %q", word, got, want)
		}
	}
	long := strings.Repeat("m", maxWord)
	if got := Best(long, []string{long + "x"}); got != long+"x" {
		t.Errorf("Best(%q) = %q", long, got)
	}
	if got := Best(long+"x", []string{long}); got != "" {
		t.Errorf("a word of %d bytes was taken for %q", maxWord+1, got)
	}
	if got, want := Hint("lrage", []string{"small", "large"}), `; did you mean "large"?`; got != want {
		t.Errorf("Hint = %q, want %q", got, want)
	}
}

func TestList(t *testing.T) {
	roles := []string{"small", "large"}
	for word, want := range map[string]string{
		"lrage": `; did you mean "large"? roles: small, large`,
		"x":     `; roles: small, large`,
	} {
		if got := List(word, "roles", roles); got != want {
			t.Errorf("List(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-d]{0,8}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Fatalf("distance(%q,%q) is not symmetric", a, b)
		}
		if (d == 0) != (a == b) {
			t.Fatalf("distance(%q,%q) = %d", a, b, d)
		}
		if lo, hi := max(len(a), len(b))-min(len(a), len(b)), max(len(a), len(b)); d < lo || d > hi {
			t.Fatalf("distance(%q,%q) = %d, outside %d..%d", a, b, d, lo, hi)
		}
	})
}
