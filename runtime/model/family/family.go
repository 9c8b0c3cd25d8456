package family

import (
	"fmt"
	"strings"
)

// family is the facts of one architecture.
type family struct {
	name         string // in GGUF's general.architecture, and here
	architecture string // in config.json
	headDim      int    // where the file says nothing; 0: Hidden / Heads
	qkNorm       bool   // RMS norm over each head's query and key
	qkvBias      bool   // queries, keys and values have a bias, whatever the file says
	// paired: GGUF files hold the rows of each query and key head in the order
	// of interleaved rotation (0, half, 1, half+1, ...), not by halves.
	paired bool
}

var families = []*family{&qwen3, &qwen2, &llama}

// Names lists the supported families.
func Names() []string {
	var out []string
	for _, f := range families {
		out = append(out, f.name)
	}
	return out
}

// find looks a family up by the name that one kind of file has for it.
func find(where, name string, key func(*family) string) (*family, error) {
	var known []string
	for _, f := range families {
		if key(f) == name {
			return f, nil
		}
		known = append(known, key(f))
	}
	return nil, fmt.Errorf("%s: the architecture %.80q is not supported: choose a model of %s", where, name, strings.Join(known, ", "))
}
