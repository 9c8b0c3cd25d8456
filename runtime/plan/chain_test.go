package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// solved is Chain where no error is expected.
func solved(t testing.TB, s *Spec) Result {
	t.Helper()
	r, err := Chain(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sameDigits fails unless got, rounded like want, is want: the vectors file has
// six digits.
func sameDigits(t testing.TB, what string, got, want float64, digits int) {
	t.Helper()
	if g, w := strconv.FormatFloat(got, 'g', digits, 64), strconv.FormatFloat(want, 'g', digits, 64); g != w {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// sameDecimals is sameDigits for figures printed with that many decimals.
func sameDecimals(t testing.TB, what string, got, want float64, decimals int) {
	t.Helper()
	if g, w := strconv.FormatFloat(got, 'f', decimals, 64), strconv.FormatFloat(want, 'f', decimals, 64); g != w {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// bestOf is the best feasible vector by the chain, those with B0 = 1 only if so
// asked.
func bestOf(t testing.TB, s *Spec, one bool) (b []int, throughput float64) {
	for place := range placements(s.N-1, len(s.P)+1) { // how far to go above 1, and a rest
		c := *s
		c.B = nil
		for _, k := range place[:len(s.P)] {
			c.B = append(c.B, k+1)
		}
		if one && c.B[0] > 1 {
			continue
		}
		if r := solved(t, &c); r.Throughput > throughput*(1+1e-12) {
			b, throughput = c.B, r.Throughput
		}
	}
	return b, throughput
}

func TestChainVectors(t *testing.T) {
	for _, v := range readGiven(t) {
		r := solved(t, v.spec)
		sameDigits(t, v.id+" tokens/s", r.Throughput, v.want.Throughput, 6)
		for m := range v.spec.P {
			at := fmt.Sprintf("%s model %d ", v.id, m)
			sameDigits(t, at+"steps/s", r.Steps[m], v.want.Steps[m], 6)
			sameDigits(t, at+"busy", r.Busy[m], v.want.Busy[m], 6)
			sameDigits(t, at+"mean batch", r.MeanBatch[m], v.want.Batch[m], 6)
		}
		c := *v.spec
		c.B = nil
		sameDigits(t, v.id+" eager", solved(t, &c).Throughput, v.want.Eager, 6)
		b, best := bestOf(t, v.spec, false)
		sameDigits(t, v.id+" at B*", best, v.want.AtBest, 6)
		if fmt.Sprint(b) != fmt.Sprint(v.want.Best) {
			t.Errorf("%s: B* is %v, want %v", v.id, b, v.want.Best)
		}
		b, best = bestOf(t, v.spec, true)
		sameDigits(t, v.id+" at B* with B0 = 1", best, v.want.AtBestB01, 6)
		if fmt.Sprint(b) != fmt.Sprint(v.want.BestB01) {
			t.Errorf("%s: B* with B0 = 1 is %v, want %v", v.id, b, v.want.BestB01)
		}
	}
}

// TestChainExtras are the vectors file's further cases: one that deadlocks, and
// append instead of replace.
func TestChainExtras(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Extra []struct {
			ID    string
			Input struct {
				N                  int
				B                  []int
				Routing, Committed [][]float64
			}
			Expect struct {
				Throughput float64 `json:"throughput_tok_per_s"`
				Best       []int   `json:"B_star"`
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	x01, x03 := file.Extra[0], file.Extra[1]
	if x01.ID != "x01" || x03.ID != "x03" {
		t.Fatalf("the extras are %s, %s", x01.ID, x03.ID)
	}
	_, err = Chain(&Spec{N: x01.Input.N, B: x01.Input.B, P: x01.Input.Routing, Step: flat(6, 27.9)})
	if !errors.Is(err, ErrDeadlock) || !strings.Contains(err.Error(), "[1 3]") || !strings.Contains(err.Error(), "[2 4]") {
		t.Errorf("x01: %v, want a deadlock that names q = [1 3] and B = [2 4]", err)
	}
	s := pair(4, .35, 6, 27.9, 1, 3)
	replace := solved(t, s).Throughput
	s.K = x03.Input.Committed
	r := solved(t, s)
	sameDigits(t, "x03", r.Throughput, x03.Expect.Throughput, 6)
	near(t, "append / replace", r.Throughput/replace, 1.35, 1e-12)
	if b, _ := bestOf(t, s, false); fmt.Sprint(b) != fmt.Sprint(x03.Expect.Best) {
		t.Errorf("x03: B* is %v, want %v", b, x03.Expect.Best)
	}
	s.K = nil
	near(t, "without K every step commits", solved(t, s).Throughput, r.Throughput, 1e-15)
}

// TestChainReference is the published setting, p = 0.35 and 6.0 / 27.9 ms
// (§2.4): the predicted optimum is the one that was measured.
func TestChainReference(t *testing.T) {
	for _, byB1 := range [][]float64{{98.957, 110.323}, {142.339, 158.117, 151.891}, {187.190, 195.439, 207.954, 190.742}} {
		n := len(byB1)
		for i, want := range byB1 {
			sameDecimals(t, fmt.Sprintf("N = %d, B1 = %d", n, i+1), solved(t, pair(n, .35, 6, 27.9, 1, i+1)).Throughput, want, 3)
		}
	}
	for _, c := range []struct {
		b0, b1 int
		want   float64
	}{{2, 1, 164.50}, {2, 2, 187.59}, {2, 3, 198.04}, {4, 1, 138.31}} {
		sameDecimals(t, fmt.Sprintf("N = 4, B = (%d,%d)", c.b0, c.b1), solved(t, pair(4, .35, 6, 27.9, c.b0, c.b1)).Throughput, c.want, 2)
	}
	best, at := 0.0, 0
	for b := 1; b <= 8; b++ {
		if r := solved(t, pair(8, .35, 6, 27.9, 1, b)); r.Throughput > best {
			best, at = r.Throughput, b
		}
	}
	if at != 5 {
		t.Errorf("N = 8: B1* is %d, want 5", at)
	}
}

// TestChainStates: the lumped states that can be reached are as many as §4.1
// counts.
func TestChainStates(t *testing.T) {
	for _, c := range []struct{ n, b, want int }{
		{4, 1, 532}, {8, 1, 2910}, {16, 1, 12994}, {4, 3, 11}, {8, 5, 42}, {16, 10, 128}, {32, 21, 374}, {64, 42, 1352}, {256, 154, 26624},
	} {
		if got := solved(t, pair(c.n, .35, 6, 27.9, 1, c.b)).States; got != c.want {
			t.Errorf("N = %d, B1 = %d: %d states, want %d", c.n, c.b, got, c.want)
		}
	}
}

// TestChainTies: throughput jumps where the small steps begin to fit the large
// one exactly (§4.4).
func TestChainTies(t *testing.T) {
	for _, c := range []struct {
		large float64
		b     int
		want  float64
	}{{29.9, 2, 187.11}, {30.1, 2, 180.39}, {29.9, 3, 200.14}, {30.1, 3, 197.42}} {
		sameDecimals(t, fmt.Sprintf("t1 = %v, B1 = %d", c.large, c.b), solved(t, pair(4, .35, 6, c.large, 1, c.b)).Throughput, c.want, 2)
	}
	// Merged ties: at 30.0 ms both models end together and their requests meet
	// before either starts again.
	on, below := solved(t, pair(4, .35, 6, 30)), solved(t, pair(4, .35, 6, 29.9))
	if on.States >= below.States/10 {
		t.Errorf("%d states at an integer ratio, %d beside it; ties should leave far fewer", on.States, below.States)
	}
}

// TestChainSeveralClasses: with p = 1 two requests go together or in turns for
// ever, and the start says which (§4.2).
func TestChainSeveralClasses(t *testing.T) {
	s := &Spec{N: 2, P: [][]float64{{0, 1}, {1, 0}}, Step: flat(1, 3), Quantum: 1}
	r := solved(t, s)
	if r.Classes != 2 {
		t.Errorf("%d classes, want 2", r.Classes)
	}
	near(t, "from (2,0)", r.Throughput, 1000, 1e-12)
	near(t, "from (1,1)", from(t, s, 1, 1).Throughput, 2000./3, 1e-12)
	s.N = 1
	if r := solved(t, s); r.Classes != 1 {
		t.Errorf("%d classes for one request, want 1", r.Classes)
	}
	// Starts that end in a deadlock are not classes of their own: (1,1,0) at once,
	// (0,1,1) when the request at the last model has come to the first.
	s = &Spec{N: 2, P: [][]float64{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}, Step: flat(1, 3, 2), Quantum: 1, B: []int{2, 2, 1}}
	r = solved(t, s)
	near(t, "a ring of three", r.Throughput, 1000, 1e-12)
	if r.Classes != 1 {
		t.Errorf("%d classes in a ring of three, want 1", r.Classes)
	}
}

// TestChainAbsorbed: where chance picks the class, the result is the mean over
// the classes by their probabilities.
func TestChainAbsorbed(t *testing.T) {
	s := &Spec{N: 1, P: [][]float64{{0, .5, .5}, {0, 1, 0}, {0, 0, 1}}, Step: flat(1, 1, 4), Quantum: 1}
	r := solved(t, s)
	near(t, "N = 1", r.Throughput, 1000*(.5+.5/4), 1e-12)
	if r.Classes != 2 {
		t.Errorf("%d classes, want 2", r.Classes)
	}
	s.N = 2
	r = solved(t, s)
	near(t, "N = 2", r.Throughput, 1000*(.25*2+.5*(1+.25)+.25*.5), 1e-12)
	near(t, "busy of the slow model", r.Busy[2], .75, 1e-12)
	if r.Classes != 3 {
		t.Errorf("%d classes, want 3", r.Classes)
	}
	// A long stay in states that are left again: 0.9 at the first model per step.
	s = &Spec{N: 3, P: [][]float64{{.9, .02, .08}, {0, 1, 0}, {0, 0, 1}}, Step: flat(2, 1, 4), Quantum: 1}
	r = solved(t, s)
	near(t, "steps at the first model", r.Steps[1], 1000*3*.2, 1e-9)
}

// from is the result from a placement of the waiting requests.
func from(t *testing.T, s *Spec, place ...int) Result {
	t.Helper()
	y, err := newSystem(s)
	if err != nil {
		t.Fatal(err)
	}
	g := newGraph(y, maxStates)
	if err := g.place(place); err != nil {
		t.Fatal(err)
	}
	if err := g.walk(); err != nil {
		t.Fatal(err)
	}
	r, err := g.result()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChainTooLarge(t *testing.T) {
	s := pair(8, .35, 6, 27.9)
	if r, err := ChainWithin(s, 2910); err != nil || r.States != 2910 {
		t.Errorf("%d states, %v; want all 2910", r.States, err)
	}
	for _, most := range []int{0, 1, 100, 2909} {
		if _, err := ChainWithin(s, most); !errors.Is(err, ErrTooLarge) {
			t.Errorf("at most %d states: %v, want too large", most, err)
		}
	}
	// Far too many ways to fall: refused before they are listed.
	s = &Spec{N: 1024, P: [][]float64{{.4, .3, .2, .1}, {.4, .3, .2, .1}, {.4, .3, .2, .1}, {.4, .3, .2, .1}}, Step: flat(1, 2, 3, 4)}
	if _, err := ChainWithin(s, 1000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v, want too large", err)
	}
}

// TestChainWide: states of several words, and more models than bits in one.
func TestChainWide(t *testing.T) {
	const m = 100
	ring := &Spec{N: 1, Step: make([]Latency, m), P: make([][]float64, m)}
	sum := 0.0
	for i := range m {
		ring.P[i] = make([]float64, m)
		ring.P[i][i], ring.P[i][(i+1)%m] = .5, .5
		ring.Step[i] = Latency{Base: float64(1 + i%7)}
		sum += float64(1 + i%7)
	}
	r := solved(t, ring)
	near(t, "a ring of 100 models", r.Throughput, 1000*m/sum, 1e-12)
	if r.States != m {
		t.Errorf("%d states, want %d", r.States, m)
	}
}

func TestChainRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(s *Spec)
		want   string
	}{
		{func(s *Spec) { s.N = 0 }, "N = 0 active"},
		{func(s *Spec) { s.Quantum = 100 }, "another quantum"},
		{func(s *Spec) { s.Quantum = 1e-300 }, "another quantum"},
		{func(s *Spec) { s.B = []int{3, 1} }, "deadlock"},
		{func(s *Spec) { s.Send = []*Phases{nil} }, "1 send laws for 2 models"},
		{func(s *Spec) { s.Send = []*Phases{{}, nil} }, "no phase"},
		{func(s *Spec) { s.Send = []*Phases{{Start: []float64{1}}, nil} }, "1 start entries and 0 rows"},
		{func(s *Spec) { s.Send = []*Phases{{Start: []float64{.5}, Next: [][]float64{{0}}}, nil} }, "sum to 1"},
		{func(s *Spec) { s.Send = []*Phases{{Start: []float64{1}, Next: [][]float64{{1.5}}}, nil} }, "at most 1"},
		{func(s *Spec) { s.Send = []*Phases{{Start: []float64{1}, Next: [][]float64{{1}}}, nil} }, "never leaves"},
		{func(s *Spec) { s.Send = []*Phases{{Start: []float64{1, 0}, Next: [][]float64{{0, 1}, {1, 0}}}, nil} }, "never leaves"},
		{func(s *Spec) {
			s.P[0] = []float64{1, 0}
			s.Send = []*Phases{{Start: []float64{1}, Next: [][]float64{{.5}}}, nil}
		}, "P[0][0] is 1"},
	} {
		s := pair(2, .35, 6, 27.9)
		c.change(s)
		if _, err := Chain(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want something with %q", err, c.want)
		}
	}
}
