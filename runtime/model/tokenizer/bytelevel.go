package tokenizer

import "unicode/utf8"

// byteRune is the character that stands for a byte in a byte-level vocabulary
// (Radford et al. 2019): printable ones for themselves, the others from U+0100.
var byteRune = func() (t [256]rune) {
	n := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			t[b] = b
			continue
		}
		t[b] = n
		n++
	}
	return t
}()

// runeByte is byteRune turned round; -1 where a character stands for no byte.
// The largest one in use is U+0143.
var runeByte = func() (t [0x144]int16) {
	for r := range t {
		t[r] = -1
	}
	for b, r := range byteRune {
		t[r] = int16(b)
	}
	return t
}()

// appendByteLevel appends the bytes that a vocabulary entry stands for; false
// where one of its characters stands for none.
func appendByteLevel(out, entry []byte) ([]byte, bool) {
	for i := 0; i < len(entry); {
		r, n := rune(entry[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(entry[i:])
		}
		if int(r) >= len(runeByte) || runeByte[r] < 0 {
			return out, false
		}
		out = append(out, byte(runeByte[r]))
		i += n
	}
	return out, true
}
