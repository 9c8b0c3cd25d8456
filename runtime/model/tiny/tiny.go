package tiny

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/checkpoint"
)

//go:embed tiny-37k tiny-114k tiny-842k tiny-3.7m mix-114k mix-842k tokenizer
var files embed.FS

var names = []string{"tiny-37k", "tiny-114k", "tiny-842k", "tiny-3.7m", "mix-114k", "mix-842k"}

// Names lists the embedded models, each family from small to large: tiny, which
// knows the story alone, then mix, which knows all families of problems.
func Names() []string { return slices.Clone(names) }

// Load loads one of the models.
func Load(name string) (*model.Model, error) {
	if err := known(name); err != nil {
		return nil, err
	}
	return model.Load(folder(name), name)
}

// Open opens one of the models as a checkpoint, to look at it or to load it
// with options of one's own.
func Open(name string) (*checkpoint.Checkpoint, error) {
	if err := known(name); err != nil {
		return nil, err
	}
	return checkpoint.OpenFS(folder(name), name)
}

func known(name string) error {
	if !slices.Contains(names, name) {
		return fmt.Errorf("there is no embedded model %q: choose one of %s", name, strings.Join(names, ", "))
	}
	return nil
}

// Tokenizer is the folder of the tokenizer that all models share: tokenizer.json
// and tokenizer_config.json.
func Tokenizer() fs.FS {
	sub, err := fs.Sub(files, "tokenizer")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// folder is a model's files as Load of package model expects them: its own
// folder, with the tokenizer that all share.
type folder string

func (f folder) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "tokenizer") {
		return files.Open("tokenizer/" + name)
	}
	return files.Open(string(f) + "/" + name)
}
