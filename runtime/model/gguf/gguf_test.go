package gguf

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model/tensor"
)

func TestRoundTrip(t *testing.T) {
	for _, alignment := range []uint32{0, 1, 2, 8, 32, 64, 4096, MaxAlignment} {
		b := sample(t, alignment)
		f, err := Parse(b)
		if err != nil {
			t.Fatalf("alignment %d: %v", alignment, err)
		}
		if want := max(int(alignment), 1); alignment > 0 && f.Alignment != want || alignment == 0 && f.Alignment != DefaultAlignment {
			t.Errorf("alignment %d, want %d", f.Alignment, alignment)
		}
		if want := []string{"f32", "vector", "q8", "q6", "unread", "last"}; !slices.Equal(f.Names(), want) {
			t.Errorf("names %v", f.Names())
		}
		for _, c := range []struct {
			name  string
			typ   tensor.Type
			shape []int
			bytes int
		}{
			{"f32", tensor.F32, []int{3, 5}, 60},
			{"vector", tensor.F16, []int{7}, 14},
			{"q8", tensor.Q8_0, []int{3, 2, 64}, 6 * 68},
			{"q6", tensor.Q6_K, []int{1, 256}, 210},
			{"unread", tensor.IQ2_XS, []int{2, 256}, 148},
			{"last", tensor.I8, []int{1, 1, 1, 3}, 3},
		} {
			got, ok := f.Tensor(c.name)
			if !ok || got.Type != c.typ || !slices.Equal(got.Shape, c.shape) || len(got.Data) != c.bytes {
				t.Errorf("%s: %v, %s %v of %d bytes", c.name, ok, got.Type, got.Shape, len(got.Data))
				continue
			}
			for i, v := range got.Data {
				if v != byte(i+len(c.name)) {
					t.Fatalf("%s: byte %d is %d", c.name, i, v)
				}
			}
		}
		if _, ok := f.Tensor("nothing"); ok {
			t.Error("a tensor that is not there")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Version 2 has the same layout.
func TestVersion2(t *testing.T) {
	b := sample(t, 0)
	b[4] = 2
	if f, err := Parse(b); err != nil || f.Version != 2 {
		t.Errorf("%v", err)
	}
}

func TestGetters(t *testing.T) {
	f, err := Parse(sample(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range kinds {
		keys = append(keys, e.Key)
	}
	if !slices.Equal(f.Keys(), keys) {
		t.Errorf("keys %v", f.Keys())
	}
	keys = append(keys, "nothing")
	// Each getter with the keys that it answers; it refuses all others.
	checkScalars(t, "Uint", keys, f.Uint, map[string]uint64{"u8": 200, "u16": 60000, "u32": 4e9, "u64": 1 << 63})
	checkScalars(t, "Int", keys, f.Int, map[string]int64{"u8": 200, "i8": -100, "u16": 60000, "i16": -30000, "u32": 4e9, "i32": -2e9, "i64": math.MinInt64})
	checkScalars(t, "Float", keys, f.Float, map[string]float64{"f32": float64(float32(1e-6)), "f64": 1e300})
	checkScalars(t, "Bool", keys, f.Bool, map[string]bool{"yes": true, "no": false})
	checkScalars(t, "String", keys, f.String, map[string]string{"string": "a \xff b"})
	checkScalars(t, "Len", keys, f.Len, map[string]int{
		"strings": 3, "bools": 2, "u8s": 2, "i8s": 2, "u16s": 2, "i16s": 1, "u32s": 2, "big u32s": 2, "i32s": 2,
		"u64s": 1, "big u64s": 1, "i64s": 2, "f32s": 2, "f64s": 1, "empty": 0,
	})
	checkSlices(t, "Strings", keys, f.Strings, map[string][]string{"strings": {"", "Ġthe", "x"}})
	checkSlices(t, "Int32s", keys, f.Int32s, map[string][]int32{
		"u8s": {1, 255}, "i8s": {-1, 1}, "u16s": {1, 65535}, "i16s": {-1}, "u32s": {7, math.MaxInt32}, "i32s": {-5, 5},
		"u64s": {3}, "i64s": {-3, 1 << 30}, "empty": {},
	})
	checkSlices(t, "Floats", keys, f.Floats, map[string][]float32{"f32s": {0.5, -2}, "f64s": {0.25}})
}

func checkScalars[T comparable](t *testing.T, getter string, keys []string, get func(string) (T, bool), want map[string]T) {
	t.Helper()
	for _, k := range keys {
		w, answers := want[k]
		if v, ok := get(k); ok != answers || answers && v != w {
			t.Errorf("%s(%q) is %v, %v, want %v, %v", getter, k, v, ok, w, answers)
		}
	}
}

func checkSlices[T comparable](t *testing.T, getter string, keys []string, get func(string) ([]T, bool), want map[string][]T) {
	t.Helper()
	for _, k := range keys {
		w, answers := want[k]
		if v, ok := get(k); ok != answers || !slices.Equal(v, w) {
			t.Errorf("%s(%q) is %v, %v, want %v, %v", getter, k, v, ok, w, answers)
		}
	}
}

// A key of another kind is an error with its place; a missing one has none.
func TestMissing(t *testing.T) {
	b := sample(t, 0)
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"u32":     `the value of "u32" is a uint32, a string is needed`,
		"strings": `the value of "strings" is an array of 3 string, a string is needed`,
	} {
		var e *Error
		if err := f.Missing(key, "a string"); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		} else if !bytes.HasPrefix(b[e.Offset:], raw{}.str(key)) {
			t.Errorf("%s: byte %d is not its place", key, e.Offset)
		}
	}
	if err := f.Missing("nothing", "a string"); !strings.Contains(err.Error(), `no metadata key "nothing": a string is needed`) {
		t.Errorf("%v", err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	b := sample(t, 0)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.Bytes(), b) {
		t.Error("the bytes differ from the file's")
	}
	for _, x := range f.Tensors() {
		before := bytes.Clone(x.Data)
		f.Release(x)
		if !bytes.Equal(before, x.Data) {
			t.Errorf("%s changed by its release", x.Name)
		}
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Tensor("f32"); ok || len(f.Names()) > 0 {
		t.Error("a closed file still has tensors")
	}
	if err := os.WriteFile(path, b[:len(b)-200], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "at byte") {
		t.Errorf("a cut file: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	many := make([]Entry, MaxKeys+1)
	ok := bytesSource("a", tensor.F32, 2)
	for name, c := range map[string]struct {
		meta    []Entry
		tensors []tensor.Source
		want    string
	}{
		"many keys":     {many, nil, "too many"},
		"same key":      {[]Entry{{"a", true}, {"a", true}}, nil, `key "a" appears twice`},
		"no form":       {[]Entry{{"a", 1}}, nil, `key "a": a value of type int has no form`},
		"alignment":     {[]Entry{{"general.alignment", uint32(24)}}, nil, "power of two"},
		"alignment int": {[]Entry{{"general.alignment", int32(32)}}, nil, "(int32)"},
		"same tensor":   {nil, []tensor.Source{ok, ok}, `tensor "a" appears twice`},
		"long name":     {nil, []tensor.Source{bytesSource(strings.Repeat("a", 256), tensor.F32, 2)}, "at most 255 bytes"},
		"five":          {nil, []tensor.Source{bytesSource("a", tensor.F32, 1, 1, 1, 1, 1)}, "1 to 4 dimensions"},
		"foreign":       {nil, []tensor.Source{bytesSource("a", tensor.U8, 2)}, "U8 cannot stand"},
		"block":         {nil, []tensor.Source{bytesSource("a", tensor.Q8_0, 33)}, "blocks of Q8_0"},
		"zero":          {nil, []tensor.Source{bytesSource("a", tensor.F32, 0)}, "dimension 0"},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.meta, c.tensors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if b.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, b.Len())
		}
	}
}

// A vocabulary of 150,000 tokens is what takes the time.
func BenchmarkParse(b *testing.B) {
	tokens, merges := make([]string, 150_000), make([]string, 150_000)
	for i := range tokens {
		tokens[i], merges[i] = strings.Repeat("t", 1+i%9), strings.Repeat("m", 1+i%5)+" m"
	}
	var buf bytes.Buffer
	err := Write(&buf, []Entry{{"tokens", tokens}, {"merges", merges}, {"types", make([]int32, len(tokens))}}, []tensor.Source{bytesSource("a", tensor.F32, 1)})
	if err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]bool{"header": false, "with vocabulary": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(buf.Len()))
			b.ReportAllocs()
			for b.Loop() {
				f, err := Parse(buf.Bytes())
				if err != nil {
					b.Fatal(err)
				}
				if read {
					_, ok1 := f.Strings("tokens")
					_, ok2 := f.Strings("merges")
					_, ok3 := f.Int32s("types")
					if !ok1 || !ok2 || !ok3 {
						b.Fatal("no vocabulary")
					}
				}
			}
		})
	}
}
