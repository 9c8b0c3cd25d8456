package pair_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/algos/head/pair"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model/tiny"
)

// stored is what an independent implementation wrote.
const stored = "../../../runtime/model/tiny/testdata/reference"

func load(t testing.TB, cores *team.Cores) *pair.Pair {
	t.Helper()
	small, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	large, err := tiny.Load("tiny-3.7m")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pair.New(small, large, cores)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// lines decodes a file of JSON lines.
func lines[T any](t testing.TB, name string) (out []T) {
	t.Helper()
	f, err := os.Open(filepath.Join(stored, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var v T
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

type question struct {
	Prompt []int32 `json:"prompt_ids"`
}

func tasks(t testing.TB, n int) (out []pair.Task) {
	t.Helper()
	for _, q := range lines[question](t, "tasks.jsonl")[:n] {
		out = append(out, pair.Task{Prompt: q.Prompt, MaxTokens: 160})
	}
	return out
}

// The loop writes what the reference wrote, token for token and by the same models,
// wherever neither two logits nor entropy and threshold are next to equal.
func TestReference(t *testing.T) {
	p := load(t, nil)
	const n = 10
	sure := 0
	for name, threshold := range map[string]float64{
		"greedy_tiny-37k.jsonl": math.Inf(1), "greedy_tiny-3.7m.jsonl": math.Inf(-1),
		"greedy_entropy_0.2_3.7m.jsonl": 0.2, "greedy_entropy_0.5_3.7m.jsonl": 0.5,
	} {
		want := lines[struct {
			IDs    []int32  `json:"ids"`
			Src    string   `json:"src"`
			Margin float64  `json:"min_margin"`
			Gap    *float64 `json:"min_threshold_gap"`
		}](t, name)
		err := p.Route(t.Context(), tasks(t, n), 5, pair.Want{}, func(_ int, s *pair.Step) (bool, error) {
			return float64(s.Signals.Entropy) >= threshold, nil
		}, func(i int, a *pair.Answer) error {
			w := want[i]
			if w.Margin < 1e-3 || w.Gap != nil && *w.Gap < 1e-3 {
				return nil
			}
			sure++
			if !slices.Equal(a.Tokens, w.IDs) {
				t.Errorf("%s, problem %d: %v, want %v", name, i, a.Tokens, w.IDs)
			}
			for k, large := range a.ByLarge {
				if w.Gap != nil && large != (w.Src[k] == '1') {
					t.Errorf("%s, problem %d: token %d is written by the large model: %v", name, i, k, large)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if sure < 3*n {
		t.Errorf("only %d answers could be compared", sure)
	}
}

// What is written depends neither on how many texts there are at a time nor on cores.
func TestBatchingDoesNotShow(t *testing.T) {
	cores := team.New(2)
	defer cores.Close()
	one, two := load(t, nil), load(t, cores)
	var want [8]*pair.Answer
	for _, c := range []struct {
		p  *pair.Pair
		at int
	}{{one, 1}, {one, 3}, {two, 8}, {one, 100}} {
		err := c.p.Route(t.Context(), tasks(t, len(want)), c.at, pair.Want{}, func(_ int, s *pair.Step) (bool, error) {
			return s.Signals.Entropy >= 0.1, nil
		}, func(i int, a *pair.Answer) error {
			if want[i] == nil {
				want[i] = a
			} else if !slices.Equal(a.Tokens, want[i].Tokens) || !slices.Equal(a.ByLarge, want[i].ByLarge) {
				t.Errorf("problem %d, %d at a time: %v, alone %v", i, c.at, a, want[i])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A fork goes on as the text does, wherever it was forked, and as a text that was
// written without any fork; what is said of the end of a text may be asked twice.
func TestFork(t *testing.T) {
	p := load(t, nil)
	ids := tasks(t, 1)[0].Prompt
	ids = slices.Repeat(ids, 4)[:90]
	ask := func(texts ...*pair.Text) (logits [][]float32) {
		if err := p.Next(pair.Small, texts, pair.Want{Logits: true}, func(_ int, s *pair.Step) error {
			logits = append(logits, slices.Clone(s.Logits))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return logits
	}
	for _, at := range []int{1, 15, 16, 17, 32, 50, 64} {
		text := pair.NewText(ids[:at])
		ask(text)
		fork := p.Fork(text)
		again := p.Fork(fork)
		text.Tokens = append(text.Tokens, ids[at:]...)
		fork.Tokens = append(fork.Tokens, ids[at:]...)
		other := p.Fork(again)
		other.Tokens = append(other.Tokens, 7, 8, 9) // must not be seen by the others
		whole := pair.NewText(ids)
		got := ask(other, text, again, fork, whole)
		if !slices.Equal(got[1], got[4]) || !slices.Equal(got[3], got[4]) {
			t.Errorf("forked at %d: text and fork go on otherwise than a text of its own", at)
		}
		if twice := ask(text, fork); !slices.Equal(twice[0], got[4]) || !slices.Equal(twice[1], got[4]) {
			t.Errorf("forked at %d: asked twice, another answer", at)
		}
		for _, x := range []*pair.Text{text, fork, again, other, whole} {
			p.Free(x)
		}
	}
}

// An interrupted run gives the context's error, and all KV comes back.
func TestInterrupted(t *testing.T) {
	p := load(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	calls := 0
	err := p.Route(ctx, tasks(t, 4), 4, pair.Want{}, func(int, *pair.Step) (bool, error) {
		if calls++; calls == 10 {
			stop()
		}
		return false, nil
	}, func(int, *pair.Answer) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := p.Held(); n != 0 {
		t.Errorf("%d blocks are still held", n)
	}
}

// The largest logits, by sorting.
func TestLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Float32Range(-4, 4), 1, 40).Draw(t, "logits")
		k := rapid.IntRange(1, len(logits)).Draw(t, "k")
		want := slices.Clone(logits)
		slices.SortFunc(want, func(a, b float32) int {
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
		if got := pair.Largest(nil, logits, k); !slices.Equal(got, want[:k]) {
			t.Fatalf("%v, want %v", got, want[:k])
		}
	})
}
