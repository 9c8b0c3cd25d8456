package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A model is an embedded one, a file or folder, or the name of one in the folders
// of models; its own name is that of the file.
func TestFindModel(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(modelsVariable, filepath.Join(dir, "elsewhere"))
	here := modelFile(t, dir, "here.gguf")
	folder := filepath.Dir(modelFile(t, dir, "Qwen3-0.6B", "model.safetensors"))
	inModels := modelFile(t, dir, "models", "named-q8.gguf")
	other := modelFile(t, dir, "elsewhere", "deeper", "far.gguf")
	cache := filepath.Join(dir, "elsewhere", "models--Qwen--Qwen3-0.6B-Base", "snapshots", "c1899de289a04d12")
	modelFile(t, cache, "model.safetensors")
	modelFile(t, cache, "config.json")
	modelFile(t, dir, "elsewhere", "twice.gguf")
	modelFile(t, dir, "models", "twice.gguf")
	for text, want := range map[string]origin{
		"tiny-37k":                     {name: "tiny-37k"},
		"here.gguf":                    {name: "here", path: here},
		here:                           {name: "here", path: here},
		"Qwen3-0.6B":                   {name: "Qwen3-0.6B", path: folder},
		"./Qwen3-0.6B/":                {name: "Qwen3-0.6B", path: folder},
		"Qwen3-0.6B/model.safetensors": {name: "Qwen3-0.6B", path: filepath.Join(folder, "model.safetensors")},
		"named-q8":                     {name: "named-q8", path: inModels},
		"named-q8.gguf":                {name: "named-q8", path: inModels},
		"far":                          {name: "far", path: other},
		"Qwen3-0.6B-Base":              {name: "Qwen3-0.6B-Base", path: cache},
		cache:                          {name: "Qwen3-0.6B-Base", path: cache},
		filepath.Join("models", "..", "here.gguf"): {name: "here", path: here},
	} {
		got, err := findModel(text, "")
		if d := cmp.Diff(want, got, cmp.AllowUnexported(origin{})); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", text, err, d)
		}
	}
	if _, err := findModel("twice", ""); err == nil || !strings.Contains(err.Error(), "2 models are called twice: ") {
		t.Errorf("twice: %v", err)
	}
	// Case H8: what was looked for, and what works without any file.
	for _, text := range []string{"nothing", "nothing.gguf", filepath.Join(dir, "nothing"), "sub/nothing", ""} {
		_, err := findModel(text, "")
		if err == nil || !strings.Contains(err.Error(), text) || !strings.HasSuffix(err.Error(), "the embedded pair needs no files: --models tiny-37k,tiny-3.7m") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := findModel("nothing", ""); !strings.Contains(err.Error(), "elsewhere") || !strings.Contains(err.Error(), "./models") {
		t.Errorf("it does not say where it looked: %v", err)
	}
}

// The flags that name models, and what goes with what.
func TestModelFlags(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	a := modelFile(t, dir, "a.gguf")
	b := modelFile(t, dir, "b.gguf")
	for _, c := range []struct {
		args []string
		want []origin
	}{
		{nil, []origin{{name: "tiny-37k"}, {name: "tiny-3.7m"}}},
		{[]string{"--small=tiny-37k", "--large=tiny-114k"}, []origin{{name: "tiny-37k"}, {name: "tiny-114k"}}},
		{[]string{"--large=b.gguf", "--small=a.gguf", "--middle=tiny-114k"}, []origin{{name: "a", path: a}, {name: "tiny-114k"}, {name: "b", path: b}}},
		{[]string{"--models=a.gguf, b.gguf", "--weights-format=q4", "--kv-format=f32"}, []origin{{"a", a, "q4", "f32"}, {"b", b, "q4", "f32"}}},
	} {
		f := &parsed(t, &runCmd{}, append([]string{"--clock=live"}, c.args...)...).clusterFlags
		err := f.settle()
		if d := cmp.Diff(c.want, f.origins, cmp.AllowUnexported(origin{})); err != nil || d != "" {
			t.Errorf("%v: %v\n%s", c.args, err, d)
		}
	}
	for _, c := range []struct {
		args, want string
	}{
		{"--small=a.gguf", "--small and --large go together"},
		{"--middle=a.gguf", "--small and --large go together"},
		{"--small=a.gguf --large=b.gguf --models=tiny-37k,tiny-3.7m", "both name the models"},
		{"--cluster=x.toml --small=a.gguf", "--cluster names the models, and so do"},
		{"--cluster=x.toml", "x.toml"},
		{"--models=a.gguf", "give two or three, small first"},
		{"--models=a.gguf,b.gguf --weights-format=q5", "--weights-format \"q5\" is none of f32, f16, bf16, q8, q4"},
		{"--models=a.gguf,b.gguf --kv-format=q8", "--kv-format \"q8\" is none of f16, f32"},
		{"--cluster=x.toml --weights-format=q4", "do not go with --cluster"},
		{"--threads=-1", "--threads -1 is outside 0 to 1024"},
		{"--clock=emulated --small=a.gguf --large=b.gguf", "--clock emulated is for tokens that no model computes"},
		{"--clock=sim --tokens=drawn --small=a.gguf --large=b.gguf", "--small, --large does not go with --tokens drawn"},
		{"--clock=sim --kv-format=f16", "--kv-format does not go with --tokens drawn"},
	} {
		f := &parsed(t, &runCmd{}, append([]string{"--clock=live"}, strings.Fields(c.args)...)...).clusterFlags
		if err := f.settle(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

// What is not given depends on whether models are from disk. They write in virtual
// time too, where the embedded ones do only when they are asked for.
func TestSettleModelsFromDisk(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	modelFile(t, dir, "a.gguf")
	f := &parsed(t, &runCmd{}, "--small=a.gguf", "--large=a.gguf").clusterFlags
	for range 2 {
		if err := f.settle(); err != nil {
			t.Fatal(err)
		}
	}
	if f.Tokens != tokensModels || *f.BatchTokens != ownBudget || f.maxNew != ownMaxNew || f.KVTokens != nil || f.Router != "r2r" {
		t.Errorf("%+v", f)
	}
	pair := &parsed(t, &runCmd{}, "--small=tiny-37k", "--large=tiny-114k").clusterFlags
	if err := pair.settle(); err != nil {
		t.Fatal(err)
	}
	if pair.Tokens != tokensModels || *pair.BatchTokens != modelBudget || pair.maxNew != modelMaxNew {
		t.Errorf("embedded: %+v", pair)
	}
}

// Without a name the models are those that know the problems.
func TestModelsKnowTheProblems(t *testing.T) {
	for problems, want := range map[string]string{
		"light": "", "heavy": "", "multi-turn": "", "story": "",
		"mixture": mixedPair, "ledger": mixedPair, "count": mixedPair,
	} {
		f := modelFlags{}
		if f.settlePair(problems); f.Models != want {
			t.Errorf("%s: %q, want %q", problems, f.Models, want)
		}
		named, small := modelFlags{Models: "tiny-114k,tiny-3.7m"}, modelFlags{Small: "a", Large: "b"}
		named.settlePair(problems)
		small.settlePair(problems)
		if named.Models != "tiny-114k,tiny-3.7m" || small.Models != "" {
			t.Errorf("%s: models that are named are replaced: %q, %q", problems, named.Models, small.Models)
		}
	}
}
