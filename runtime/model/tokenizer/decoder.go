package tokenizer

import "unicode/utf8"

// Decoder turns the tokens of one sequence into text as they come. What it has
// given is always valid UTF-8 and a prefix of the final text: a character is
// held back until all its bytes are there. Bytes that can never become UTF-8
// are replaced by U+FFFD, one for each byte, as runtime/text does. Special
// tokens add no text. Its memory is at most three bytes, whatever comes.
type Decoder struct {
	t    *Tokenizer
	held []byte // start of a character that is not complete yet
}

// NewDecoder returns the decoder of one sequence; it is not safe for
// concurrent use.
func NewDecoder(t *Tokenizer) *Decoder { return &Decoder{t: t} }

// Add takes the next token and returns the text that is complete now, often
// empty.
func (d *Decoder) Add(id int32) string {
	if d.t.IsSpecial(id) {
		return ""
	}
	b := d.t.Bytes(id)
	if len(d.held) == 0 && utf8.Valid(b) {
		return string(b)
	}
	d.held = append(d.held, b...)
	var out []byte
	rest := d.held
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, n := utf8.DecodeRune(rest)
		out = utf8.AppendRune(out, r)
		rest = rest[n:]
	}
	d.held = d.held[:copy(d.held, rest)]
	return string(out)
}

// Flush ends the text: what is held has no end to come and gives U+FFFD for
// each byte. The decoder can be used for another sequence then.
func (d *Decoder) Flush() string {
	var out []byte
	for range d.held {
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	d.held = d.held[:0]
	return string(out)
}
