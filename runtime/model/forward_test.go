package model_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

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

// alone computes the logits after every token, one token per step, in a pool of
// its own.
func alone(t testing.TB, m *model.Model, ids []int32) (logits, hidden [][]float32) {
	t.Helper()
	var ws model.Workspace
	blocks := table(0, len(ids))
	kv := m.NewPool(len(blocks))
	for i := range ids {
		if err := m.Forward(&ws, kv, []model.Row{{Blocks: blocks, Start: i, Tokens: ids[i : i+1], Logits: true, Hidden: true}}); err != nil {
			t.Fatal(err)
		}
		logits = append(logits, append([]float32(nil), ws.Logits(0)...))
		hidden = append(hidden, append([]float32(nil), ws.Hidden(0)...))
	}
	return logits, hidden
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

func TestForwardOracle(t *testing.T) {
	m, ts := loadOdd(t)
	ids := randomIDs(rand.New(rand.NewPCG(5, 5)), m, odd.MaxPos)
	wantLogits, wantHidden := oracle(odd, ts, ids)
	logits, hidden := alone(t, m, ids)
	for i := range ids {
		for _, c := range []struct {
			what string
			got  []float32
			want []float64
		}{{"logits", logits[i], wantLogits[i]}, {"hidden", hidden[i], wantHidden[i]}} {
			var diff, size float64
			for j, w := range c.want {
				diff += (float64(c.got[j]) - w) * (float64(c.got[j]) - w)
				size += w * w
			}
			if rel := math.Sqrt(diff / size); !(rel < 2e-5) {
				t.Fatalf("position %d: %s off by %g", i, c.what, rel)
			}
		}
	}
}

// Two goroutines may use one model at the same time.
func TestForwardConcurrent(t *testing.T) {
	m := small(t)
	ids := randomIDs(rand.New(rand.NewPCG(2, 2)), m, 40)
	want, _ := alone(t, m, ids)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var ws model.Workspace
			kv := m.NewPool(3)
			for i := range ids {
				if err := m.Forward(&ws, kv, []model.Row{{Blocks: []int32{2, 0, 1}, Start: i, Tokens: ids[i : i+1], Logits: true}}); err != nil {
					t.Error(err)
					return
				}
				if !sameBits(ws.Logits(0), want[i]) {
					t.Errorf("position %d differs", i)
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
		rows[i] = model.Row{Blocks: table(4*i, 60), Tokens: make([]int32, 60), Logits: true, Hidden: i == 2}
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
