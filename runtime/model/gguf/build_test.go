package gguf

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"tokenrouter/runtime/model/tensor"
)

// raw builds files that Write would refuse.
type raw []byte

func (r raw) u32(v uint32) raw { return binary.LittleEndian.AppendUint32(r, v) }
func (r raw) u64(v uint64) raw { return binary.LittleEndian.AppendUint64(r, v) }
func (r raw) str(s string) raw { return append(r.u64(uint64(len(s))), s...) }

// head is the beginning of a file with counts of tensors and keys.
func head(tensors, keys uint64) raw { return raw("GGUF").u32(3).u64(tensors).u64(keys) }

// key adds a metadata key and its kind; the value is to follow.
func (r raw) key(name string, k kind) raw { return r.str(name).u32(uint32(k)) }

// array begins the value of an array.
func (r raw) array(k kind, n uint64) raw { return r.u32(uint32(k)).u64(n) }

// entry adds a tensor to the table, dims as the file has them.
func (r raw) entry(name string, t uint32, offset uint64, dims ...uint64) raw {
	r = r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r = r.u64(d)
	}
	return r.u32(t).u64(offset)
}

// data pads to the alignment and adds n bytes.
func (r raw) data(alignment, n int) raw {
	return append(append(r, make([]byte, padding(int64(len(r)), alignment))...), make([]byte, n)...)
}

// bytesSource is a tensor of bytes that count up.
func bytesSource(name string, t tensor.Type, shape ...int) tensor.Source {
	s := tensor.Source{Name: name, Type: t, Shape: shape}
	b := make([]byte, s.Size())
	for i := range b {
		b[i] = byte(i + len(name))
	}
	s.Write = func(w io.Writer) error { _, err := w.Write(b); return err }
	return s
}

// kinds is an entry of every kind.
var kinds = []Entry{
	{"u8", uint8(200)},
	{"i8", int8(-100)},
	{"u16", uint16(60000)},
	{"i16", int16(-30000)},
	{"u32", uint32(4e9)},
	{"i32", int32(-2e9)},
	{"f32", float32(1e-6)},
	{"yes", true},
	{"no", false},
	{"string", "a \xff b"},
	{"u64", uint64(1 << 63)},
	{"i64", int64(-1 << 63)},
	{"f64", 1e300},
	{"strings", []string{"", "Ġthe", "x"}},
	{"bools", []bool{true, false}},
	{"u8s", []uint8{1, 255}},
	{"i8s", []int8{-1, 1}},
	{"u16s", []uint16{1, 65535}},
	{"i16s", []int16{-1}},
	{"u32s", []uint32{7, 1<<31 - 1}},
	{"big u32s", []uint32{7, 1 << 31}},
	{"i32s", []int32{-5, 5}},
	{"u64s", []uint64{3}},
	{"big u64s", []uint64{1 << 63}},
	{"i64s", []int64{-3, 1 << 30}},
	{"f32s", []float32{0.5, -2}},
	{"f64s", []float64{0.25}},
	{"empty", []int32{}},
}

// sample writes a file with every kind and several types.
func sample(t testing.TB, alignment uint32) []byte {
	t.Helper()
	meta := kinds
	if alignment > 0 {
		meta = append([]Entry{{"general.alignment", alignment}}, kinds...)
	}
	var b bytes.Buffer
	err := Write(&b, meta, []tensor.Source{
		bytesSource("f32", tensor.F32, 3, 5),
		bytesSource("vector", tensor.F16, 7),
		bytesSource("q8", tensor.Q8_0, 3, 2, 64),
		bytesSource("q6", tensor.Q6_K, 1, 256),
		bytesSource("unread", tensor.IQ2_XS, 2, 256),
		bytesSource("last", tensor.I8, 1, 1, 1, 3),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
