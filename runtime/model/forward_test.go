package model_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

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

// alone computes the logits after every token, one token per step.
func alone(t testing.TB, m *model.Model, ids []int32) (logits, hidden [][]float32) {
	t.Helper()
	var ws model.Workspace
	kv := m.NewKV()
	for i := range ids {
		if err := m.Forward(&ws, []model.Row{{KV: kv, Start: i, Tokens: ids[i : i+1], Logits: true, Hidden: true}}); err != nil {
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

// session is one sequence on its way through random steps.
type session struct {
	ids    []int32
	logits [][]float32
	hidden [][]float32
	kv     *model.KV
}

// Case G1: whatever the chunks, the neighbours, rewinds and what a used KV held
// before, logits and hidden states are the bits of one token at a time.
func TestForwardInvariance(t *testing.T) {
	big, _ := loadOdd(t)
	for name, m := range map[string]*model.Model{"tiny-37k": small(t), "odd": big} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, 11))
			pool := make([]session, 5)
			for i := range pool {
				s := &pool[i]
				s.ids = randomIDs(r, m, 90)
				s.logits, s.hidden = alone(t, m, s.ids)
				s.kv = m.NewKV()
			}
			var ws model.Workspace
			rapid.Check(t, func(t *rapid.T) {
				for i := range pool {
					if rapid.Bool().Draw(t, "reset") {
						pool[i].kv.Reset()
					}
				}
				for range rapid.IntRange(1, 6).Draw(t, "steps") {
					var rows []model.Row
					var who []int
					for i := range pool {
						s := &pool[i]
						if !rapid.Bool().Draw(t, "in") {
							continue
						}
						start := rapid.IntRange(max(0, s.kv.Len()-4), min(s.kv.Len(), 89)).Draw(t, "start")
						n := rapid.IntRange(1, min(20, 90-start)).Draw(t, "n")
						rows = append(rows, model.Row{
							KV: s.kv, Start: start, Tokens: s.ids[start : start+n],
							Logits: rapid.Bool().Draw(t, "logits"), Hidden: rapid.Bool().Draw(t, "hidden"),
						})
						who = append(who, i)
					}
					if len(rows) == 0 {
						continue
					}
					if err := m.Forward(&ws, rows); err != nil {
						t.Fatal(err)
					}
					for i, row := range rows {
						s, at := &pool[who[i]], row.Start+len(row.Tokens)-1
						if s.kv.Len() != at+1 {
							t.Fatalf("KV holds %d, want %d", s.kv.Len(), at+1)
						}
						compare(t, "logits", row.Logits, ws.Logits(i), s.logits[at])
						compare(t, "hidden", row.Hidden, ws.Hidden(i), s.hidden[at])
					}
				}
			})
		})
	}
}

func compare(t *rapid.T, what string, wanted bool, got, want []float32) {
	if !wanted {
		if got != nil {
			t.Fatalf("%s were not wanted", what)
		}
		return
	}
	if !sameBits(got, want) {
		t.Fatalf("%s differ from those of one token at a time", what)
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
			kv := m.NewKV()
			for i := range ids {
				if err := m.Forward(&ws, []model.Row{{KV: kv, Start: i, Tokens: ids[i : i+1], Logits: true}}); err != nil {
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

func TestForwardErrors(t *testing.T) {
	m := small(t)
	other, _ := loadOdd(t)
	var ws model.Workspace
	kv, second := m.NewKV(), m.NewKV()
	if err := m.Forward(&ws, []model.Row{{KV: kv, Tokens: []int32{1, 2, 3}}}); err != nil {
		t.Fatal(err)
	}
	long := make([]int32, 510)
	for _, c := range []struct {
		rows []model.Row
		want string
	}{
		{nil, "at least one row"},
		{[]model.Row{{Tokens: []int32{1}}}, "row 0 has no KV of tiny-37k"},
		{[]model.Row{{KV: other.NewKV(), Tokens: []int32{1}}}, "has no KV of tiny-37k"},
		{[]model.Row{{KV: second, Tokens: []int32{1}}, {KV: kv, Start: 3}}, "row 1 has no tokens"},
		{[]model.Row{{KV: kv, Start: 4, Tokens: []int32{1}}}, "starts at position 4, but its KV holds 3"},
		{[]model.Row{{KV: kv, Start: -1, Tokens: []int32{1}}}, "starts at position -1"},
		{[]model.Row{{KV: kv, Start: 3, Tokens: long}}, "reaches position 512, but tiny-37k has max_position_embeddings 512"},
		{[]model.Row{{KV: kv, Start: 3, Tokens: []int32{424}}}, "token 424"},
		{[]model.Row{{KV: kv, Start: 3, Tokens: []int32{-1}}}, "token -1"},
		{[]model.Row{{KV: kv, Start: 3, Tokens: []int32{1}}, {KV: kv, Start: 3, Tokens: []int32{2}}}, "shares its KV"},
	} {
		if err := m.Forward(&ws, c.rows); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if kv.Len() != 3 || second.Len() != 0 {
		t.Errorf("KVs hold %d and %d after errors, want 3 and 0", kv.Len(), second.Len())
	}
	if err := m.Forward(&ws, []model.Row{{KV: kv, Start: 3, Tokens: long[:509], Logits: true}}); err != nil {
		t.Errorf("the last position: %v", err)
	}
}

func TestKV(t *testing.T) {
	m := small(t)
	kv := m.NewKV()
	var ws model.Workspace
	if kv.Len() != 0 || kv.Cap() != 0 {
		t.Errorf("a new KV holds %d of %d", kv.Len(), kv.Cap())
	}
	if err := m.Forward(&ws, []model.Row{{KV: kv, Tokens: make([]int32, 70)}}); err != nil {
		t.Fatal(err)
	}
	room := kv.Cap()
	if err := m.Forward(&ws, []model.Row{{KV: kv, Start: 20, Tokens: make([]int32, 5)}}); err != nil {
		t.Fatal(err)
	}
	if kv.Len() != 25 || kv.Cap() != room {
		t.Errorf("a step from 20 on leaves %d of %d", kv.Len(), kv.Cap())
	}
	kv.Reset()
	if kv.Len() != 0 || kv.Cap() != room {
		t.Errorf("Reset: %d of %d", kv.Len(), kv.Cap())
	}
}

// A runner's steady state allocates nothing.
func TestForwardAllocatesNothing(t *testing.T) {
	m := small(t)
	var ws model.Workspace
	rows := make([]model.Row, 4)
	for i := range rows {
		rows[i] = model.Row{KV: m.NewKV(), Tokens: make([]int32, 60), Logits: true, Hidden: i == 2}
	}
	run := func() {
		if err := m.Forward(&ws, rows); err != nil {
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
