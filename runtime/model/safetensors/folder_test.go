package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tokenrouter/runtime/model/tensor"
)

// counting is a tensor of bytes that count up.
func counting(name string, t tensor.Type, shape ...int) tensor.Source {
	s := tensor.Source{Name: name, Type: t, Shape: shape}
	b := make([]byte, s.Size())
	for i := range b {
		b[i] = byte(i + len(name))
	}
	s.Write = func(w io.Writer) error { _, err := w.Write(b); return err }
	return s
}

var sample = []tensor.Source{
	counting("b.weight", tensor.F32, 3, 5),
	counting("a", tensor.BF16, 7),
	counting("c \"quoted\"\n", tensor.F16, 2, 2, 3),
	counting("fp8", tensor.F8E4M3, 5),
	counting("number", tensor.I64),
}

// checkSample holds a store against the tensors of sample.
func checkSample(t *testing.T, f *Folder) {
	t.Helper()
	if want := []string{"a", "b.weight", "c \"quoted\"\n", "fp8", "number"}; !slices.Equal(f.Names(), want) {
		t.Errorf("names %q", f.Names())
	}
	for _, s := range sample {
		x, ok := f.Tensor(s.Name)
		if !ok || x.Type != s.Type || !slices.Equal(x.Shape, s.Shape) || int64(len(x.Data)) != s.Size() {
			t.Errorf("%s: %v, %s %v of %d bytes", s.Name, ok, x.Type, x.Shape, len(x.Data))
			continue
		}
		f.Release(x)
		for i, v := range x.Data {
			if v != byte(i+len(s.Name)) {
				t.Fatalf("%s: byte %d is %d", s.Name, i, v)
			}
		}
	}
	if _, ok := f.Tensor("nothing"); ok {
		t.Error("a tensor that is not there")
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if len(f.Names()) > 0 || len(f.Shards()) > 0 {
		t.Error("a closed folder still has tensors")
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir() // each time over the weights before
	for _, shards := range []int{0, 1, 2, 3, 1, 5, 9} {
		if err := WriteDir(dir, shards, sample); err != nil {
			t.Fatal(err)
		}
		f, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := min(max(shards, 1), len(sample)); len(f.Shards()) != want {
			t.Errorf("%d files, want %d", len(f.Shards()), want)
		}
		for _, s := range f.Shards() {
			b, err := os.ReadFile(filepath.Join(dir, s.Name))
			if err != nil || !bytes.Equal(b, s.Data) {
				t.Errorf("%s: the bytes differ from the file's, %v", s.Name, err)
			}
		}
		checkSample(t, f)
		if f, err = OpenFS(os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		checkSample(t, f)
	}
	// A single file under another name.
	path := filepath.Join(t.TempDir(), "other.safetensors")
	if err := writeFile(path, nil, sample); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkSample(t, f)
	if f, err := OpenFile(filepath.Dir(path)); err == nil || f != nil {
		t.Error("a folder was read as a file")
	}
}

// The header is padded: values begin at a multiple of eight.
func TestWriteAligns(t *testing.T) {
	for n := range 9 {
		var b bytes.Buffer
		if err := Write(&b, map[string]string{"k": strings.Repeat("x", n)}, sample); err != nil {
			t.Fatal(err)
		}
		f, err := Parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if f.data%8 != 0 || f.Meta["k"] != strings.Repeat("x", n) {
			t.Errorf("data at byte %d, metadata %v", f.data, f.Meta)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	a := counting("a", tensor.F32, 1)
	for name, c := range map[string]struct {
		tensors []tensor.Source
		want    string
	}{
		"twice":    {[]tensor.Source{a, a}, `tensor "a"`},
		"reserved": {[]tensor.Source{counting("__metadata__", tensor.F32, 1)}, "a name of its own"},
		"nine":     {[]tensor.Source{counting("a", tensor.F32, 1, 1, 1, 1, 1, 1, 1, 1, 1)}, "at most 8 dimensions"},
		"blocks":   {[]tensor.Source{counting("a", tensor.Q8_0, 32)}, "Q8_0 cannot stand"},
	} {
		var b bytes.Buffer
		if err := Write(&b, nil, c.tensors); err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
			t.Errorf("%s: %v after %d bytes, want %q", name, err, b.Len(), c.want)
		}
	}
}

// files is a folder in memory: an index with a weight_map, and files of one
// small tensor for each given name.
func files(t *testing.T, index string, tensors map[string][]string) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	if index != "" {
		fsys[Index] = &fstest.MapFile{Data: []byte(index)}
	}
	for file, names := range tensors {
		var all []tensor.Source
		for _, n := range names {
			all = append(all, counting(n, tensor.F16, 4))
		}
		var b bytes.Buffer
		if err := Write(&b, nil, all); err != nil {
			t.Fatal(err)
		}
		fsys[file] = &fstest.MapFile{Data: b.Bytes()}
	}
	return fsys
}

func weightMap(pairs ...string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	b, _ := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": m})
	return string(b)
}

func TestHostileFolder(t *testing.T) {
	two := map[string][]string{"1.safetensors": {"a"}, "2.safetensors": {"b"}}
	many := []string{}
	for i := range maxShards + 1 {
		many = append(many, fmt.Sprint(i), fmt.Sprintf("%d.safetensors", i))
	}
	for _, c := range []struct {
		name string
		fsys fs.FS
		want string
	}{
		{"empty", files(t, "", nil), "neither model.safetensors nor model.safetensors.index.json"},
		{"no JSON", files(t, "{", two), "index.json: the file is damaged"},
		{"no map", files(t, "{}", two), "weight_map is missing"},
		{"map of numbers", files(t, `{"weight_map":{"a":1}}`, two), "index.json: the file is damaged"},
		{"map is a list", files(t, `{"weight_map":["a"]}`, two), "index.json: the file is damaged"},
		{"no file", files(t, weightMap("a", "3.safetensors"), two), "lists a file that cannot be read"},
		{"out of the folder", files(t, weightMap("a", "../1.safetensors"), two), `names "../1.safetensors", which is not`},
		{"absolute", files(t, weightMap("a", "/etc/x.safetensors"), two), "is not a safetensors file in the same folder"},
		{"below", files(t, weightMap("a", "x/1.safetensors"), two), "is not a safetensors file"},
		{"backslash", files(t, weightMap("a", `..\1.safetensors`), two), "is not a safetensors file"},
		{"drive", files(t, weightMap("a", `c:1.safetensors`), two), "is not a safetensors file"},
		{"another kind", files(t, weightMap("a", "model.bin"), two), "is not a safetensors file"},
		{"no name", files(t, weightMap("a", ""), two), "is not a safetensors file"},
		{"many files", files(t, weightMap(many...), two), "more than 1024 files"},
		{"wrong place", files(t, weightMap("a", "1.safetensors", "b", "1.safetensors"), two), `places tensor "b" in 1.safetensors, which does not have it`},
		{"swapped", files(t, weightMap("a", "2.safetensors", "b", "1.safetensors"), two), `places tensor "a" in 2.safetensors`},
		{"in two files", files(t, weightMap("a", "1.safetensors", "b", "2.safetensors"), map[string][]string{"1.safetensors": {"a", "b"}, "2.safetensors": {"b"}}), `tensor "b" stands in 1.safetensors and in 2.safetensors`},
		{"huge index", fstest.MapFS{Index: {Data: bytes.Repeat([]byte(" "), maxIndex+1)}}, "more than the limit"},
		{"damaged shard", fstest.MapFS{Index: {Data: []byte(weightMap("a", "1.safetensors"))}, "1.safetensors": {Data: []byte("x")}}, "1.safetensors: safetensors: at byte 1"},
		{"damaged file", fstest.MapFS{Single: {Data: []byte("x")}}, "model.safetensors: safetensors: at byte 1"},
	} {
		if f, err := OpenFS(c.fsys); err == nil || f != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := OpenDir(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	// One file wins over an index, and a tensor that no index lists is there.
	fsys := files(t, weightMap("a", "1.safetensors"), map[string][]string{"1.safetensors": {"a", "more"}})
	f, err := OpenFS(fsys)
	if err != nil || !slices.Equal(f.Names(), []string{"a", "more"}) {
		t.Errorf("%v", err)
	}
	fsys[Single] = files(t, "", map[string][]string{Single: {"only"}})[Single]
	if f, err = OpenFS(fsys); err != nil || !slices.Equal(f.Names(), []string{"only"}) {
		t.Errorf("%v", err)
	}
}
