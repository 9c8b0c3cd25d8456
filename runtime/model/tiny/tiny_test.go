package tiny_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
)

// The sizes of the model card.
func TestFamily(t *testing.T) {
	want := map[string]int{"tiny-37k": 36800, "tiny-114k": 113536, "tiny-842k": 842112, "tiny-3.7m": 3710944, "mix-114k": 113536, "mix-842k": 842112}
	if len(tiny.Names()) != len(want) {
		t.Fatalf("names %q", tiny.Names())
	}
	last, hash, family := 0, load(t, "tiny-37k").Tokenizer.Hash(), ""
	for _, name := range tiny.Names() {
		m := load(t, name)
		if f, _, _ := strings.Cut(name, "-"); f != family {
			family, last = f, 0
		}
		if m.Params() != want[name] || m.Params() <= last {
			t.Errorf("%s has %d weights, want %d, more than %d", name, m.Params(), want[name], last)
		}
		last = m.Params()
		if m.Name != name || m.Tokenizer.Hash() != hash || m.Config.Vocab != 424 {
			t.Errorf("%s: name %q, %d rows, tokenizer %s", name, m.Name, m.Config.Vocab, m.Tokenizer.Hash())
		}
		if !slices.Equal(m.EOS(), []int32{419}) || m.Generation != (model.Generation{MaxNewTokens: 256}) {
			t.Errorf("%s: EOS %v, %+v", name, m.EOS(), m.Generation)
		}
		b, err := os.ReadFile(filepath.Join(name, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); m.Hash() != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: Hash %s", name, m.Hash())
		}
	}
	names := tiny.Names()
	names[0] = "changed"
	if tiny.Names()[0] != "tiny-37k" {
		t.Error("Names gives its own list away")
	}
}

func TestUnknownName(t *testing.T) {
	for _, name := range []string{"", "tiny-1b", "tokenizer", "../tiny/tiny-37k"} {
		_, err := tiny.Load(name)
		_, err2 := tiny.Open(name)
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), strings.Join(tiny.Names(), ", ")) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// The bits of the logits are the same on every machine and on every level of
// the kernels. A change of a kernel's order of summation changes these sums, and
// with them every recorded session that is replayed bit by bit.
func TestLogitBits(t *testing.T) {
	for name, want := range map[string]string{
		"tiny-37k":  "db2b4236c028e49ecf7540c7e90e545744384e6894be0995339df2850561ef94",
		"tiny-842k": "9eaf4a5b4c793fbc458026b82c7cb9638738981b3646ab989b7ce3902701468a",
	} {
		for level := cpu.Go; level <= cpu.Best(); level++ {
			if got := logitSum(t, name, level); got != want {
				t.Errorf("%s on level %v: the logits have the sum %s, want %s", name, level, got, want)
			}
		}
	}
}

// logitSum is the sum of the logits of 60 tokens fed one by one.
func logitSum(t *testing.T, name string, level cpu.Level) string {
	t.Helper()
	defer cpu.Force(level)()
	m := load(t, name)
	var ws model.Workspace
	kv := m.NewPool(4)
	h := sha256.New()
	for i, id := range prompt(60) {
		step(t, m, &ws, kv, model.Row{Blocks: []int32{2, 0, 3, 1}, Start: i, Tokens: []int32{id}, Logits: true})
		for _, l := range ws.Logits(0) {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(l)))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The family as checkpoints: what the program says about them without loading.
func TestOpen(t *testing.T) {
	for _, name := range tiny.Names() {
		c, err := tiny.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Describe()
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, name)
		if d.Name != name || d.Config != m.Config || d.Params != int64(m.Params()) || d.Vocabulary != m.Tokenizer.Hash() || !d.Template {
			t.Errorf("%s: %+v", name, d)
		}
		if d.Need.Weights != m.Bytes() || d.Need.KVToken != int64(m.KVBytes()) || d.Need.KV.String() != m.KVFormat() || m.KVFormat() != "f32" || m.Format() != "f16" {
			t.Errorf("%s needs %+v, has %d bytes of %s, KV %d of %s", name, d.Need, m.Bytes(), m.Format(), m.KVBytes(), m.KVFormat())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := fs.Stat(tiny.Tokenizer(), "tokenizer_config.json"); err != nil {
		t.Error(err)
	}
}

// TestAccuracy: all 300 answers against the count of right ones in
// summary.json. Margins are above rounding for all but a few answers, so the
// counts may differ by two.
func TestAccuracy(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(reference, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var summary map[string]struct{ Correct int }
	if err := json.Unmarshal(b, &summary); err != nil {
		t.Fatal(err)
	}
	tasks := lines[task](t, "tasks.jsonl")
	for _, name := range accuracyModels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := load(t, name)
			right := 0
			for _, p := range tasks {
				if answer(m, write(t, m, p.Prompt)) == p.Answer {
					right++
				}
			}
			if want := summary[name].Correct; want == 0 || max(right-want, want-right) > 2 {
				t.Errorf("%d of %d answers are right, the reference has %d", right, len(tasks), want)
			}
			t.Logf("%d of %d right", right, len(tasks))
		})
	}
}
