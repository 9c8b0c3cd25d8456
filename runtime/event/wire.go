package event

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// The primitives of the binary form; codec.go says how they are put together.

func putUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func putInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func putFloat(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func putString[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(putUint(b, uint64(len(s))), s...)
}

func putTokens(b []byte, ts []Token) []byte {
	b = putUint(b, uint64(len(ts)))
	for _, t := range ts {
		b = putInt(b, int64(t))
	}
	return b
}

func putInts(b []byte, vs []int) []byte {
	b = putUint(b, uint64(len(vs)))
	for _, v := range vs {
		b = putInt(b, int64(v))
	}
	return b
}

// reader takes values from the front of b. After the first error it yields zeros.
type reader struct {
	b   []byte
	off int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: %w", r.off, fmt.Errorf(format, args...))
	}
}

func (r *reader) short() {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: the data ends inside a value: %w", r.off, io.ErrUnexpectedEOF)
	}
}

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.off >= len(r.b) {
		r.short()
		return 0
	}
	v := r.b[r.off]
	r.off++
	return v
}

func (r *reader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.off:])
	switch {
	case n == 0:
		r.short()
	case n < 0:
		r.fail("a number of more than 64 bits")
	default:
		r.off += n
		return v
	}
	return 0
}

// bounded reads an unsigned number of at most limit.
func (r *reader) bounded(limit uint64, what string) uint64 {
	v := r.uint()
	if v > limit {
		r.fail("%s is %d, more than %d", what, v, limit)
		return 0
	}
	return v
}

func (r *reader) int64() int64 {
	u := r.uint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (r *reader) int() int {
	v := r.int64()
	if int64(int(v)) != v {
		r.fail("the number %d does not fit this machine", v)
		return 0
	}
	return int(v)
}

func (r *reader) token() Token {
	v := r.int64()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail("the token %d has more than 32 bits", v)
		return 0
	}
	return Token(v)
}

func (r *reader) peer() Peer {
	v := r.int64()
	if v < math.MinInt16 || v > math.MaxInt16 {
		r.fail("the subserver %d has more than 16 bits", v)
		return 0
	}
	return Peer(v)
}

func (r *reader) float() float32 {
	if r.err != nil {
		return 0
	}
	if len(r.b)-r.off < 4 {
		r.short()
		return 0
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(r.b[r.off:]))
	r.off += 4
	return v
}

func (r *reader) bool() bool {
	v := r.byte()
	if v > 1 {
		r.fail("%d in place of yes (1) or no (0)", v)
	}
	return v == 1
}

// length reads how many elements of at least size bytes follow. It refuses more
// than the data can hold, so that nothing large is ever allocated for a lie.
func (r *reader) length(size int) int {
	n := r.uint()
	if r.err == nil && n > uint64((len(r.b)-r.off)/size) {
		r.fail("%d elements announced, %d bytes left: %w", n, len(r.b)-r.off, io.ErrUnexpectedEOF)
		return 0
	}
	return int(n)
}

func (r *reader) raw() []byte {
	n := r.length(1)
	if n == 0 || r.err != nil {
		return nil
	}
	v := r.b[r.off : r.off+n]
	r.off += n
	return v
}

func (r *reader) bytes() []byte {
	if v := r.raw(); v != nil {
		return append([]byte(nil), v...)
	}
	return nil
}

func (r *reader) string() string { return string(r.raw()) }

func (r *reader) tokens() []Token {
	return list(r, 1, (*reader).token)
}

func (r *reader) ints() []int {
	return list(r, 1, (*reader).int)
}

// list reads a length and that many elements of at least size bytes.
func list[T any](r *reader, size int, one func(*reader) T) []T {
	n := r.length(size)
	if n == 0 || r.err != nil {
		return nil
	}
	out := make([]T, n)
	for i := range out {
		out[i] = one(r)
		if r.err != nil {
			return nil
		}
	}
	return out
}
