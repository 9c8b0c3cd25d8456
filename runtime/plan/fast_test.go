package plan

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// pair is two models routed as R2R does: the large one writes anew what the
// small one sends it.
func pair(n int, p, small, large float64, b ...int) *Spec {
	s := &Spec{
		N: n, P: [][]float64{{1 - p, p}, {1, 0}}, K: [][]float64{{1, 0}, {1, 1}},
		Step: []Latency{{Base: small}, {Base: large}},
	}
	if b != nil {
		s.B = b
	}
	return s
}

func flat(ms ...float64) []Latency {
	var out []Latency
	for _, t := range ms {
		out = append(out, Latency{Base: t})
	}
	return out
}

// shape is a spec without N and thresholds.
type shape struct {
	name string
	spec Spec
}

func (s shape) with(n int, b ...int) *Spec {
	c := s.spec
	c.N, c.B = n, b
	return &c
}

// shapes are systems of every kind: more models, sloped step times, batch caps,
// laws of sends.
func shapes() []shape {
	me := []float64{.6, .25, .15}
	r2r := [][]float64{{2. / 3, 1. / 3}, {1, 0}}
	stitch := [][]float64{{.8, .2}, {.3, .7}}
	return []shape{
		{"R2R", *pair(0, .35, 6, 27.9)},
		{"R-Stitch", Spec{P: stitch, Step: flat(6, 27.9)}},
		{"ME", Spec{P: [][]float64{me, me, me}, Step: flat(6, 12.3, 27.9)}},
		{"cascade", Spec{P: [][]float64{{.75, .25, 0}, {.9, 0, .1}, {1, 0, 0}}, Step: flat(6, 12.3, 48.3)}},
		{"slope", Spec{P: r2r, Step: []Latency{{5.9, .1}, {26.5, 1.4}}}},
		{"cap", Spec{P: stitch, Step: flat(6, 27.9), Cap: []int{3, 2}}},
		{"two kinds of requests", Spec{P: r2r, Step: flat(6, 27.9), Send: []*Phases{{Start: []float64{.7, .3}, Next: [][]float64{{.3, 0}, {0, .9}}}, nil}}},
		{"at least two steps, cap", Spec{P: r2r, Step: flat(6, 27.9), Cap: []int{2, 4}, Send: []*Phases{{Start: []float64{1, 0}, Next: [][]float64{{0, 1}, {0, .5}}}, nil}}},
		{"law at the second model", Spec{P: stitch, Step: flat(6, 27.9), Send: []*Phases{nil, {Start: []float64{.5, .5}, Next: [][]float64{{.2, .3}, {.1, .6}}}}}},
	}
}

// given is an entry of the vectors file: a system and its figures to six digits.
type given struct {
	id   string
	spec *Spec
	want struct {
		Throughput float64   `json:"throughput_tok_per_s"`
		Best       []int     `json:"B_star"`
		AtBest     float64   `json:"throughput_at_B_star"`
		BestB01    []int     `json:"B_star_with_B0_1"`
		AtBestB01  float64   `json:"throughput_at_B_star_with_B0_1"`
		Eager      float64   `json:"throughput_all_ones"`
		Steps      []float64 `json:"decode_steps_per_s"`
		Busy       []float64 `json:"busy_fraction"`
		Batch      []float64 `json:"mean_batch"`
	}
}

func readGiven(t testing.TB) []given {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID    string
			Input struct {
				N         int
				Routing   [][]float64
				Committed [][]float64
				Latency   []struct {
					Intercept float64
					Slope     float64 `json:"slope_per_request"`
				} `json:"latency_ms"`
				Quantum float64 `json:"quantum_ms"`
				B       []int
			}
			Expect json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var out []given
	for _, v := range file.Vectors {
		g := given{id: v.ID, spec: &Spec{N: v.Input.N, P: v.Input.Routing, K: v.Input.Committed, B: v.Input.B, Quantum: v.Input.Quantum}}
		for _, l := range v.Input.Latency {
			g.spec.Step = append(g.spec.Step, Latency{l.Intercept, l.Slope})
		}
		if err := json.Unmarshal(v.Expect, &g.want); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	if len(out) < 7 {
		t.Fatalf("only %d vectors", len(out))
	}
	return out
}

// halfUnit is half a unit of the fourth significant digit.
func halfUnit(x float64) float64 { return 0.5 * math.Pow(10, math.Floor(math.Log10(x))-3) }

// near fails unless got is within tol of want, relative to want.
func near(t testing.TB, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Abs(want)) {
		t.Errorf("%s is %v, want %v (off by %.1e, allowed %.1e)", what, got, want, math.Abs(got/want-1), tol)
	}
}
