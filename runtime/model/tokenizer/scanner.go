package tokenizer

import (
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner walks JSON without building it: a vocabulary and its merges are
// 300,000 strings that are wanted as bytes, not as a tree. What is small is
// handed to encoding/json as it stands in the file.
type scanner struct {
	b  []byte
	at int
}

func (s *scanner) fail(want string) error {
	if s.at >= len(s.b) {
		return fmt.Errorf("the file ends at byte %d where %s is expected", len(s.b), want)
	}
	return fmt.Errorf("byte %d is %q where %s is expected", s.at, s.b[s.at], want)
}

// peek skips white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.b) {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.at >= len(s.b) {
		return false
	}
	s.at++
	return true
}

// object calls f for each key; f reads the value.
func (s *scanner) object(f func(key string) error) error {
	var key []byte
	return s.list('{', '}', func() (err error) {
		if key, err = s.text(key[:0]); err != nil {
			return err
		}
		if !s.take(':') {
			return s.fail("a colon")
		}
		return f(string(key))
	})
}

// array calls f for each element; f reads it.
func (s *scanner) array(f func() error) error { return s.list('[', ']', f) }

func (s *scanner) list(open, end byte, f func() error) error {
	if !s.take(open) {
		return s.fail(fmt.Sprintf("%q", open))
	}
	if s.take(end) {
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return s.fail(fmt.Sprintf("a comma or %q", end))
		}
	}
}

// text appends a string, its escapes resolved.
func (s *scanner) text(out []byte) ([]byte, error) {
	if !s.take('"') {
		return out, s.fail("a string")
	}
	for {
		from := s.at
		for s.at < len(s.b) && s.b[s.at] != '"' && s.b[s.at] != '\\' && s.b[s.at] >= ' ' {
			s.at++
		}
		out = append(out, s.b[from:s.at]...)
		if s.at >= len(s.b) {
			return out, s.fail("the end of a string")
		}
		switch s.b[s.at] {
		case '"':
			s.at++
			return out, nil
		case '\\':
			var err error
			if out, err = s.escape(out); err != nil {
				return out, err
			}
		default:
			return out, s.fail("no control character in a string")
		}
	}
}

func (s *scanner) escape(out []byte) ([]byte, error) {
	if s.at+1 >= len(s.b) {
		s.at = len(s.b)
		return out, s.fail("an escape")
	}
	c := s.b[s.at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r, err := s.unit()
		if err != nil {
			return out, err
		}
		if utf16.IsSurrogate(r) {
			at := s.at
			low := rune(-1)
			if at+1 < len(s.b) && s.b[at] == '\\' && s.b[at+1] == 'u' {
				if low, err = s.unit(); err != nil {
					return out, err
				}
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				s.at = at
			}
		}
		return utf8.AppendRune(out, r), nil
	default:
		return out, s.fail("an escape of JSON")
	}
	s.at += 2
	return append(out, c), nil
}

// unit reads \uXXXX.
func (s *scanner) unit() (rune, error) {
	var r rune
	for i := range 4 {
		c := byte(0)
		if s.at+2+i < len(s.b) {
			c = s.b[s.at+2+i]
		}
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, s.fail("four hexadecimal digits")
		}
		r = r<<4 | rune(c)
	}
	s.at += 6
	return r, nil
}

// integer reads a whole number that fits an int32.
func (s *scanner) integer() (int32, error) {
	neg := s.take('-')
	s.peek()
	from, n := s.at, int64(0)
	for s.at < len(s.b) && s.b[s.at] >= '0' && s.b[s.at] <= '9' && s.at-from < 11 {
		n = n*10 + int64(s.b[s.at]-'0')
		s.at++
	}
	if s.at == from || s.at-from > 10 || n > 1<<31-1 {
		s.at = from
		return 0, s.fail("a whole number of 32 bits")
	}
	if neg {
		n = -n
	}
	return int32(n), nil
}

// value skips one value and returns it as it stands; brackets are matched, the
// rest is left to who parses it.
func (s *scanner) value() ([]byte, error) {
	s.peek()
	from, depth := s.at, 0
	for s.at < len(s.b) {
		switch c := s.b[s.at]; c {
		case '"':
			if err := s.skipText(); err != nil {
				return nil, err
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']', ',':
			if depth == 0 {
				return s.b[from:s.at], nil
			}
			if c != ',' {
				depth--
			}
			s.at++
		default:
			s.at++
		}
		if depth == 0 && (s.b[s.at-1] == '"' || s.b[s.at-1] == '}' || s.b[s.at-1] == ']') {
			return s.b[from:s.at], nil
		}
	}
	return nil, s.fail("the end of a value")
}

func (s *scanner) skipText() error {
	for s.at++; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return nil
		}
	}
	s.at = len(s.b)
	return s.fail("the end of a string")
}

var errTrailing = errors.New("something follows the end of the object")

// end checks that only white space is left.
func (s *scanner) end() error {
	if s.peek(); s.at < len(s.b) {
		return errTrailing
	}
	return nil
}
