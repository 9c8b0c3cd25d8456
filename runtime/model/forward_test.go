package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
)

var loadTiny = sync.OnceValues(func() (*model.Model, error) { return tiny.Load("tiny-37k") })

func small(t testing.TB) *model.Model {
	t.Helper()
	m, err := loadTiny()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func randomIDs(r *rand.Rand, m *model.Model, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(m.Config.Vocab))
	}
	return ids
}

// table names the blocks of a sequence of n positions, from one id on.
func table(from, n int) []int32 {
	ids := make([]int32, (n+model.BlockLen-1)/model.BlockLen)
	for i := range ids {
		ids[i] = int32(from + i)
	}
	return ids
}

// given is what a row gives.
type given struct {
	logits, hidden []float32
	signals        kernels.Signals
}

// all wants everything of a row.
func all(r model.Row) model.Row {
	r.Logits, r.Hidden, r.Signals = true, true, true
	return r
}

// take copies what row i of a step gave.
func take(t testing.TB, ws *model.Workspace, i int) given {
	t.Helper()
	s, err := ws.Signals(i)
	if err != nil {
		t.Fatal(err)
	}
	g := given{slices.Clone(ws.Logits(i)), slices.Clone(ws.Hidden(i)), *s}
	g.signals.TopK = slices.Clone(s.TopK)
	return g
}

// compare holds what row i gave against g: the same bits of what was wanted, and
// nothing else.
func (g *given) compare(ws *model.Workspace, i int, row *model.Row) error {
	for _, c := range []struct {
		what      string
		wanted    bool
		got, want []float32
	}{{"logits", row.Logits, ws.Logits(i), g.logits}, {"hidden state", row.Hidden, ws.Hidden(i), g.hidden}} {
		switch {
		case !c.wanted && c.got != nil:
			return fmt.Errorf("row %d: its %s was not wanted", i, c.what)
		case c.wanted && !sameBits(c.got, c.want):
			return fmt.Errorf("row %d: its %s differs from that of one token at a time", i, c.what)
		}
	}
	s, err := ws.Signals(i)
	switch {
	case err != nil:
		return err
	case (s != nil) != row.Signals:
		return fmt.Errorf("row %d: wants signals: %v, has them: %v", i, row.Signals, s != nil)
	case s != nil && !reflect.DeepEqual(*s, g.signals):
		return fmt.Errorf("row %d: signals %+v, alone %+v", i, *s, g.signals)
	}
	return nil
}

// alone computes what every token gives, one token per step, in a pool of its
// own.
func alone(t testing.TB, m *model.Model, ids []int32) []given {
	t.Helper()
	var ws model.Workspace
	blocks := table(0, len(ids))
	kv := m.NewPool(len(blocks))
	var out []given
	for i := range ids {
		feed(t, m, &ws, kv, all(model.Row{Blocks: blocks, Start: i, Tokens: ids[i : i+1]}))
		out = append(out, take(t, &ws, 0))
	}
	if err := kv.Close(); err != nil {
		t.Error(err)
	}
	return out
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// Signals are those of the logits: what kernels.Measure says of them.
func TestForwardSignals(t *testing.T) {
	m := small(t)
	for i, g := range alone(t, m, randomIDs(rand.New(rand.NewPCG(6, 6)), m, 30)) {
		var want kernels.Signals
		if err := kernels.Measure(&want, g.logits); err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]float32{{g.signals.Entropy, want.Entropy}, {g.signals.LogSumExp, want.LogSumExp}, {g.signals.Top1, want.Top1}, {g.signals.Top2, want.Top2}} {
			if d := math.Abs(float64(c[0] - c[1])); !(d <= 1e-6*max(1, math.Abs(float64(c[1])))) {
				t.Errorf("position %d: %+v, want %+v", i, g.signals, want)
			}
		}
		for k, w := range want.TopK {
			if g.signals.TopK[k].ID != w.ID {
				t.Errorf("position %d: the most likely are %v, want %v", i, g.signals.TopK, want.TopK)
			}
		}
	}
}

// Logits that are no numbers are an error of the signals (case B9), of the row
// that asks for them; the step itself has been made.
func TestForwardBadLogits(t *testing.T) {
	ts := tensors(odd, 1)
	head := ts["lm_head.weight"]
	head.data[7*odd.Hidden+3] = float32(math.NaN())
	m, err := model.Load(folder(t, odd, ts), "odd")
	if err != nil {
		t.Fatal(err)
	}
	var ws model.Workspace
	rows := []model.Row{
		{Blocks: []int32{0}, Tokens: []int32{3, 4}, Signals: true},
		{Blocks: []int32{1}, Tokens: []int32{3, 4}, Logits: true, Hidden: true},
	}
	feed(t, m, &ws, m.NewPool(2), rows...)
	if _, err := ws.Signals(0); err == nil || !strings.Contains(err.Error(), "logit 7 is NaN") {
		t.Errorf("signals of NaN: %v", err)
	}
	if s, err := ws.Signals(1); s != nil || err != nil {
		t.Errorf("a row that wants no signals has %v, %v", s, err)
	}
	if l := ws.Logits(1); l[7] == l[7] || l[6] != l[6] || ws.Hidden(1)[0] != ws.Hidden(1)[0] {
		t.Error("a NaN is hidden, or has spread")
	}
	for _, i := range []int{-1, 2} {
		if s, err := ws.Signals(i); s != nil || err != nil || ws.Logits(i) != nil || ws.Hidden(i) != nil {
			t.Errorf("row %d, which the step does not have, has results", i)
		}
	}
}

// Pieces of any size give the same bits beyond the first 256 positions too, where
// attention is put together from splits.
func TestForwardLong(t *testing.T) {
	m := small(t)
	ids := randomIDs(rand.New(rand.NewPCG(7, 7)), m, 512)
	want := alone(t, m, ids)
	cores := team.New(2)
	defer cores.Close()
	ws := model.Workspace{Seat: cores.Seat()}
	for _, size := range []int{512, 300, 131, 16} {
		kv := m.NewPool(32)
		for at := 0; at < len(ids); at += size {
			end := min(at+size, len(ids))
			row := all(model.Row{Blocks: table(0, len(ids)), Start: at, Tokens: ids[at:end]})
			feed(t, m, &ws, kv, row)
			if err := want[end-1].compare(&ws, 0, &row); err != nil {
				t.Errorf("pieces of %d, position %d: %v", size, end-1, err)
			}
		}
	}
}

// Two goroutines may use one model at the same time.
func TestForwardConcurrent(t *testing.T) {
	m := small(t)
	ids := randomIDs(rand.New(rand.NewPCG(2, 2)), m, 40)
	want := alone(t, m, ids)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var ws model.Workspace
			kv := m.NewPool(3)
			for i := range ids {
				row := all(model.Row{Blocks: []int32{2, 0, 1}, Start: i, Tokens: ids[i : i+1]})
				if err := m.Forward(&ws, kv, []model.Row{row}); err != nil {
					t.Error(err)
					return
				}
				if err := want[i].compare(&ws, 0, &row); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A runner's steady state allocates nothing.
func TestForwardAllocatesNothing(t *testing.T) {
	m := small(t)
	var ws model.Workspace
	kv := m.NewPool(16)
	rows := make([]model.Row, 4)
	for i := range rows {
		rows[i] = model.Row{Blocks: table(4*i, 60), Tokens: make([]int32, 60), Logits: i != 1, Hidden: i == 2, Signals: i != 3}
	}
	run := func() {
		if err := m.Forward(&ws, kv, rows); err != nil {
			t.Fatal(err)
		}
	}
	run()
	for i := range rows {
		rows[i].Start, rows[i].Tokens = 50, rows[i].Tokens[:1+i]
	}
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
