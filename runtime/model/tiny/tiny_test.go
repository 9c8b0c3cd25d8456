package tiny_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
)

// The sizes of the model card.
func TestFamily(t *testing.T) {
	want := map[string]int{"tiny-37k": 36800, "tiny-114k": 113536, "tiny-842k": 842112, "tiny-3.7m": 3710944}
	if len(tiny.Names()) != len(want) {
		t.Fatalf("names %q", tiny.Names())
	}
	last, hash := 0, load(t, "tiny-37k").Tokenizer.Hash()
	for _, name := range tiny.Names() {
		m := load(t, name)
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
		if err == nil || !strings.Contains(err.Error(), strings.Join(tiny.Names(), ", ")) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The bits of the logits are the same on every machine. A change of a kernel's
// order of summation changes these sums, and with them every recorded session
// that is replayed bit by bit.
func TestLogitBits(t *testing.T) {
	for name, want := range map[string]string{
		"tiny-37k":  "02f31d3c46355f3a6d8d0d650944e6b08b84ebb48a25983f562ae64a26dca3f0",
		"tiny-842k": "c3aaeb1e0e52f7c0efc25a41332afb1902c8207dc57bfa1396baec2efb87138e",
	} {
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
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%s: the logits have the sum %s, want %s", name, got, want)
		}
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
