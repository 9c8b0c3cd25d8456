package checkpoint_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/kernels/vec"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/family"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tensor"
)

// One model in three forms: what they say about it is the same.
func TestForms(t *testing.T) {
	for _, name := range family.Names() {
		t.Run(name, func(t *testing.T) {
			s := shape(name)
			one := synthesised(t, s, "one", synth.Options{Format: "bf16", Seed: 1})
			many := synthesised(t, s, "many", synth.Options{Format: "f16", Seed: 1, Shards: 3})
			file := synthesised(t, s, "file.gguf", synth.Options{Format: "q8_0", Seed: 1})
			if one.Kind != checkpoint.Safetensors || file.Kind != checkpoint.GGUF || one.Name != "one" || file.Name != "file" {
				t.Errorf("%s %s, %s %s", one.Kind, one.Name, file.Kind, file.Name)
			}
			want := one.Config
			if want.Family != name || want.Layers != 3 || want.FFN != 160 || want.Tied != s.Tied || want.QKNorm != (name == "qwen3") || want.QKVBias != (name == "qwen2") {
				t.Errorf("the shape is %+v", want)
			}
			angles, scale := one.Angles()
			for _, c := range []*checkpoint.Checkpoint{many, file} {
				got := c.Config
				if c == file { // the scaling of Llama 3 is a tensor there
					got.Rope = want.Rope
				}
				if got != want {
					t.Errorf("%s: %+v", c.Path, c.Config)
				}
				a, sc := c.Angles()
				for i := range angles {
					if math.Abs(a[i]-angles[i]) > 1e-6*angles[i] || sc != scale {
						t.Errorf("%s: angle %d is %v, want %v", c.Path, i, a[i], angles[i])
					}
				}
			}
			for _, c := range []*checkpoint.Checkpoint{one, many, file} {
				d, err := c.Describe()
				if err != nil {
					t.Fatal(err)
				}
				if d.Tokens != 423 || !d.Template || !slices.Equal(d.EOS, []int32{419}) && c != file {
					t.Errorf("%s: %+v", c.Path, d)
				}
				tok, err := one.Tokenizer()
				if err != nil {
					t.Fatal(err)
				}
				if d.Vocabulary != tok.Hash() {
					t.Errorf("%s: vocabulary %s, want %s", c.Path, d.Vocabulary, tok.Hash())
				}
				if d.RopeFactors != (c == file && s.Rope.Kind != "") {
					t.Errorf("%s: factors of rotary positions: %v", c.Path, d.RopeFactors)
				}
				if d.EOS[0] != 419 {
					t.Errorf("%s: EOS %v", c.Path, d.EOS)
				}
				if d.Params != s.Params() {
					t.Errorf("%s: %d weights, want %d", c.Path, d.Params, s.Params())
				}
				var tensors int
				var bytes int64
				for _, n := range d.Types {
					tensors, bytes = tensors+n.Tensors, bytes+n.Bytes
				}
				if tensors != len(want.Weights(family.GGUF)) || bytes >= d.Bytes || bytes < d.Bytes*4/5 {
					t.Errorf("%s: %d tensors of %d bytes in %d", c.Path, tensors, bytes, d.Bytes)
				}
				if d.Need.Weights < bytes || d.Need.KV != vec.F16 || len(d.Need.Notes) > 0 {
					t.Errorf("%s: %+v", c.Path, d.Need)
				}
				if at := d.Need.KVToken; at != 3*2*2*32*2 {
					t.Errorf("%s: a position takes %d bytes", c.Path, at)
				}
			}
		})
	}
}

func TestHash(t *testing.T) {
	c := synthesised(t, shape("qwen3"), "shards", synth.Options{Shards: 3})
	files, err := filepath.Glob(filepath.Join(c.Path, "*.safetensors"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	h := sha256.New()
	var bytes int64
	for _, f := range files { // Glob sorts
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
		bytes += int64(len(b))
	}
	got, err := c.Hash()
	if err != nil || got != hex.EncodeToString(h.Sum(nil)) || c.Bytes() != bytes {
		t.Errorf("%s, %v, %d bytes", got, err, c.Bytes())
	}
}

// The paths of one model that Open takes.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	shards := filepath.Join(dir, "shards")
	odd := filepath.Join(dir, "odd [1]")
	for path, o := range map[string]synth.Options{folder: {}, shards: {Shards: 2}, filepath.Join(odd, "m.gguf"): {}} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		o.Tokenizer = tokenizerFiles
		if err := synth.Write(path, shape("qwen3"), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		folder, filepath.Join(folder, "model.safetensors"), shards, filepath.Join(shards, "model.safetensors.index.json"),
		odd, filepath.Join(odd, "m.gguf"),
	} {
		c, err := checkpoint.Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	// One shard is not the model.
	first := filepath.Join(shards, "model-00001-of-00002.safetensors")
	if _, err := checkpoint.Open(first); err == nil || !strings.Contains(err.Error(), "there is no tensor") {
		t.Errorf("a shard alone: %v", err)
	}
	second := filepath.Join(odd, "n.gguf")
	if err := os.WriteFile(second, []byte("GGUF"), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	note := filepath.Join(empty, "note.txt")
	if err := os.WriteFile(note, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		odd:                          "the folder has 2 .gguf files: give one of them, such as m.gguf",
		empty:                        "neither config.json nor a .gguf file",
		note:                         "neither a .gguf nor a .safetensors file",
		filepath.Join(empty, "gone"): "there is no such file or folder",
		second:                       "at byte",
	} {
		if _, err := checkpoint.Open(path); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	found, err := checkpoint.List(dir, filepath.Join(dir, "none"))
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a folder that is not there: %v", err)
	}
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s %s %v %v", f.Name, f.Kind, f.Bytes > 0 && f.Config.Layers == 3, f.Err == nil))
	}
	want := []string{"folder safetensors true true", "m gguf true true", "n gguf false false", "shards safetensors true true"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}

// What a clone without Git LFS has in the place of large files is named as that.
func TestPointers(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	for _, name := range []string{"m.gguf", "model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "folder")
		if name == "m.gguf" {
			path = filepath.Join(dir, name)
		} else {
			if err := synth.Write(path, shape("qwen3"), synth.Options{Tokenizer: tokenizerFiles}); err != nil {
				t.Fatal(err)
			}
			name = filepath.Join("folder", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(pointer), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Open(path)
		if err == nil {
			_, err = c.Tokenizer()
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "git lfs pull") || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Links are followed, to models and to folders of them, but never in a circle; what
// a link leads to nowhere is listed if it would be a model.
func TestListFollowsLinks(t *testing.T) {
	models, other := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{
		"alias":     filepath.Join(other, "deep", "folder"),
		"more":      filepath.Join(other, "deep"),
		"again":     filepath.Join(other, "deep"),
		"up":        "..",
		"loop":      ".",
		"dead":      "nowhere",
		"dead.gguf": "nowhere.gguf",
		"m.gguf":    filepath.Join(other, "m.gguf"),
	} {
		if err := os.Symlink(to, filepath.Join(models, name)); err != nil {
			t.Skip("this system makes no links: ", err)
		}
	}
	for _, name := range []string{"deep/folder", "deep/n.gguf", "m.gguf"} {
		if err := synth.Write(filepath.Join(other, filepath.FromSlash(name)), shape("qwen3"), synth.Options{Tokenizer: tokenizerFiles}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(other, "deep", "back")); err != nil {
		t.Fatal(err)
	}
	found, err := checkpoint.List(models)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		rel, _ := filepath.Rel(models, f.Path)
		got = append(got, fmt.Sprintf("%s %s %v", f.Name, filepath.ToSlash(rel), f.Err == nil))
	}
	want := []string{
		"folder again/folder true", "n again/n.gguf true", "alias alias true", "dead dead.gguf false", "m m.gguf true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}

// Each bent file is refused with the name of what is wrong and a cure.
func TestHostileGGUF(t *testing.T) {
	if _, err := newDraft().open(t); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bend func(d *draft)
		want string
	}{
		"missing":       {func(d *draft) { delete(d.tensors, "blk.1.ffn_down.weight") }, `no tensor "blk.1.ffn_down.weight", which the metadata asks for`},
		"extra":         {func(d *draft) { d.add("blk.0.attn_q.bias2", tensor.F32, 128) }, `"blk.0.attn_q.bias2" does not belong to a model of family qwen3 with 2 layers`},
		"more layers":   {func(d *draft) { d.meta["qwen3.block_count"] = uint32(3) }, `no tensor "blk.2.attn_norm.weight"`},
		"fewer layers":  {func(d *draft) { d.meta["qwen3.block_count"] = uint32(1) }, `"blk.1.attn_k.weight" does not belong`},
		"wide":          {func(d *draft) { d.meta["qwen3.embedding_length"] = uint32(96) }, `"token_embd.weight" has shape [288 64], the metadata implies [288 96]`},
		"transposed":    {func(d *draft) { d.add("blk.0.attn_q.weight", tensor.Q8_0, hidden, 128) }, "has shape [64 128], the metadata implies [128 64]"},
		"flat":          {func(d *draft) { d.add("blk.0.attn_q.weight", tensor.Q8_0, 128*hidden) }, "has shape [8192]"},
		"no embedding":  {func(d *draft) { delete(d.tensors, "token_embd.weight") }, "no matrix token_embd.weight"},
		"type":          {func(d *draft) { d.add("blk.1.ffn_up.weight", tensor.MXFP4, 96, hidden) }, `"blk.1.ffn_up.weight" is of type MXFP4, which is not supported: choose`},
		"integer norms": {func(d *draft) { d.add("output_norm.weight", tensor.I32, hidden) }, "is of type I32"},
		"rope factors":  {func(d *draft) { d.add("rope_freqs.weight", tensor.F32, 16) }, `"rope_freqs.weight" has 0 at 0`},
		"rope shape":    {func(d *draft) { d.add("rope_freqs.weight", tensor.F32, 15) }, "has shape [15]"},
		"too many tokens": {func(d *draft) {
			d.meta["tokenizer.ggml.tokens"] = append(d.meta["tokenizer.ggml.tokens"].([]string), "zz")
		}, "the tokenizer has 289 tokens, the metadata only 288 rows"},
		"no tokens":       {func(d *draft) { delete(d.meta, "tokenizer.ggml.tokens") }, "tokenizer.ggml.tokens"},
		"end kind":        {func(d *draft) { d.meta["tokenizer.ggml.eos_token_id"] = "x" }, "tokenizer.ggml.eos_token_id"},
		"end range":       {func(d *draft) { d.meta["tokenizer.ggml.eot_token_id"] = int64(-7) }, "eot_token_id is -7"},
		"sampling":        {func(d *draft) { d.meta["general.sampling.top_p"] = float32(1.5) }, "general.sampling.*"},
		"sampling, NaN":   {func(d *draft) { d.meta["general.sampling.temp"] = float32(math.NaN()) }, "general.sampling.*"},
		"architecture":    {func(d *draft) { d.meta["general.architecture"] = "rwkv7" }, `"rwkv7" is not supported`},
		"huge vocabulary": {func(d *draft) { d.meta["qwen3.attention.head_count"] = uint32(1 << 31) }, "head_count is 2147483648"},
	} {
		d := newDraft()
		c.bend(d)
		if _, err := d.open(t); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "draft.gguf: ") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What only the tokenizer's tables tell comes with the tokenizer.
func TestHostileTokenizer(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(d *draft)
		want string
	}{
		"no types": {func(d *draft) { delete(d.meta, "tokenizer.ggml.token_type") }, "tokenizer.ggml.token_type"},
		"no model": {func(d *draft) { delete(d.meta, "tokenizer.ggml.model") }, "tokenizer.ggml.model"},
		"end":      {func(d *draft) { d.meta["tokenizer.ggml.eot_token_id"] = uint32(288) }, "eos_token_id 288 is outside the vocabulary of 288"},
	} {
		d := newDraft()
		c.bend(d)
		f, err := d.open(t)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := f.EOS(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// The end tokens of a GGUF file: those that it names, then the marks of the
// vocabulary.
func TestEnds(t *testing.T) {
	d := newDraft()
	d.meta["tokenizer.ggml.eot_token_id"] = uint32(270)
	d.meta["tokenizer.ggml.eom_token_id"] = uint32(math.MaxUint32) // none
	d.meta["general.sampling.temp"], d.meta["general.sampling.top_k"] = float32(0.5), int32(20)
	c, err := d.open(t)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := c.EOS(); err != nil || !slices.Equal(ids, []int32{258, 270, 256}) {
		t.Errorf("EOS %v, %v", ids, err)
	}
	if want := (checkpoint.Generation{DoSample: true, Temperature: 0.5, TopK: 20}); c.Generation != want {
		t.Errorf("%+v", c.Generation)
	}
}
