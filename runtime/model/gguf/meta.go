package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// kind is the kind of a metadata value (enum gguf_metadata_value_type).
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

var kindNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}

// kindSize is the size of a value in bytes, 0 where it varies.
var kindSize = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

func (k kind) String() string { return kindNames[k] }

// value is a checked value of the metadata: its place in the file.
type value struct {
	key   int  // offset of the key
	kind  kind // of the elements, for an array
	array bool
	n     int // elements of an array
	data  []byte
}

func (v value) describe() string {
	if v.array {
		return fmt.Sprintf("an array of %d %s", v.n, v.kind)
	}
	return "a " + v.kind.String()
}

// parseMeta reads n keys with their values.
func (f *File) parseMeta(c *cursor, n int) error {
	total := 0
	for range n {
		at := c.pos
		name, err := c.str(MaxKeyBytes, subject{format: "a metadata key"})
		if err != nil {
			return err
		}
		if total += len(name); total > maxAllKeys {
			return bad(at, "the metadata keys have more than the limit of %d bytes", maxAllKeys)
		}
		key := string(name)
		if _, ok := f.meta[key]; ok {
			return bad(at, "metadata key %.80q appears twice", key)
		}
		v, err := parseValue(c, key)
		if err != nil {
			return err
		}
		v.key = at
		f.meta[key] = v
		f.keys = append(f.keys, key)
	}
	return nil
}

// parseValue walks over a value and checks it.
func parseValue(c *cursor, key string) (value, error) {
	what := subject{"the value of %.80q", key}
	v := value{n: 1}
	var err error
	if v.kind, err = parseKind(c, what); err != nil {
		return v, err
	}
	if v.kind == kindArray {
		at := c.pos
		v.array = true
		if v.kind, err = parseKind(c, what); err != nil {
			return v, err
		}
		if v.kind == kindArray {
			return v, unsupported(at, "%s is an array of arrays, which is not supported: no model in use needs one", what)
		}
		if v.n, err = c.count(MaxArray, subject{"the number of elements of %.80q", key}); err != nil {
			return v, err
		}
	}
	start := c.pos
	if size := kindSize[v.kind]; size > 0 {
		if uint64(v.n) > c.left()/uint64(size) {
			return v, bad(start, "%s claims %d elements of %d bytes, but only %d bytes follow", what, v.n, size, c.left())
		}
		c.pos += v.n * size
	} else {
		for range v.n {
			if _, err := c.str(math.MaxInt64, what); err != nil {
				return v, err
			}
		}
	}
	v.data = c.b[start:c.pos:c.pos]
	if v.kind == kindBool {
		for i, b := range v.data {
			if b > 1 {
				return v, bad(start+i, "%s is a bool of %d, allowed are 0 and 1", what, b)
			}
		}
	}
	return v, nil
}

func parseKind(c *cursor, what subject) (kind, error) {
	at := c.pos
	k, err := c.u32(what)
	switch {
	case err != nil:
		return 0, err
	case k > uint32(kindFloat64):
		return 0, bad(at, "%s is of kind %d, known are 0..%d", what, k, kindFloat64)
	}
	return kind(k), nil
}

// setAlignment takes general.alignment over.
func (f *File) setAlignment() error {
	const key = "general.alignment"
	v, ok := f.meta[key]
	if !ok {
		return nil
	}
	n, ok := f.Uint(key)
	if !ok {
		return f.Missing(key, "an unsigned number")
	}
	if n == 0 || n > MaxAlignment || n&(n-1) != 0 {
		return bad(v.key, "%s is %d, a power of two from 1 to %d is needed", key, n, MaxAlignment)
	}
	f.Alignment = int(n)
	return nil
}

// Keys lists the metadata keys in the order of the file; not to be changed.
func (f *File) Keys() []string { return f.keys }

// Missing is the error for a value that a getter did not give: the key is not
// there, or its value is not what is needed. want names that, such as "a
// string".
func (f *File) Missing(key, want string) error {
	v, ok := f.meta[key]
	if !ok {
		return fmt.Errorf("gguf: the file has no metadata key %q: %s is needed; convert the model again", key, want)
	}
	return &Error{Offset: int64(v.key), Reason: fmt.Sprintf("the value of %q is %s, %s is needed; convert the model again", key, v.describe(), want)}
}

// scalar finds a value that is no array.
func (f *File) scalar(key string) (value, bool) {
	v, ok := f.meta[key]
	return v, ok && !v.array
}

// integer reads the i-th number of an integer kind; big says that it is an
// unsigned one above the range of int64.
func (v value) integer(i int) (n int64, big, ok bool) {
	if v.kind == kindString || v.kind == kindArray {
		return 0, false, false
	}
	p := v.data[i*kindSize[v.kind]:]
	switch v.kind {
	case kindUint8:
		return int64(p[0]), false, true
	case kindInt8:
		return int64(int8(p[0])), false, true
	case kindUint16:
		return int64(binary.LittleEndian.Uint16(p)), false, true
	case kindInt16:
		return int64(int16(binary.LittleEndian.Uint16(p))), false, true
	case kindUint32:
		return int64(binary.LittleEndian.Uint32(p)), false, true
	case kindInt32:
		return int64(int32(binary.LittleEndian.Uint32(p))), false, true
	case kindUint64:
		u := binary.LittleEndian.Uint64(p)
		return int64(u), u > math.MaxInt64, true
	case kindInt64:
		return int64(binary.LittleEndian.Uint64(p)), false, true
	}
	return 0, false, false
}

// float reads the i-th number of a float kind.
func (v value) float(i int) (float64, bool) {
	switch v.kind {
	case kindFloat32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data[4*i:]))), true
	case kindFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.data[8*i:])), true
	}
	return 0, false
}

// Uint gives a number of any integer kind that is at least 0.
func (f *File) Uint(key string) (uint64, bool) {
	v, ok := f.scalar(key)
	if !ok {
		return 0, false
	}
	n, big, ok := v.integer(0)
	return uint64(n), ok && (big || n >= 0)
}

// Int gives a number of any integer kind that an int64 holds.
func (f *File) Int(key string) (int64, bool) {
	v, ok := f.scalar(key)
	if !ok {
		return 0, false
	}
	n, big, ok := v.integer(0)
	return n, ok && !big
}

// Float gives a number of a float kind.
func (f *File) Float(key string) (float64, bool) {
	v, ok := f.scalar(key)
	if !ok {
		return 0, false
	}
	return v.float(0)
}

// Bool gives a truth value.
func (f *File) Bool(key string) (value, ok bool) {
	v, ok := f.scalar(key)
	if !ok || v.kind != kindBool {
		return false, false
	}
	return v.data[0] == 1, true
}

// String gives a string, a copy.
func (f *File) String(key string) (string, bool) {
	v, ok := f.scalar(key)
	if !ok || v.kind != kindString {
		return "", false
	}
	return string(v.data[8:]), true
}

// Strings gives an array of strings, a copy.
func (f *File) Strings(key string) ([]string, bool) {
	v, ok := f.meta[key]
	if !ok || !v.array || v.kind != kindString {
		return nil, false
	}
	// One copy for all, so that a vocabulary of 150,000 words is one allocation.
	all, pos := string(v.data), 0
	out := make([]string, v.n)
	for i := range out {
		if len(all)-pos < 8 {
			return nil, false // the file was changed since it was parsed
		}
		n := binary.LittleEndian.Uint64([]byte(all[pos : pos+8]))
		if pos += 8; n > uint64(len(all)-pos) {
			return nil, false
		}
		out[i] = all[pos : pos+int(n)]
		pos += int(n)
	}
	return out, true
}

// Int32s gives an array of any integer kind whose numbers all fit an int32.
func (f *File) Int32s(key string) ([]int32, bool) {
	v, ok := f.meta[key]
	if !ok || !v.array || v.kind == kindString || v.kind == kindBool || v.kind == kindFloat32 || v.kind == kindFloat64 {
		return nil, false
	}
	out := make([]int32, v.n)
	for i := range out {
		n, big, ok := v.integer(i)
		if !ok || big || n != int64(int32(n)) {
			return nil, false
		}
		out[i] = int32(n)
	}
	return out, true
}

// Floats gives an array of a float kind, rounded to float32.
func (f *File) Floats(key string) ([]float32, bool) {
	v, ok := f.meta[key]
	if !ok || !v.array || v.kind != kindFloat32 && v.kind != kindFloat64 {
		return nil, false
	}
	out := make([]float32, v.n)
	for i := range out {
		x, _ := v.float(i)
		out[i] = float32(x)
	}
	return out, true
}

// Len gives the number of elements of an array.
func (f *File) Len(key string) (int, bool) {
	v, ok := f.meta[key]
	return v.n, ok && v.array
}
