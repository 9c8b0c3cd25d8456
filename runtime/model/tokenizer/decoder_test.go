package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Case A6: however a text is cut into tokens, each piece is valid UTF-8, is
// final, and no character comes in parts.
func TestDecoderProperty(t *testing.T) {
	tok := load(t)
	rapid.Check(t, func(t *rapid.T) {
		// Ids at random give broken sequences too: most are single bytes.
		ids := rapid.SliceOfN(rapid.OneOf(rapid.Int32Range(0, 422), rapid.Int32Range(120, 255)), 0, 40).Draw(t, "ids")
		if rapid.Bool().Draw(t, "text") {
			ids = tok.Encode(rapid.String().Draw(t, "string"))
		}
		d := NewDecoder(tok)
		var got strings.Builder
		var raw []byte
		for _, id := range ids {
			piece := d.Add(id)
			if !utf8.ValidString(piece) {
				t.Fatalf("%q is not UTF-8", piece)
			}
			got.WriteString(piece)
			if !tok.IsSpecial(id) {
				raw = append(raw, tok.Bytes(id)...)
			}
			if len(d.held) > 3 {
				t.Fatalf("%d bytes are held", len(d.held))
			}
			if whole := string([]rune(string(raw))); !strings.HasPrefix(whole, got.String()) {
				t.Fatalf("%q is no prefix of %q", got.String(), whole)
			}
		}
		got.WriteString(d.Flush())
		// Go replaces each byte that is not UTF-8 by U+FFFD, as runtime/text does.
		if want := string([]rune(string(raw))); got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
		if d.Add(tok.byteID['a']) != "a" {
			t.Fatal("the decoder cannot be used again")
		}
	})
}

func TestDecoder(t *testing.T) {
	tok := load(t)
	end, _ := tok.ID("<|im_end|>")
	think, _ := tok.ID("<think>")
	d := NewDecoder(tok)
	for i, step := range []struct {
		id   int32
		want string
	}{
		{tok.byteID[0xe3], ""},
		{tok.byteID[0x81], ""},
		{tok.byteID[0x93], "こ"}, // one character, three tokens
		{think, "<think>"},
		{end, ""},
		{-1, ""},
		{1 << 20, ""},
		{tok.byteID[0xf0], ""},
		{tok.byteID['x'], "\ufffdx"}, // can never become a character
		{tok.byteID[0xc3], ""},
		{end, ""},
		{tok.byteID[0xa9], "é"}, // a special token in between adds nothing
		{tok.byteID[0xff], "\ufffd"},
		{tok.byteID[0xe2], ""},
		{tok.byteID[0x82], ""},
	} {
		if got := d.Add(step.id); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	if got := d.Flush(); got != "\ufffd\ufffd" {
		t.Errorf("Flush: %q", got)
	}
	if got := d.Flush(); got != "" {
		t.Errorf("second Flush: %q", got)
	}
}

func BenchmarkDecoder(b *testing.B) {
	tok := load(b)
	ids := tok.Encode("Ana doubles the pile. Ana loses 82. 日本 é")
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		d := NewDecoder(tok)
		for _, id := range ids {
			n += len(d.Add(id))
		}
	}
	b.ReportMetric(float64(b.N*len(ids))/b.Elapsed().Seconds(), "tok/s")
}
