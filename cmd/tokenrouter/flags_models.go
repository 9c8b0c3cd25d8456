package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/kernels/team"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/workload"
	"tokenrouter/tui/frame"
)

// modelFlags say which models write, and how they are held in memory.
type modelFlags struct {
	Models  string `placeholder:"A,B[,C]" help:"Two or three models, small first: names (tokenrouter models lists them) or files and folders (default: tiny-37k,tiny-3.7m; mix-114k,mix-842k for a mixture and its families). Embedded: ${models}. With drawn tokens: roles or models of the cost profile (default: small,large)."`
	Small   string `placeholder:"MODEL" help:"The small model: a GGUF file, a folder with safetensors, or a name. With --large."`
	Middle  string `placeholder:"MODEL" help:"The one between, if there is one."`
	Large   string `placeholder:"MODEL" help:"The large model. With --small."`
	Cluster string `placeholder:"FILE.toml" help:"Models from a file: for each its role, path and formats."`

	WeightsFormat string `placeholder:"FORMAT" help:"Hold weights as f32, f16, bf16, q8 or q4 (default: as they are stored, or the nearest of these)."`
	KVFormat      string `name:"kv-format" placeholder:"FORMAT" help:"Hold keys and values as f16 or f32 (default: f16; f32 of the embedded models and of others in f32)."`
	Threads       int    `default:"0" placeholder:"N" help:"Threads that compute, of all models together; 0 = one for each CPU."`

	origins []origin // of the models above, once settled
	shelf   *shelf   // of loaded models, where several runs share them
}

// Formats that models can be held in.
var (
	weightsFormats = []string{"f32", "f16", "bf16", "q8", "q4"}
	kvFormats      = []string{"f16", "f32"}
)

// origin is where a model comes from, and how it is to be held.
type origin struct {
	name        string // as it is shown: that of the file, without its ending
	path        string // absolute, of a file or folder; "" of an embedded model
	weights, kv string // formats; "": as stored, and what goes with it
}

func (o *origin) embedded() bool { return o.path == "" }

// named says that models are given which cannot be names of a cost profile.
func (f *modelFlags) named() bool {
	return f.Small != "" || f.Middle != "" || f.Large != "" || f.Cluster != ""
}

// flag is the one that names them, for messages.
func (f *modelFlags) flag() string {
	switch {
	case f.Cluster != "":
		return "--cluster"
	case f.named():
		return "--small, --large"
	}
	return "--models"
}

// own says that a model from disk is among them. Errors are left to settleModels.
func (f *modelFlags) own() bool {
	o := f.origins
	if o == nil {
		o, _ = f.find()
	}
	return fromDisk(o)
}

func fromDisk(origins []origin) bool {
	return slices.ContainsFunc(origins, func(o origin) bool { return !o.embedded() })
}

// settleModels finds the models that the flags name.
func (f *modelFlags) settleModels() (err error) {
	if f.Threads < 0 || f.Threads > maxThreads {
		return fmt.Errorf("--threads %d is outside 0 to %d; 0 is one for each CPU", f.Threads, maxThreads)
	}
	if f.origins == nil {
		f.origins, err = f.find()
	}
	return err
}

// maxThreads bounds what can be asked for.
const maxThreads = 1024

// threads is how many compute.
func (f *modelFlags) threads() int {
	if f.Threads > 0 {
		return f.Threads
	}
	return team.Machine()
}

// find looks up every model.
func (f *modelFlags) find() ([]origin, error) {
	if f.WeightsFormat != "" && !slices.Contains(weightsFormats, f.WeightsFormat) {
		return nil, fmt.Errorf("--weights-format %q is none of %s", f.WeightsFormat, strings.Join(weightsFormats, ", "))
	}
	if f.KVFormat != "" && !slices.Contains(kvFormats, f.KVFormat) {
		return nil, fmt.Errorf("--kv-format %q is none of %s", f.KVFormat, strings.Join(kvFormats, ", "))
	}
	if f.Cluster != "" && (f.WeightsFormat != "" || f.KVFormat != "") {
		return nil, errors.New("--weights-format and --kv-format do not go with --cluster, whose file says it of each model")
	}
	out, err := f.lookUp()
	for i := range out {
		out[i].weights, out[i].kv = cmp.Or(f.WeightsFormat, out[i].weights), cmp.Or(f.KVFormat, out[i].kv)
	}
	return out, err
}

func (f *modelFlags) lookUp() ([]origin, error) {
	switch {
	case f.Cluster != "" && (f.Small != "" || f.Middle != "" || f.Large != ""):
		return nil, errors.New("--cluster names the models, and so do --small, --middle and --large; give one or the other")
	case f.Models != "" && f.named():
		return nil, fmt.Errorf("--models and %s both name the models; give one", f.flag())
	case f.Cluster != "":
		return readCluster(f.Cluster)
	case f.named() && (f.Small == "" || f.Large == ""):
		return nil, errors.New("--small and --large go together; --middle is for a third model between them")
	}
	names := []string{f.Small, f.Middle, f.Large}
	if f.Middle == "" {
		names = []string{f.Small, f.Large}
	}
	if !f.named() {
		names = splitNames(cmp.Or(f.Models, embeddedPair))
	}
	if err := twoOrThree(f.flag(), names, strings.Join(tiny.Names(), ", ")+", or files"); err != nil {
		return nil, err
	}
	var out []origin
	for _, name := range names {
		o, err := findModel(name, "")
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// embeddedPair are the models where none is named, mixedPair those for problems
// that the former have never seen.
const (
	embeddedPair = "tiny-37k,tiny-3.7m"
	mixedPair    = "mix-114k,mix-842k"
)

// settlePair names the models that know the problems of a workload, where nobody
// names any.
func (f *modelFlags) settlePair(problems string) {
	unseen := problems == workload.PresetMixture || slices.Contains(workload.Families()[1:], problems)
	if unseen && f.Models == "" && !f.named() {
		f.Models = mixedPair
	}
}

// offer is what an error about a model ends with: what works without any file.
const offer = "; the embedded pair needs no files: --models " + embeddedPair

// splitNames are the entries of a list.
func splitNames(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

func twoOrThree(flag string, names []string, of string) error {
	if len(names) < 2 || len(names) > 3 {
		return fmt.Errorf("%s %q is a list of %d; give two or three, small first (%s)", flag, strings.Join(names, ","), len(names), of)
	}
	return nil
}

// modelsVariable names folders with models, as PATH does with programs.
const modelsVariable = "TOKENROUTER_MODELS"

// modelFolders are where models are looked for by name.
func modelFolders() []string {
	out := []string{"models"}
	for _, dir := range filepath.SplitList(os.Getenv(modelsVariable)) {
		if dir != "" {
			out = append(out, dir)
		}
	}
	return out
}

// findModel finds a model that a person names: an embedded one, a file or folder,
// which may be relative to base, or the name of one in the folders of models.
func findModel(text, base string) (origin, error) {
	switch {
	case text == "":
		return origin{}, errors.New("a model has no name" + offer)
	case slices.Contains(tiny.Names(), text):
		return origin{name: text}, nil
	}
	at := text
	if !filepath.IsAbs(at) {
		at = filepath.Join(base, at)
	}
	_, err := os.Stat(at)
	if err == nil {
		return originAt(at)
	}
	if filepath.Base(text) == text {
		if o, err := findNamed(text); err != nil || !o.embedded() {
			return o, err
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		return origin{}, fmt.Errorf("the model %s cannot be read: %w", text, err)
	}
	return origin{}, fmt.Errorf("there is no model %s: it is none of the embedded %s, no file or folder %s, and nothing of that name is in %s%s",
		text, strings.Join(tiny.Names(), ", "), at, foldersText(), offer)
}

// findNamed finds a model by its name in the folders of models and below; there is
// none if the origin is empty.
func findNamed(name string) (origin, error) {
	found, _ := checkpoint.List(modelFolders()...) // folders need not be there
	var at []string
	for i := range found {
		if n := modelName(found[i].Path); n == name || n+".gguf" == name {
			at = append(at, found[i].Path)
		}
	}
	switch len(at) {
	case 0:
		return origin{}, nil
	case 1:
		return originAt(at[0])
	}
	return origin{}, fmt.Errorf("%d models are called %s: %s; give the path of one", len(at), name, strings.Join(at, ", "))
}

// foldersText says where models are looked for.
func foldersText() string {
	text := "./models"
	if v := os.Getenv(modelsVariable); v != "" {
		return text + " or $" + modelsVariable + " (" + v + ")"
	}
	return text + " (nor does $" + modelsVariable + " name a folder)"
}

func originAt(path string) (origin, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return origin{}, err
	}
	return origin{name: modelName(at), path: at}, nil
}

// modelName is that of a file without its ending, as it may be printed. Weights in
// safetensors are all called alike, so there it is that of the folder, and folders
// in Hugging Face's cache are called by a hash, so there it is that of the
// repository: models--Qwen--Qwen3-0.6B/snapshots/c1899de is Qwen3-0.6B.
func modelName(path string) string {
	for _, end := range []string{".safetensors", ".safetensors.index.json"} {
		if strings.HasSuffix(path, end) {
			path = filepath.Dir(path)
			break
		}
	}
	base := strings.TrimSuffix(filepath.Base(path), ".gguf")
	if up := filepath.Dir(path); filepath.Base(up) == "snapshots" {
		if repo, ok := strings.CutPrefix(filepath.Base(filepath.Dir(up)), "models--"); ok {
			base = repo
			if _, name, ok := strings.Cut(repo, "--"); ok { // behind the organisation
				base = name
			}
		}
	}
	return frame.Clean(base, false)
}

// roleOf names the role of model i of n.
func roleOf(i, n int) string { return event.Role(event.Peer(i), n) }
