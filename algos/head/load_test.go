package head_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/kernels"
	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
)

// stored is a file of tensors and its manifest, to be written as they are.
type stored struct {
	manifest any
	tensors  []tensor.Source
}

// floats is a tensor of 32-bit floats; its bytes are as long as the values are.
func floats(name string, shape []int, v []float32) tensor.Source {
	return tensor.Source{Name: name, Type: tensor.F32, Shape: shape, Write: func(w io.Writer) error {
		var b []byte
		for _, x := range v {
			u := math.Float32bits(x)
			b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
		}
		_, err := w.Write(b)
		return err
	}}
}

// of is a head of a spec as it is stored.
func of(s head.Spec, w weights) *stored {
	m := manifest(s)
	out := &stored{manifest: m}
	for _, t := range s.Tensors() {
		out.tensors = append(out.tensors, floats(t.Name, t.Shape, w[t.Name]))
	}
	return out
}

func (s *stored) write(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	b, ok := s.manifest.(string)
	if !ok {
		j, err := json.Marshal(s.manifest)
		if err != nil {
			t.Fatal(err)
		}
		b = string(j)
	}
	if err := os.WriteFile(path+".json", []byte(b), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := safetensors.Write(f, nil, s.tensors); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is saved is loaded again: weights, hash, and all that the manifest says.
func TestSaveAndLoad(t *testing.T) {
	for i, s := range specs {
		dir := t.TempDir()
		m := manifest(s)
		m.Models = map[string]string{"small": strings.Repeat("1", 64)}
		m.Data, m.Threshold, m.Share, m.Seeds = "story, 100 requests", 0.25, 0.1, []head.Seed{{For: "train", Seed: 7}}
		w := made(&s, uint64(i))
		h, err := head.New(m, w)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Save(filepath.Join(dir, "mine")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"mine", "mine.json", "mine.safetensors"} {
			got, err := head.Load(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() != h.Hash() || got.Name() != "mine" || got.Manifest().Threshold != 0.25 || got.Manifest().Seeds[0].Seed != 7 || got.Manifest().Models["small"] != m.Models["small"] {
				t.Errorf("%s: %+v", path, got.Manifest())
			}
			in := input(&s, rand.New(rand.NewPCG(1, 1)))
			a, _ := h.Logit(&head.Workspace{}, in)
			if b, err := got.Logit(&head.Workspace{}, in); err != nil || a != b {
				t.Errorf("%s %d: %g loaded, %g before (%v)", s.Kind, i, b, a, err)
			}
		}
		entries, _ := os.ReadDir(dir)
		if len(entries) != 2 {
			t.Errorf("%d files were left", len(entries))
		}
	}
}

// Shapes of published files: Co-LLM's row as [h] or [1, h], without a bias; CITER
// with the counter of its BatchNorm; half precision.
func TestForeignFiles(t *testing.T) {
	s := head.Spec{Kind: "linear", Features: []string{"hidden"}, Hidden: 6}
	w := made(&s, 1)
	in := input(&s, rand.New(rand.NewPCG(4, 4)))
	delete(w, "bias")
	for _, shape := range [][]int{{6}, {1, 6}} {
		f := &stored{manifest: manifest(s), tensors: []tensor.Source{floats("weight", shape, w["weight"])}}
		h, err := head.Load(f.write(t, "h"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Logit(&head.Workspace{}, in); err != nil || math.Abs(got-w.logit(&s, in)) > 1e-6 || !h.Unproven() {
			t.Errorf("%v: %g, want %g (%v)", shape, got, w.logit(&s, in), err)
		}
	}
	c := head.Spec{Kind: "citer", Features: []string{"hidden"}, Hidden: 6}
	f := of(c, made(&c, 2))
	f.tensors = append(f.tensors, tensor.Source{Name: "mlp.1.num_batches_tracked", Type: tensor.I64, Write: func(w io.Writer) error {
		_, err := w.Write(make([]byte, 8))
		return err
	}})
	if _, err := head.Load(f.write(t, "h")); err != nil {
		t.Error(err)
	}
	half := &stored{manifest: manifest(s), tensors: []tensor.Source{{Name: "weight", Type: tensor.BF16, Shape: []int{1, 6}, Write: func(out io.Writer) error {
		var b []byte
		for _, x := range w["weight"] {
			u := kernels.ToBF16(x)
			b = append(b, byte(u), byte(u>>8))
		}
		_, err := out.Write(b)
		return err
	}}}}
	h, err := head.Load(half.write(t, "h"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := h.Logit(&head.Workspace{}, in); math.Abs(got-w.logit(&s, in)) > 0.05 {
		t.Errorf("in bf16: %g, want about %g", got, w.logit(&s, in))
	}
}

// Damaged and hostile files are errors that name the cause.
func TestDamagedFiles(t *testing.T) {
	s := head.Spec{Kind: "mlp", Features: []string{"hidden"}, Hidden: 4, Widths: []int{3}}
	hash := strings.Repeat("5", 64)
	for want, change := range map[string]func(f *stored){
		"the tensor layers.0.weight has the shape [3 4], the manifest's spec makes it [20000 20000]": func(f *stored) {
			m := manifest(s)
			m.Spec.Hidden, m.Spec.Widths = 20000, []int{20000} // 1.6 GB, for which no memory is taken
			f.manifest = m
		},
		"at most 536870912 are supported": func(f *stored) {
			m := manifest(s)
			m.Spec.Widths = []int{65536, 65536, 65536}
			f.manifest = m
		},
		"the tensor layers.1.weight holds a value that is no number": func(f *stored) {
			f.tensors[2] = floats("layers.1.weight", []int{1, 3}, []float32{1, float32(math.NaN()), 2})
		},
		"the tensor layers.1.bias is missing": func(f *stored) { f.tensors = f.tensors[:3] },
		`the tensor "layers.2.bias" is none of a head of kind mlp; did you mean`: func(f *stored) {
			f.tensors = append(f.tensors, floats("layers.2.bias", []int{1}, []float32{1}))
		},
		"token_embeddings.weight is the model's own table": func(f *stored) {
			f.tensors = append(f.tensors, floats("token_embeddings.weight", []int{1}, []float32{1}))
		},
		"heads are stored in F32, F16 or BF16": func(f *stored) {
			f.tensors[3] = tensor.Source{Name: "layers.1.bias", Type: tensor.I32, Shape: []int{1}, Write: func(w io.Writer) error {
				_, err := w.Write(make([]byte, 4))
				return err
			}}
		},
		"it names 555555555555, the file has": func(f *stored) {
			m := manifest(s)
			m.Hash = hash
			f.manifest = m
		},
		`unknown field "treshold"`:        func(f *stored) { f.manifest = `{"name":"h","treshold":0.5}` },
		"something stands behind":         func(f *stored) { f.manifest = toJSON(manifest(s)) + "{}" },
		"a head has the name of its file": func(f *stored) { m := manifest(s); m.Name = "other"; f.manifest = m },
		"models is missing":               func(f *stored) { m := manifest(s); m.Models = nil; f.manifest = m },
		"is no hash of a model": func(f *stored) {
			m := manifest(s)
			m.Models = map[string]string{"small": "any"}
			f.manifest = m
		},
		"the meaning":              func(f *stored) { m := manifest(s); m.Meaning = "maybe"; f.manifest = m },
		"held out":                 func(f *stored) { m := manifest(s); m.HeldOut = -0.1; f.manifest = m },
		"is no label":              func(f *stored) { m := manifest(s); m.Label = "a\nb"; f.manifest = m },
		"the threshold":            func(f *stored) { m := manifest(s); m.Threshold = 1.5; f.manifest = m },
		"there is no kind":         func(f *stored) { m := manifest(s); m.Spec.Kind = "lstm"; f.manifest = m },
		"there is no feature":      func(f *stored) { m := manifest(s); m.Spec.Features = []string{"attention"}; f.manifest = m },
		"stands there twice":       func(f *stored) { m := manifest(s); m.Spec.Features = []string{"hidden", "hidden"}; f.manifest = m },
		"needs a number of logits": func(f *stored) { m := manifest(s); m.Spec.Features = []string{"logits:0"}; f.manifest = m },
	} {
		f := of(s, made(&s, 3))
		change(f)
		if _, err := head.Load(f.write(t, "h")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// A file of torch.save is not read: the error says how to convert it.
func TestPicklesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "router.pt")
	if err := os.WriteFile(path, []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := head.NewLibrary(dir, head.Options{})
	_, err := lib.Get("router")
	for _, err := range []error{err, loadError(path)} {
		if err == nil || !strings.Contains(err.Error(), "convert it to safetensors") {
			t.Error(err)
		}
	}
}

func loadError(path string) error {
	_, err := head.Load(path)
	return err
}

// A head held in another format than it was stored in is not saved.
func TestSaveOfANarrowHead(t *testing.T) {
	s := specs[2]
	h, err := head.NewWith(manifest(s), made(&s, 1), head.Options{Weights: matmul.Q8})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Save(filepath.Join(t.TempDir(), "h")); err == nil || !strings.Contains(err.Error(), "held in q8") {
		t.Error(err)
	}
}

// A manifest that is read is one that Check takes, and writing it loses nothing.
func FuzzManifest(f *testing.F) {
	for _, s := range specs {
		m := manifest(s)
		m.Models, m.Seeds = map[string]string{"small": strings.Repeat("a", 64)}, []head.Seed{{For: "init", Seed: 1}}
		f.Add(toJSON(m))
	}
	f.Add(`{"name":"h","spec":{"kind":"mlp","features":["logits:4096"],"hidden":65536,"widths":[65536,65536]},"meaning":"small"}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := head.ParseManifest([]byte(text))
		if err != nil {
			return
		}
		if m.Spec.Params() > 1<<29 || m.Spec.Inputs() < 1 {
			t.Fatalf("%+v", m.Spec)
		}
		for _, x := range m.Spec.Tensors() {
			if x.Len() < 1 || x.Len() > 1<<30 {
				t.Fatalf("%s %v", x.Name, x.Shape)
			}
		}
		again, err := head.ParseManifest([]byte(toJSON(m)))
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", m) {
			t.Fatalf("%+v\n%+v\n%v", m, again, err)
		}
	})
}
