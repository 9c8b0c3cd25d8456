package export

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD. All
// that any reader could take for the end of a line is escaped (U+0085, U+2028
// and U+2029 as well), as are DEL and the control codes, so a row is a line.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20 || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029:
			b = append(b, '\\', 'u', hex[c>>12], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
		i += n
	}
	return append(b, '"')
}

// appendBytes appends the bytes of s as a JSON array of numbers.
func appendBytes(b []byte, s string) []byte {
	b = append(b, '[')
	for i := range len(s) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(s[i]), 10)
	}
	return append(b, ']')
}

// appendFloat appends the shortest decimal that reads back as the same float32,
// or null where JSON has no word for it.
func appendFloat(b []byte, f float32) []byte {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, float64(f), 'g', -1, 32)
}

// appendMicros appends ns as microseconds, exactly.
func appendMicros(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b, u = append(b, '-'), -u
	}
	b = strconv.AppendUint(b, u/1000, 10)
	rest := u % 1000
	if rest == 0 {
		return b
	}
	b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}
