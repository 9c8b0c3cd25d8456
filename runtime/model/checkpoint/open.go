package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/gguf"
	"tokenrouter/runtime/model/safetensors"
	"tokenrouter/runtime/model/tensor"
	"tokenrouter/runtime/model/tokenizer"
)

// Open opens a model: a .gguf file, a folder in Hugging Face's layout, a folder
// with one .gguf file in it, or a .safetensors file or index in a folder.
func Open(path string) (*Checkpoint, error) {
	c, err := open(path)
	switch {
	case err == nil:
		return c, nil
	case strings.HasPrefix(err.Error(), path): // the reader of the file has named it
		return nil, fmt.Errorf("model %w", err)
	}
	return nil, fmt.Errorf("model %s: %w", path, err)
}

func open(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no such file or folder (%w): give a .gguf file, or a folder with config.json and model.safetensors", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	switch {
	case info.IsDir():
		return openDir(path)
	case strings.HasSuffix(name, ".gguf"):
		return openGGUF(path)
	case name == safetensors.Single || name == safetensors.Index:
		return openFolder(path, filepath.Dir(path), "")
	case strings.HasSuffix(name, ".safetensors"):
		return openFolder(path, filepath.Dir(path), name)
	}
	return nil, errors.New("this is neither a .gguf nor a .safetensors file: give one of these, or a folder with config.json and model.safetensors")
}

// openDir opens a folder by what lies in it.
func openDir(dir string) (*Checkpoint, error) {
	if !isMissing(os.DirFS(dir), "config.json") {
		return openFolder(dir, dir, "")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".gguf") {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 0:
		return nil, errors.New("the folder has neither config.json nor a .gguf file: give a folder in Hugging Face's layout, or a .gguf file")
	case 1:
		return openGGUF(filepath.Join(dir, found[0]))
	}
	return nil, fmt.Errorf("the folder has %d .gguf files: give one of them, such as %s", len(found), found[0])
}

// OpenFS opens a model in the root of a file system in memory, in Hugging
// Face's layout; name is the model's.
func OpenFS(fsys fs.FS, name string) (*Checkpoint, error) {
	c, err := openFS(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return c, nil
}

func openFS(fsys fs.FS, name string) (*Checkpoint, error) {
	c := &Checkpoint{Name: name, Kind: Safetensors}
	ids, err := c.readConfig(fsys)
	if err != nil {
		return nil, err
	}
	weights, err := safetensors.OpenFS(fsys)
	if err != nil {
		return nil, err
	}
	return c.finish(fsys, ids, weights, func(s safetensors.Shard) (io.ReadCloser, error) { return fsys.Open(s.Name) })
}

// openFolder opens a folder on disk, with the weight file of the given name or
// the one that the layout has.
func openFolder(path, dir, single string) (*Checkpoint, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Name: filepath.Base(abs), Path: path, Kind: Safetensors}
	fsys := os.DirFS(dir)
	ids, err := c.readConfig(fsys)
	if err != nil {
		return nil, err
	}
	var weights *safetensors.Folder
	if single == "" {
		weights, err = safetensors.OpenDir(dir)
	} else {
		weights, err = safetensors.OpenFile(filepath.Join(dir, single))
	}
	if err != nil {
		return nil, err
	}
	return c.finish(fsys, ids, weights, func(s safetensors.Shard) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, s.Name)) })
}

// readConfig reads config.json and generation_config.json; it returns the end
// tokens that they name, those of the second before those of the first.
func (c *Checkpoint) readConfig(fsys fs.FS) (family.IDs, error) {
	b, err := readSmall(fsys, "config.json")
	if err != nil {
		return nil, err
	}
	c.conv, c.source = family.HuggingFace, "config.json"
	var ids family.IDs
	if c.Config, ids, err = family.FromJSON(b); err != nil {
		return nil, err
	}
	own, err := c.readGeneration(fsys)
	if len(own) > 0 {
		ids = own
	}
	if err == nil && len(ids) == 0 {
		err = errors.New("neither generation_config.json nor config.json names an eos_token_id: answers would never end")
	}
	return ids, err
}

// finish takes over the weights and the tokenizer of a folder.
func (c *Checkpoint) finish(fsys fs.FS, ids family.IDs, weights *safetensors.Folder, read func(safetensors.Shard) (io.ReadCloser, error)) (*Checkpoint, error) {
	c.Weights = weights
	for _, s := range weights.Shards() {
		c.files = append(c.files, file{s.Name, int64(len(s.Data)), func() (io.ReadCloser, error) { return read(s) }})
	}
	c.ends = func(*tokenizer.Tokenizer) ([]int32, error) { return ids, nil }
	c.tokenizer = c.once(func() (*tokenizer.Tokenizer, error) { return readTokenizer(fsys) })
	err := tensor.Guard(c.check)
	if err == nil && isMissing(fsys, "tokenizer.json") {
		err = errors.New("there is no tokenizer.json beside config.json: fetch it too, the slow tokenizer's files are not enough")
	}
	if err == nil {
		for _, id := range ids {
			if id < 0 || int(id) >= c.Config.Vocab {
				err = fmt.Errorf("eos_token_id %d is outside the vocabulary of %d: the files do not belong together", id, c.Config.Vocab)
			}
		}
	}
	if err != nil {
		_ = weights.Close()
		return nil, err
	}
	return c, nil
}

// openGGUF opens a single file.
func openGGUF(path string) (*Checkpoint, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	var c *Checkpoint
	err = tensor.Guard(func() (err error) {
		c, err = fromGGUF(f, path)
		return err
	})
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return c, nil
}

func fromGGUF(f *gguf.File, path string) (*Checkpoint, error) {
	c := &Checkpoint{
		Name: strings.TrimSuffix(filepath.Base(path), ".gguf"), Path: path, Kind: GGUF,
		Weights: f, conv: family.GGUF, source: "the metadata",
	}
	c.files = []file{{filepath.Base(path), int64(len(f.Bytes())), func() (io.ReadCloser, error) { return os.Open(path) }}}
	var err error
	if c.Config, err = family.FromGGUF(f, f); err != nil {
		return nil, err
	}
	if err := c.sampling(f); err != nil {
		return nil, err
	}
	ids, err := endKeys(f)
	if err != nil {
		return nil, err
	}
	tokens, ok := f.Len("tokenizer.ggml.tokens")
	if !ok {
		return nil, f.Missing("tokenizer.ggml.tokens", "a list of strings")
	}
	if err := c.rows(tokens); err != nil { // before memory is taken for them
		return nil, err
	}
	c.ends = func(t *tokenizer.Tokenizer) ([]int32, error) { return withMarks(ids, t) }
	c.tokenizer = c.once(func() (*tokenizer.Tokenizer, error) { return ggufTokenizer(f) })
	return c, c.check()
}

// endMarks are tokens that end an answer or a turn of one, whatever the
// metadata say: files of chat models often name the end of a document only
// (llama.cpp reads them in the same way).
var endMarks = []string{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>"}

// withMarks adds the marks that the tokenizer has.
func withMarks(ids []int32, t *tokenizer.Tokenizer) ([]int32, error) {
	ids = slices.Clone(ids)
	for _, m := range endMarks {
		if id, ok := t.ID(m); ok && t.IsSpecial(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("gguf: there is no tokenizer.ggml.eos_token_id: answers would never end; convert the model again")
	}
	return ids, nil
}
