package text

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// fragment draws bytes that meet stop strings and broken characters often.
func fragment(t *rapid.T, label string) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b", "ab", "aab", "こ", "\xe3", "\x81", "\x93", "é", "😀", "\xf0\x9f", "\xff", "\uFFFD", "<", "/", ">",
	}), 0, 16).Draw(t, label)
	return strings.Join(parts, "")
}

func drawStops(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{
		"aab", "ab", "aba", "bab", "こ", "bこa", "😀é", "</>", "a\uFFFD", "\uFFFD\uFFFD",
	}), 0, 3).Draw(t, "stops")
}

// reference is the whole-text definition of the stage: decode everything,
// then look for the stop string that ends first (the longest of those).
func reference(in string, stops []string) (text, stop string, begin int, cut []byte) {
	whole := []byte(in)
	for n := 1; n <= 3 && n <= len(whole); n++ {
		if end := whole[len(whole)-n:]; utf8.RuneStart(end[0]) && !utf8.FullRune(end) {
			cut, whole = end, whole[:len(whole)-n]
			break
		}
	}
	var decoded strings.Builder
	var origin []int // byte of in that each decoded byte's character begins at
	for i := 0; i < len(whole); {
		r, size := utf8.DecodeRune(whole[i:])
		for range utf8.RuneLen(r) {
			origin = append(origin, i)
		}
		decoded.WriteRune(r)
		i += size
	}
	text = decoded.String()
	best := len(text) + 1
	for _, s := range stops {
		i := strings.Index(text, s)
		if i < 0 {
			continue
		}
		if end := i + len(s); end < best || end == best && len(s) > len(stop) {
			best, stop = end, s
		}
	}
	if stop == "" {
		return text, "", 0, cut
	}
	at := best - len(stop)
	return text[:at], stop, origin[at], nil
}

// ahead lets a clone take all the tokens that are still to come, twice: it finds what
// the stage will find and leaves the stage as it is, which goes on behind it.
func ahead(t *rapid.T, s *Stage, first int, tokens []string, order []int, found *Stop, want string) {
	for range 2 {
		c, stop := s.Clone(), found
		for _, i := range order {
			// Those that the stage has are refused, and change nothing.
			if out, err := c.Push(first+i, []byte(tokens[i]), false); err == nil && out.Stop != nil {
				stop = out.Stop
			}
		}
		if got := c.Flush(ReasonLength).Reason; (stop != nil) != (want != "") || stop != nil && (stop.Text != want || got != ReasonStop) {
			t.Fatalf("a clone finds %+v and ends with %s; want %q", stop, got, want)
		}
	}
}

// Case A5: every chunking, and every order of arrival, gives the text of the
// whole-text definition; at any time the client holds a valid prefix of it.
func TestAnyChunkingAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := fragment(t, "in")
		stops := drawStops(t)
		tokens, starts := chunk(t, in)
		order := rapid.Permutation(indices(len(tokens))).Draw(t, "order")
		first := rapid.IntRange(0, 50).Draw(t, "first")

		want, wantStop, begin, cut := reference(in, stops)
		s, err := New(first, stops)
		if err != nil {
			t.Fatal(err)
		}
		var sent strings.Builder
		var stop *Stop
		for _, i := range order {
			if rapid.IntRange(0, 5).Draw(t, "ahead") == 0 {
				ahead(t, s, first, tokens, order, stop, wantStop)
			}
			out, err := s.Push(first+i, []byte(tokens[i]), false)
			if err != nil {
				t.Fatal(err)
			}
			sent.WriteString(out.Text)
			if !utf8.ValidString(out.Text) || !strings.HasPrefix(want, sent.String()) {
				t.Fatalf("client holds %q, which is no valid prefix of %q", sent.String(), want)
			}
			if out.Stop != nil {
				stop = out.Stop
				continue
			}
			if h := string(s.held); stop == nil && h != "" && !slices.ContainsFunc(stops, func(stop string) bool {
				return len(h) < len(stop) && strings.HasPrefix(stop, h)
			}) {
				t.Fatalf("%q is held and is no proper prefix of any of %q", h, stops)
			}
			if utf8.FullRune(s.raw) && len(s.raw) > 0 {
				t.Fatalf("bytes %x are held and could be decoded", s.raw)
			}
		}
		tail := s.Flush(ReasonLength)
		sent.WriteString(tail.Text)
		if sent.String() != want {
			t.Fatalf("text %q, want %q", sent.String(), want)
		}
		if tail.Lost != nil {
			t.Fatalf("lost %v", tail.Lost)
		}
		if wantStop == "" {
			if stop != nil || tail.Reason != ReasonLength || !bytes.Equal(tail.Cut, cut) {
				t.Fatalf("stop %+v, tail %+v; want no stop and cut %x", stop, tail, cut)
			}
			return
		}
		// Empty tokens share a start; the stop began in the last of them.
		pos := first + upper(starts, begin) - 1
		if stop == nil || stop.Text != wantStop || stop.Pos != pos || tail.Reason != ReasonStop || tail.Cut != nil {
			t.Fatalf("stop %+v, tail %+v; want %q at %d", stop, tail, wantStop, pos)
		}
	})
}

// Small texts are cut in every possible way (case A5, exhaustively).
func TestEveryChunking(t *testing.T) {
	for _, in := range []string{"aこab", "ab\xe3\x81b", "<a></x", "x😀éaab", "\xff\xe3aba\xf0\x9f"} {
		stops := []string{"aab", "😀é", "ab", "</>"}
		want, wantStop, _, cut := reference(in, stops)
		for mask := range 1 << (len(in) - 1) {
			s, err := New(0, stops)
			if err != nil {
				t.Fatal(err)
			}
			var sent string
			var stop string
			begin, pos := 0, 0
			for i := range len(in) {
				if i < len(in)-1 && mask>>i&1 == 0 {
					continue
				}
				out, err := s.Push(pos, []byte(in[begin:i+1]), false)
				if err != nil {
					t.Fatal(err)
				}
				sent += out.Text
				if out.Stop != nil {
					stop = out.Stop.Text
				}
				begin, pos = i+1, pos+1
			}
			tail := s.Flush(ReasonStop)
			sent += tail.Text
			if sent != want || stop != wantStop || !bytes.Equal(tail.Cut, cut) {
				t.Fatalf("%q cut by %b: text %q stop %q cut %x; want %q %q %x", in, mask, sent, stop, tail.Cut, want, wantStop, cut)
			}
		}
	}
}

func chunk(t *rapid.T, in string) (tokens []string, starts []int) {
	n := rapid.IntRange(1, 8).Draw(t, "tokens")
	ends := make([]int, n)
	for i := range n - 1 {
		ends[i] = rapid.IntRange(0, len(in)).Draw(t, "end")
	}
	ends[n-1] = len(in)
	slices.Sort(ends)
	begin := 0
	for _, end := range ends {
		tokens, starts = append(tokens, in[begin:end]), append(starts, begin)
		begin = end
	}
	return tokens, starts
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// upper returns how many of the ascending starts are at most x.
func upper(starts []int, x int) int {
	n := 0
	for n < len(starts) && starts[n] <= x {
		n++
	}
	return n
}
