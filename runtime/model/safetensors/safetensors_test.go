package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model/tensor"
)

// build makes a file from a header and its data.
func build(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

const sound = `{"__metadata__":{"format":"pt"},` +
	`"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},` +
	`"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]},` +
	`"c":{"dtype":"BF16","shape":[1],"data_offsets":[14,16]},` +
	`"n":{"dtype":"I64","shape":[1],"data_offsets":[16,24]},` +
	`"s":{"dtype":"F32","shape":[],"data_offsets":[24,28]},` +
	`"z":{"dtype":"F32","shape":[0,5],"data_offsets":[28,28]}}   `

func soundData() []byte {
	var b []byte
	for _, v := range []float32{1.5, -2} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	for _, v := range []uint16{0x3c00, 0xc000, 0x0001, 0x3f80} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, 7)
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(9))
}

func TestRead(t *testing.T) {
	f, err := Parse(build(sound, soundData()))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Names(); !slices.Equal(got, []string{"a", "b", "c", "n", "s", "z"}) {
		t.Errorf("names %v", got)
	}
	if f.Meta["format"] != "pt" {
		t.Errorf("metadata %v", f.Meta)
	}
	for _, c := range []struct {
		name  string
		shape []int
		want  []float32
	}{
		{"a", []int{2, 1}, []float32{1.5, -2}},
		{"b", []int{3}, []float32{1, -2, 0x1p-24}},
		{"c", []int{1}, []float32{1}},
		{"s", nil, []float32{9}},
		{"z", []int{0, 5}, []float32{}},
	} {
		x, ok := f.Tensor(c.name)
		got := make([]float32, x.Len())
		tensor.Dequantize(x.Type, got, x.Data)
		if !ok || x.Name != c.name || !slices.Equal(x.Shape, c.shape) || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v of shape %v, want %v", c.name, ok, got, x.Shape, c.want)
		}
	}
	if x, ok := f.Tensor("n"); !ok || x.Type != tensor.I64 || len(x.Data) != 8 || x.Data[0] != 7 {
		t.Errorf("n: %v, %s of % x", ok, x.Type, x.Data)
	}
	if _, ok := f.Tensor("nothing"); ok {
		t.Error("Tensor finds what is not there")
	}
}

// entry is a header with one tensor.
func entry(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

// Cases H1 and H2: what a damaged or hostile header may claim.
func TestHostile(t *testing.T) {
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "header length"},
		{"short", []byte{1, 2, 3}, "header length"},
		{"length 2^62", append(length(1<<62), "{}"...), "claims 4611686018427387904"},
		{"length 2^64-1", append(length(math.MaxUint64), "{}"...), "more than the limit"},
		{"length beyond the file", append(length(1<<20), "{}"...), "only 2 follow"},
		{"no header", length(0), "not a JSON object"},
		{"not JSON", build("hello", nil), "not a JSON object"},
		{"array", build("[]", nil), "not a JSON object"},
		{"cut header", build(`{"a":`, nil), "not valid JSON"},
		{"open header", build(`{`, nil), "not valid JSON"},
		{"more after", build(`{} {}`, nil), "goes on after"},
		{"duplicate", build(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, []byte{1}), "appears twice"},
		{"duplicate metadata", build(`{"__metadata__":{},"__metadata__":{}}`, nil), "appears twice"},
		{"metadata of numbers", build(`{"__metadata__":{"a":1}}`, nil), "object of strings"},
		{"huge metadata", build(`{"__metadata__":{"a":"`+strings.Repeat("x", maxMeta)+`"}}`, nil), "more than the limit"},
		{"huge entry", build(entry("U8", "["+strings.Repeat("1,", maxEntry)+"1]", "[0,1]"), []byte{1}), "more than the limit"},
		{"unknown dtype", build(entry("Q4", "[1]", "[0,1]"), []byte{1}), "has dtype \"Q4\", which is not known"},
		{"nine dimensions", build(entry("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), []byte{1}), "9 dimensions"},
		{"negative dimension", build(entry("U8", "[-1]", "[0,1]"), []byte{1}), "out of range"},
		{"fraction", build(entry("U8", "[1.5]", "[0,1]"), []byte{1}), "damaged"},
		{"product overflow", build(entry("F32", "[2147483647,2147483647,2147483647]", "[0,4]"), make([]byte, 4)), "overflows"},
		{"product wraps to size", build(entry("F32", "[1073741824,1073741824,16,4]", "[0,0]"), nil), "overflows"},
		{"offsets reversed", build(entry("U8", "[1]", "[5,4]"), []byte{1}), "not a byte range"},
		{"offsets overflow", build(entry("U8", "[1]", "[18446744073709551614,18446744073709551615]"), []byte{1}), "not a byte range"},
		{"offsets negative", build(entry("U8", "[1]", "[-1,0]"), []byte{1}), "damaged"},
		{"one offset", build(entry("U8", "[1]", "[0]"), []byte{1}), "begin and an end"},
		{"offset past the end", build(entry("U8", "[1000]", "[0,1000]"), []byte{1}), "holds only 1"},
		{"huge tensor", build(entry("U8", "[2147483647,1000000]", "[0,2147483647000000]"), []byte{1}), "holds only 1"},
		{"size differs", build(entry("F32", "[2]", "[0,4]"), make([]byte, 4)), "needs 8 bytes"},
		{"overlap", build(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, make([]byte, 3)), "overlaps"},
		{"hole", build(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, make([]byte, 3)), "belong to no tensor"},
		{"tail", build(entry("U8", "[1]", "[0,1]"), make([]byte, 9)), "belong to no tensor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.file)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an Error with %q", err, c.want)
			}
			if e.Offset < 0 || e.Offset > int64(len(c.file)) {
				t.Errorf("offset %d in a file of %d bytes", e.Offset, len(c.file))
			}
		})
	}
}

// A header that promises much makes nothing be allocated for it.
func TestHostileAllocatesLittle(t *testing.T) {
	files := [][]byte{
		append(binary.LittleEndian.AppendUint64(nil, 1<<62), "{}"...),
		append(binary.LittleEndian.AppendUint64(nil, MaxHeader), "{}"...),
		build(entry("U8", "[2147483647,1000000]", "[0,2147483647000000]"), []byte{1}),
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, b := range files {
		if _, err := Parse(b); err == nil {
			t.Error("a hostile file is accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated for three small files", n)
	}
}

// The largest headers that may be claimed and are there stay below 64 MiB, too.
func TestLargeHeaders(t *testing.T) {
	var many strings.Builder
	many.WriteString("{")
	for i := range MaxTensors + 1 {
		if i > 0 {
			many.WriteByte(',')
		}
		fmt.Fprintf(&many, `"%080d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
	}
	many.WriteString("}")
	for name, c := range map[string]struct{ head, want string }{
		"many tensors": {many.String(), "more tensors than the limit of 65536"},
		"one value":    {`{"a":"` + strings.Repeat("x", MaxHeader-10) + `"}`, "more than the limit of 4096"},
		"nested":       {`{"a":` + strings.Repeat("[", MaxHeader-10), "not valid JSON"},
	} {
		b := build(c.head, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(b)
		runtime.ReadMemStats(&after)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d bytes were allocated for a header of %d", name, n, len(c.head))
		}
	}
}

// Case H1: a file cut anywhere gives an error with the place.
func TestTruncated(t *testing.T) {
	b, err := os.ReadFile("../tiny/tiny-37k/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(b); n += 1 + n/7 {
		_, err := Parse(b[:n])
		var e *Error
		if !errors.As(err, &e) || e.Offset > int64(n) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}
