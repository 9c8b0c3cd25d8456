package frame

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// agree checks that both ways of measuring say w of s, and that nothing in s is
// executed by a terminal.
func agree(t interface{ Fatalf(string, ...any) }, s string, w int) {
	if got := ansi.StringWidth(s); got != w {
		t.Fatalf("%q is %d wide by clusters, not %d", s, got, w)
	}
	if got := ansi.StringWidthWc(s); got != w {
		t.Fatalf("%q is %d wide by characters, not %d", s, got, w)
	}
	if !utf8.ValidString(s) {
		t.Fatalf("%q is not UTF-8", s)
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			t.Fatalf("%q holds the control character %U", s, r)
		}
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		in, want string
		w        int
	}{
		{"plain", "plain", 5},
		{"日本", "日本", 4},
		{"é", "é", 1},
		{"e\u0301", "e\u0301", 1},
		{"\u0301x", "\ufffdx", 2},
		{"\x1b[2J\x07", "␛[2J␇", 5},
		{"\u009b31m", "\ufffd31m", 4},
		{"a\tb\n", "a␉b␊", 4},
		{"👍🏽", "👍", 2},
		{"👨\u200d👩\u200d👧", "👨", 2},
		{"❤\ufe0f", "❤", 1},
		{"\u202eevil\u202c", "evil", 4},
		{"a\u200bb", "ab", 2},
		{"\xff\xc3", "\ufffd\ufffd", 2},
		{"x" + strings.Repeat("\u0336", 40), "x\u0336\u0336", 1},
		{"─█⣿", "─█⣿", 3},
	} {
		got := Clean(c.in, false)
		if got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
		if w := Width(c.in); w != c.w {
			t.Errorf("Width(%q) = %d, want %d", c.in, w, c.w)
		}
		agree(t, got, c.w)
		for _, r := range Clean(c.in, true) {
			if r >= 0x7f || r < 0x20 {
				t.Errorf("Clean(%q) in ASCII holds %U", c.in, r)
			}
		}
	}
}

func TestCleanAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")) +
			string(rapid.SliceOfN(rapid.Int32Range(0, 0x10ffff), 0, 12).Draw(t, "runes"))
		out := Clean(s, false)
		agree(t, out, Width(s))
		if again := Clean(out, false); again != out {
			t.Fatalf("cleaning %q again gives %q", out, again)
		}
		w := rapid.IntRange(0, 30).Draw(t, "width")
		clip := Clip(s, w, false)
		if got := Width(clip); got > w {
			t.Fatalf("Clip(%q, %d) = %q is %d wide", s, w, clip, got)
		}
		agree(t, clip, Width(clip))
	})
}

func FuzzCells(f *testing.F) {
	for _, s := range []string{"", "abc", "\x1b]52;c;AAAA\x07", "e\u0301\u0301\u0301", "🇩🇪🇩", "각", "\xe2\x82", "नि"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		agree(t, Clean(s, false), Width(s))
	})
}

func TestLineNeverWider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(-2, 40).Draw(t, "width")
		l := NewLine(width, rapid.Bool().Draw(t, "ascii"))
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			s := rapid.String().Draw(t, "text")
			st := rapid.SampledFrom([]Style{"", "\x1b[1m", "\x1b[38;2;1;2;3m"}).Draw(t, "style")
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				l.Put(st, s)
			case 1:
				l.PutRight(st, s, rapid.IntRange(-1, 50).Draw(t, "field"))
			case 2:
				l.Row(NewLine(20, false).Put(st, s).End())
			case 3:
				l.To(rapid.IntRange(-1, 50).Draw(t, "column"))
			case 4:
				Slider(l, Unicode(), rapid.IntRange(-1, 12).Draw(t, "slider"), st, "", rapid.Float64().Draw(t, "at"))
			}
		}
		r := l.End()
		if r.W > max(width, 0) || r.W != ansi.StringWidth(r.S) {
			t.Fatalf("row %q: W %d, measures %d, room %d", r.S, r.W, ansi.StringWidth(r.S), width)
		}
	})
}

func TestBoxAndBeside(t *testing.T) {
	l := NewLine(80, false)
	title := l.Start(80).Put("\x1b[1m", " a title that is too long for its box ").End()
	note := l.Start(80).Put("", " note ").End()
	body := []Row{l.Start(80).Put("", "short").End(), l.Start(80).Put("\x1b[3m", strings.Repeat("long ", 10)).End()}
	for width := range 60 {
		for _, r := range Box(Unicode(), "\x1b[2m", width, title, note, body) {
			if r.W != max(width, 4) || ansi.StringWidth(r.S) != r.W {
				t.Fatalf("box of %d has a row of %d (%d): %q", width, r.W, ansi.StringWidth(r.S), r.S)
			}
		}
	}
	rows := Beside(2, false, []int{7, 5}, body, []Row{title, title, title})
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.W > 14 || ansi.StringWidth(r.S) != r.W {
			t.Errorf("row %q is %d wide", r.S, ansi.StringWidth(r.S))
		}
	}
}

// heights gives the height of each column of a chart in eighths.
func heights(g *Glyphs, rows []Row) []int {
	out := make([]int, rows[0].W)
	for _, r := range rows {
		x := 0
		for cell := range Cells(ansi.Strip(r.S), false) {
			for k := 8; k > 0; k-- {
				if cell == g.Levels[k] {
					out[x] += k
					break
				}
			}
			x++
		}
	}
	return out
}

func TestStackHeights(t *testing.T) {
	g := Unicode()
	layers := []Layer{{Style: "\x1b[31m", Over: "\x1b[31;42m"}, {Style: "\x1b[32m"}}
	values := [][]float64{{0, 0}, {5, 0}, {0, 10}, {20, 20}, {100, 100}, nil, {math.NaN(), 40}, {0.01, 0}}
	rows := Stack(g, 4, 40, layers, values)
	for _, r := range rows {
		if r.W != len(values) || ansi.StringWidth(r.S) != r.W {
			t.Fatalf("row %q is %d wide", r.S, ansi.StringWidth(r.S))
		}
	}
	// Column 3 holds both layers: its middle row is where one ends.
	want := []int{0, 4, 8, 32, 32, 0, 32, 1}
	got := heights(g, rows)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("column %d is %d eighths high, want %d", i, got[i], want[i])
		}
	}
	if !strings.Contains(rows[0].S, "\x1b[32m") || !strings.Contains(rows[3].S, "\x1b[31m") {
		t.Errorf("layers out of order: %q over %q", rows[0].S, rows[3].S)
	}
	for i, want := range []string{"\x1b[31m▁\x1b[m", "\x1b[32m▁\x1b[m"} { // next to nothing has its own colour too
		v := make([]float64, 2)
		v[i] = 0.01
		if got := Stack(g, 1, 40, layers, [][]float64{v}); got[0].S != want {
			t.Errorf("a little of layer %d is drawn as %q", i, got[0].S)
		}
	}
	mono := Stack(ASCII(), 4, 40, []Layer{{Solid: "#"}, {Solid: ":"}}, [][]float64{{20, 20}})
	if mono[0].S != ":" || mono[3].S != "#" {
		t.Errorf("without colours the layers are %q over %q", mono[0].S, mono[3].S)
	}
}

func TestBarFills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.IntRange(0, 30).Draw(t, "width")
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		l := NewLine(40, true)
		Bar(l, w, Part{Glyph: "."}, Part{Share: a, Glyph: "#"}, Part{Share: min(b, 1-a), Glyph: ":"})
		r := l.End()
		if r.W != w {
			t.Fatalf("bar of %d is %d wide", w, r.W)
		}
		if n := strings.Count(r.S, "#"); w > 2 && math.Abs(float64(n)-a*float64(w)) > 1 {
			t.Fatalf("share %.2f of %d is drawn as %d", a, w, n)
		}
	})
}
