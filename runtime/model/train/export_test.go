package train_test

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/train"
)

// TestExport: what is written opens as a checkpoint, and the engine gives every
// token of a sequence the loss that the trainer sees, but for the rounding of
// weights to half precision.
func TestExport(t *testing.T) {
	shape := train.Shape{Hidden: 32, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 48, Vocab: 424}
	tr, err := train.New(train.Default(shape))
	if err != nil {
		t.Fatal(err)
	}
	e := train.Example{IDs: make([]int32, 90), Learn: make([]bool, 90)}
	for i := range e.IDs {
		e.IDs[i] = int32(i * i * 31 % 417)
		e.Learn[i] = i > 0
	}
	for range 30 { // away from fresh weights
		if _, err := tr.Step(func() train.Example { return e }); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := tr.Export(dir, train.Tokens{BOS: 417, EOS: 419, Pad: 422}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := fs.ReadFile(tiny.Tokenizer(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := model.Load(os.DirFS(dir), "toy")
	if err != nil {
		t.Fatal(err)
	}
	if m.Params() != shape.Params() || m.EOS()[0] != 419 || m.Generation.MaxNewTokens != 256 {
		t.Errorf("%d weights, EOS %v, %+v", m.Params(), m.EOS(), m.Generation)
	}
	s, err := tr.Score([]train.Example{e})
	if err != nil {
		t.Fatal(err)
	}
	if got := engineLoss(t, m, e); math.Abs(got-s.Loss) > 2e-3*s.Loss {
		t.Errorf("the engine's loss is %v, the trainer's %v", got, s.Loss)
	}
}

// engineLoss is the mean cross-entropy of an example as the engine sees it.
func engineLoss(t *testing.T, m *model.Model, e train.Example) (loss float64) {
	t.Helper()
	var ws model.Workspace
	blocks := make([]int32, (len(e.IDs)+model.BlockLen-1)/model.BlockLen)
	for i := range blocks {
		blocks[i] = int32(i)
	}
	kv := m.NewPool(len(blocks))
	for i := range e.IDs[:e.Tokens()] {
		if err := m.Forward(&ws, kv, []model.Row{{Blocks: blocks, Start: i, Tokens: e.IDs[i : i+1], Logits: true}}); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		logits := ws.Logits(0)
		for _, l := range logits {
			sum += math.Exp(float64(l))
		}
		loss += (math.Log(sum) - float64(logits[e.IDs[i+1]])) / float64(e.Tokens())
	}
	return loss
}
