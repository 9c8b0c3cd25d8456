package model

import (
	"fmt"
	"io/fs"

	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model/checkpoint"
)

// Options say how a model is loaded. The zero value is right for most.
type Options struct {
	// Format is what all matrices become in memory: f32, f16, bf16, q8 or q4.
	// Empty keeps them as they are stored; see Notes for what cannot be kept.
	Format string
	// KV is the format of keys and values, f16 or f32. Empty is f16, or f32 for
	// a model whose weights are all float32 and for one of the program's own.
	KV string
	// Threads work at the same time; 0 is one for each core.
	Threads int
	// Progress is called as weights are packed, with the bytes done and all of
	// them: one call at a time, from any goroutine, the last with done = total.
	Progress func(done, total int64)
}

// Open loads a model from disk: a .gguf file, or a folder in Hugging Face's
// layout; see checkpoint.Open. What does not fit is refused before memory is
// taken.
func Open(path string, o Options) (*Model, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	defer c.Close() // the mapping is only read
	return FromCheckpoint(c, o)
}

// Load loads a model from a folder in Hugging Face's layout that is part of the
// program.
func Load(fsys fs.FS, name string) (*Model, error) {
	c, err := checkpoint.OpenFS(fsys, name)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return FromCheckpoint(c, Options{})
}

// FromCheckpoint loads a checkpoint that stays open: the caller closes it.
func FromCheckpoint(c *checkpoint.Checkpoint, o Options) (*Model, error) {
	if o.Threads < 1 {
		o.Threads = team.Machine()
	}
	m, err := load(c, &o)
	if err != nil {
		if m != nil {
			m.Close()
		}
		return nil, fmt.Errorf("model %s: %w", c.Name, err)
	}
	return m, nil
}
