package text

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"
)

// feed pushes tokens in order from position 10 on and returns what the client
// got piece by piece, the stop and the tail.
func feed(t *testing.T, reason Reason, stops []string, tokens ...string) (pieces []string, stop *Stop, tail Tail) {
	t.Helper()
	s, err := New(10, stops)
	if err != nil {
		t.Fatal(err)
	}
	for i, tok := range tokens {
		out, err := s.Push(10+i, []byte(tok), false)
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, out.Text)
		if out.Stop != nil {
			if stop != nil {
				t.Fatalf("stop reported twice: %+v and %+v", *stop, *out.Stop)
			}
			stop = out.Stop
		}
	}
	return pieces, stop, s.Flush(reason)
}

func wantPieces(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("client got %q, want %q", got, want)
	}
}

// Case A1: a stop string that lies across tokens and inside one.
func TestStopAcrossTokens(t *testing.T) {
	pieces, stop, tail := feed(t, ReasonLength, []string{"EFG"}, "ABC", "DEF", "GHIJ", "KLM")
	wantPieces(t, pieces, "ABC", "D", "", "")
	if stop == nil || stop.Pos != 11 || stop.Text != "EFG" {
		t.Errorf("stop %+v, want EFG at position 11", stop)
	}
	if tail.Text != "" || tail.Reason != ReasonStop || tail.Cut != nil {
		t.Errorf("tail %+v", tail)
	}
}

// Case A2: a held prefix that turns out to be no stop string is released.
func TestHeldPrefixIsReleased(t *testing.T) {
	pieces, stop, tail := feed(t, ReasonStop, []string{"</end>"}, "<", "/en", "x")
	wantPieces(t, pieces, "", "", "</enx")
	if stop != nil || tail.Text != "" {
		t.Errorf("stop %+v, tail %+v", stop, tail)
	}
	pieces, _, tail = feed(t, ReasonStop, []string{"</end>"}, "a<", "/en")
	wantPieces(t, pieces, "a", "")
	if tail.Text != "</en" {
		t.Errorf("the end of the request gives %q, want the held </en", tail.Text)
	}
}

// Case A6: three byte tokens make one character; it appears once, complete.
func TestCharacterFromByteTokens(t *testing.T) {
	pieces, _, tail := feed(t, ReasonStop, nil, "\xe3", "\x81", "\x93", "!")
	wantPieces(t, pieces, "", "", "こ", "!")
	if tail.Text != "" || tail.Cut != nil {
		t.Errorf("tail %+v", tail)
	}
}

// Case A8: max_tokens in the middle of a character.
func TestLengthCutsCharacter(t *testing.T) {
	pieces, _, tail := feed(t, ReasonLength, nil, "ok ", "\xf0\x9f", "\x98")
	wantPieces(t, pieces, "ok ", "", "")
	if tail.Text != "" || tail.Reason != ReasonLength || !bytes.Equal(tail.Cut, []byte("\xf0\x9f\x98")) {
		t.Errorf("tail %+v, want the three bytes in Cut", tail)
	}
}

// Case A11: two subservers write alternately and a stop prefix is held across
// their hand-offs; the later token even arrives first.
func TestStopAcrossHandOff(t *testing.T) {
	s, err := New(40, []string{"\nUser:"})
	if err != nil {
		t.Fatal(err)
	}
	var sent string
	var stop *Stop
	for _, tok := range []struct {
		pos  int
		text string
	}{{40, "fine."}, {42, "Us"}, {43, "er"}, {41, "\n"}, {45, " again"}, {44, ":"}} {
		out, err := s.Push(tok.pos, []byte(tok.text), false)
		if err != nil {
			t.Fatal(err)
		}
		sent += out.Text
		if out.Stop != nil {
			stop = out.Stop
		}
	}
	if sent != "fine." || stop == nil || stop.Pos != 41 {
		t.Errorf("sent %q, stop %+v; want %q and position 41", sent, stop, "fine.")
	}
}

func TestSpecialTokensAddNoText(t *testing.T) {
	s, err := New(0, []string{"EFG"})
	if err != nil {
		t.Fatal(err)
	}
	var sent string
	for i, tok := range []struct {
		text    string
		special bool
	}{{"xE\xe3", false}, {"<|im_end|>", true}, {"\x81\x93", false}} {
		out, err := s.Push(i, []byte(tok.text), tok.special)
		if err != nil {
			t.Fatal(err)
		}
		sent += out.Text
	}
	if sent != "xEこ" {
		t.Errorf("sent %q", sent)
	}
}

func TestStopRules(t *testing.T) {
	for _, c := range []struct {
		name, in string
		stops    []string
		text     string
		stop     string
	}{
		{"first completed wins", "abcd", []string{"abcd", "bc"}, "a", "bc"},
		{"longer of two completed by one byte", "xabc", []string{"bc", "abc"}, "x", "abc"},
		{"a prefix inside a failed prefix", "aaab", []string{"aab"}, "a", "aab"},
		{"own border", "ababac", []string{"abac"}, "ab", "abac"},
		{"inside broken bytes", "\xe3E\xffF", []string{"E\uFFFDF"}, "\uFFFD", "E\uFFFDF"},
		{"wide characters", "日本語です", []string{"語で"}, "日本", "語で"},
		{"at once", "stop", []string{"stop"}, "", "stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokens := make([]string, 0, len(c.in))
			for _, b := range []byte(c.in) {
				tokens = append(tokens, string([]byte{b}))
			}
			for _, cut := range [][]string{{c.in}, tokens} {
				pieces, stop, _ := feed(t, ReasonLength, c.stops, cut...)
				var sent string
				for _, p := range pieces {
					sent += p
				}
				if sent != c.text || stop == nil || stop.Text != c.stop {
					t.Errorf("in %d tokens: %q, stop %+v; want %q, %q", len(cut), sent, stop, c.text, c.stop)
				}
			}
		})
	}
}

func TestBrokenBytesBecomeReplacements(t *testing.T) {
	pieces, _, tail := feed(t, ReasonStop, nil, "a\xff", "\xe3\x81", "b\x81", "\xed\xa0\x80")
	var sent string
	for _, p := range pieces {
		if !utf8.ValidString(p) {
			t.Errorf("piece %q is not UTF-8", p)
		}
		sent += p
	}
	if want := "a\uFFFD\uFFFD\uFFFDb\uFFFD\uFFFD\uFFFD\uFFFD"; sent != want || tail.Cut != nil {
		t.Errorf("sent %q, tail %+v; want %q", sent, tail, want)
	}
}

func TestPushRefusesRepeatedPositions(t *testing.T) {
	s, err := New(5, nil)
	if err != nil {
		t.Fatal(err)
	}
	must := func(pos int, want string) {
		t.Helper()
		out, err := s.Push(pos, []byte{byte('a' + pos)}, false)
		if err != nil || out.Text != want {
			t.Errorf("Push(%d) = %q, %v; want %q", pos, out.Text, err, want)
		}
	}
	refuse := func(pos int) {
		t.Helper()
		if out, err := s.Push(pos, []byte("z"), false); err == nil || out.Text != "" {
			t.Errorf("Push(%d) = %+v without an error", pos, out)
		}
	}
	refuse(4)
	must(7, "")
	refuse(7)
	must(5, "f")
	refuse(5)
	must(6, "gh")
	must(9, "")
	tail := s.Flush(ReasonAbort)
	if !slices.Equal(tail.Lost, []int{9}) || tail.Reason != ReasonAbort {
		t.Errorf("tail %+v, want position 9 lost", tail)
	}
	if out, err := s.Push(8, []byte("i"), false); err != nil || out.Text != "" {
		t.Errorf("after the end: %+v, %v", out, err)
	}
	if again := s.Flush(ReasonAbort); again.Text != "" || again.Lost != nil {
		t.Errorf("second tail %+v", again)
	}
}

func TestPushCopiesWaitingBytes(t *testing.T) {
	s, err := New(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	reused := []byte("b")
	if _, err := s.Push(1, reused, false); err != nil {
		t.Fatal(err)
	}
	reused[0] = 'a'
	if out, err := s.Push(0, reused, false); err != nil || out.Text != "ab" {
		t.Errorf("got %q, %v", out.Text, err)
	}
}

func TestNewRefusesBadStops(t *testing.T) {
	for _, stop := range []string{"", "\xff"} {
		if _, err := New(0, []string{"ok", stop}); err == nil {
			t.Errorf("stop string %q was accepted", stop)
		}
	}
}

func BenchmarkPush(b *testing.B) {
	s, err := New(0, []string{"</end>", "\n\nUser:"})
	if err != nil {
		b.Fatal(err)
	}
	tok := []byte(" token")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Push(i, tok, false); err != nil {
			b.Fatal(err)
		}
	}
}
