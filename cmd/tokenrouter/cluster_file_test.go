package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modelFile makes a file that can be found; what is in it does not matter here.
func modelFile(t *testing.T, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Roles decide the order, paths are relative to the file, and a name may stand for
// a path.
func TestClusterFile(t *testing.T) {
	dir := t.TempDir()
	small := modelFile(t, dir, "sub", "small-q8.gguf")
	got, err := parseCluster([]byte(`
[[model]]
role = "large"
path = "tiny-3.7m"
kv = "f16"

[[model]]
role = "middle"
path = "sub/small-q8.gguf"

[[model]] # the order of the tables is free
role = "small"
path = '`+small+`'
weights = "q4"
kv = "f32"
`), dir)
	want := []origin{
		{name: "small-q8", path: small, weights: "q4", kv: "f32"},
		{name: "small-q8", path: small},
		{name: "tiny-3.7m", kv: "f16"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(origin{})); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// What is wrong is said with the line that it is in.
func TestClusterFileErrors(t *testing.T) {
	dir := t.TempDir()
	modelFile(t, dir, "a.gguf")
	t.Chdir(dir)
	const pair = "[[model]]\nrole = \"small\"\npath = \"a.gguf\"\n[[model]]\nrole = \"large\"\npath = \"a.gguf\"\n"
	for name, c := range map[string]struct{ text, want string }{
		"syntax":        {"[[model]]\nrole = small\n", "line 2: "},
		"unknown field": {pair + "colour = \"red\"\n", "line 7: model.colour is not known; the file has [[model]] tables with role, path, weights and kv\n\tcolour = \"red\""},
		"unknown table": {pair + "[machine]\ncores = 3\n", "line 7: machine is not known"},
		"type":          {"[[model]]\nrole = 3\n", "line 2: this is of another type; the file has [[model]] tables with role, path, weights and kv, each a text in quotes\n\trole = 3"},
		"no tables":     {"model = 3\n", "line 1: this is of another type"},
		"table below":   {"[[model.role]]\nx = 1\n", "line 1: this is of another type"},
		"no model":      {"", "it has 0 [[model]] tables"},
		"one model":     {"[[model]]\nrole = \"small\"\npath = \"a.gguf\"\n", "it has 1 [[model]] tables"},
		"unknown role":  {strings.Replace(pair, "large", "huge", 1), "line 5: the role \"huge\" of model 2 is none of small, large, which 2 models have\n\trole = \"huge\""},
		"middle of two": {strings.Replace(pair, "large", "middle", 1), "line 5: the role \"middle\""},
		"no role":       {strings.Replace(pair, "role = \"large\"\n", "", 1), "line 4: the role \"\" of model 2"},
		"role twice":    {strings.Replace(pair, "large", "small", 1), "line 5: a second model of the role small"},
		"no path":       {strings.Replace(pair, "path = \"a.gguf\"\n", "", 1), "line 1: the small model has no path"},
		"weights":       {pair + "weights = \"q5\"\n", "line 7: weights = \"q5\" is none of f32, f16, bf16, q8, q4"},
		"kv":            {pair + "kv = \"q8\"\n", "line 7: kv = \"q8\" is none of f16, f32"},
		"missing file":  {strings.Replace(pair, "a.gguf", "b.gguf", 1), "line 3: there is no model b.gguf: it is none of the embedded tiny-37k, "},
		"inline":        {"model = [{role = \"small\", path = \"a.gguf\"}, {role = \"small\", path = \"a.gguf\"}]\n", "a second model of the role small"},
	} {
		if got, err := parseCluster([]byte(c.text), dir); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, got, err, c.want)
		}
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "none.toml"): "none.toml",
		dir:                             "is no TOML file",
		modelFile(t, dir, "empty.toml"): "empty.toml: it has 0",
	} {
		if _, err := readCluster(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
