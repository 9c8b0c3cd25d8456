package tiny

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tokenrouter/runtime/model"
)

//go:embed tiny-37k tiny-114k tiny-842k tiny-3.7m tokenizer
var files embed.FS

var names = []string{"tiny-37k", "tiny-114k", "tiny-842k", "tiny-3.7m"}

// Names lists the family from small to large.
func Names() []string { return slices.Clone(names) }

// Load loads one of the family.
func Load(name string) (*model.Model, error) {
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("there is no embedded model %q: choose one of %s", name, strings.Join(names, ", "))
	}
	return model.Load(folder(name), name)
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
