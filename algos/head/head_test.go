package head_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/kernels/matmul"
)

func newHead(t testing.TB, s head.Spec, w weights) *head.Head {
	t.Helper()
	h, err := head.New(manifest(s), w)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Logits agree with the oracle within 2e-5 of their size and of 1: float32 sums of
// some thousand terms through a dozen layers.
func TestOracle(t *testing.T) {
	for i, s := range specs {
		t.Run(fmt.Sprint(s.Kind, i), func(t *testing.T) {
			w := made(&s, uint64(i))
			h := newHead(t, s, w)
			r := rand.New(rand.NewPCG(uint64(i), 1))
			var ws head.Workspace
			worst := 0.0
			for range 50 {
				in := input(&s, r)
				got, err := h.Logit(&ws, in)
				if err != nil {
					t.Fatal(err)
				}
				want := w.logit(&s, in)
				worst = max(worst, math.Abs(got-want)/max(1, math.Abs(want)))
				p, err := h.Score(&ws, in)
				if err != nil || math.Abs(p-1/(1+math.Exp(-got))) > 1e-7 || p != float64(float32(p)) {
					t.Fatalf("the score of logit %g is %g (%v)", got, p, err)
				}
			}
			if !(worst < 2e-5) {
				t.Errorf("logits differ by %g", worst)
			}
		})
	}
}

// A score depends on its input alone: not on what the workspace was used for, nor
// on features that the head does not read.
func TestScoreOfInputAlone(t *testing.T) {
	var used head.Workspace
	for round := range 3 {
		for i, s := range specs {
			h := newHead(t, s, made(&s, uint64(i)))
			in := input(&s, rand.New(rand.NewPCG(5, 5)))
			alone, err := h.Logit(&head.Workspace{}, in)
			if err != nil {
				t.Fatal(err)
			}
			if s.Kind == "citer" {
				in.Logits, in.Embedding, in.Signals = nil, nil, nil
			}
			if got, err := h.Logit(&used, in); err != nil || got != alone {
				t.Fatalf("round %d, %s: %v after others, %v alone (%v)", round, s.Kind, got, alone, err)
			}
		}
	}
}

// Scores of several inputs are those of each alone.
func TestScoresTogether(t *testing.T) {
	for i, s := range specs {
		for _, f := range []matmul.Format{matmul.F32, matmul.BF16, matmul.Q8} {
			h, err := head.NewWith(manifest(s), made(&s, uint64(i)), head.Options{Weights: f})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(8, uint64(i)))
			var ws, alone head.Workspace
			for n := range 20 {
				var in []head.Input
				for range n {
					in = append(in, *input(&s, r))
				}
				got, err := h.Scores(&ws, in)
				if err != nil || len(got) != n {
					t.Fatal(got, err)
				}
				for k := range in {
					if want, err := h.Score(&alone, &in[k]); err != nil || got[k] != want {
						t.Fatalf("%s in %s, %d of %d: %v, alone %v (%v)", s.Kind, f, k, n, got[k], want, err)
					}
				}
			}
		}
	}
	h := newHead(t, specs[2], made(&specs[2], 1))
	r := rand.New(rand.NewPCG(1, 1))
	in := []head.Input{*input(&specs[2], r), *input(&specs[2], r)}
	in[1].Hidden[0] = float32(math.NaN())
	if got, err := h.Scores(&head.Workspace{}, in); err != nil || got[0] != got[0] || got[1] == got[1] {
		t.Errorf("with one that is no number: %v (%v)", got, err)
	}
}

// The published shapes have the published numbers of weights.
func TestPublishedSizes(t *testing.T) {
	all := []string{"hidden", "embedding", "logits:100"}
	for _, c := range []struct {
		kind   string
		hidden int
		want   float64 // millions
	}{
		{"r2r", 1024, 54.68},
		{"r2r", 1536, 56.30},
		{"r2r", 2048, 57.93},
		{"r2r", 2560, 59.55},
		{"citer", 1024, 4.20},
		{"citer", 1536, 9.45},
		{"citer", 896, 3.22},
	} {
		s := head.Spec{Kind: c.kind, Hidden: c.hidden, Features: all}
		if c.kind == "citer" {
			s.Features = all[:1]
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if got := math.Round(float64(s.Params())/1e4) / 100; got != c.want {
			t.Errorf("%s of hidden states of %d has %.2f million weights, want %.2f", c.kind, c.hidden, got, c.want)
		}
	}
	if s := (head.Spec{Kind: "linear", Hidden: 1024, Features: all[:1]}); s.Params() != 1025 {
		t.Errorf("a linear head of 1024 has %d weights", s.Params())
	}
}

// Narrower formats stay near the float32 scores.
func TestFormats(t *testing.T) {
	for i, s := range specs {
		w := made(&s, uint64(i))
		in := input(&s, rand.New(rand.NewPCG(9, 9)))
		want := w.logit(&s, in)
		for _, f := range []struct {
			format matmul.Format
			within float64
		}{{matmul.F16, 0.01}, {matmul.BF16, 0.06}, {matmul.Q8, 0.06}} {
			h, err := head.NewWith(manifest(s), w, head.Options{Weights: f.format})
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.Logit(&head.Workspace{}, in)
			if err != nil || math.Abs(got-want) > f.within*max(1, math.Abs(want)) {
				t.Errorf("%s in %s: logit %g, in float64 %g (%v)", s.Kind, f.format, got, want, err)
			}
		}
	}
}

// An input that is not what the head reads, and one that is no number, are errors.
func TestWrongInputs(t *testing.T) {
	s := head.Spec{Kind: "mlp", Features: []string{"hidden", "logits:20"}, Hidden: 8, Widths: []int{4}}
	h := newHead(t, s, made(&s, 1))
	in := input(&s, rand.New(rand.NewPCG(1, 1)))
	short := *in
	short.Logits = in.Logits[:19]
	if _, err := h.Score(&head.Workspace{}, &short); err == nil || !strings.Contains(err.Error(), "reads 20 values of logits, the row has 19") {
		t.Error(err)
	}
	in.Hidden[3] = float32(math.NaN())
	if _, err := h.Score(&head.Workspace{}, in); err == nil || !strings.Contains(err.Error(), "no number") {
		t.Error(err)
	}
}

func TestWrongWeights(t *testing.T) {
	s := head.Spec{Kind: "citer", Features: []string{"hidden"}, Hidden: 4}
	for want, change := range map[string]func(w weights){
		"the tensor mlp.4.bias is missing":                       func(w weights) { delete(w, "mlp.4.bias") },
		"the tensor mlp.0.bias has 7 values, not the 8":          func(w weights) { w["mlp.0.bias"] = w["mlp.0.bias"][1:] },
		"the tensor linear.weight holds a value that is no num":  func(w weights) { w["linear.weight"][1] = float32(math.Inf(1)) },
		"the tensor mlp.1.running_var holds a variance below 0":  func(w weights) { w["mlp.1.running_var"][0] = -1 },
		`none of a head of kind citer; did you mean "mlp.0.bias`: func(w weights) { w["mlp.0.bais"] = nil },
	} {
		w := made(&s, 1)
		change(w)
		if _, err := head.New(manifest(s), w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A head is of use to the models whose hashes it names, and to no others.
func TestFits(t *testing.T) {
	small, large, other := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	s := head.Spec{Kind: "linear", Features: []string{"hidden"}, Hidden: 8}
	m := manifest(s)
	m.Models = map[string]string{"small": small, "large": large}
	h, err := head.New(m, made(&s, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Fits("small", small, 8); err != nil {
		t.Error(err)
	}
	if err := h.Fits("large", large, 99); err != nil {
		t.Error(err)
	}
	err = h.Fits("small", other, 8)
	if err == nil || !strings.Contains(err.Error(), small[:12]) || !strings.Contains(err.Error(), other[:12]) {
		t.Error(err)
	}
	if err := h.Fits("large", other, 99); err == nil {
		t.Error("another large model is taken")
	}
	if err := newHead(t, s, made(&s, 1)).Fits("small", other, 9); err == nil || !strings.Contains(err.Error(), "8 values, those of the small model have 9") {
		t.Error(err)
	}
}
