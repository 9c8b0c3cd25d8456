package controls_test

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"testing"

	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

//go:embed *.lua
var files embed.FS

func load(t *testing.T, name string, peers int, set map[string]float64) []*scripting.VM {
	t.Helper()
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return routertest.Load(t, name+".lua", string(text), peers, routertest.Seed, set)
}

// step asks the router about one row of model self.
func step(t *testing.T, vms []*scripting.VM, self event.Peer, req event.ReqID, pos int) (event.Peer, event.Action) {
	t.Helper()
	d := vms[self].Route(&scripting.Row{Req: req, Output: &event.Output{}, Pos: pos, PromptLen: 1, Step: pos - 1})
	if d.Fault != "" {
		t.Fatal(d.Fault)
	}
	return d.Dest, d.Action
}

// Where requests go follows the law that the knobs state, from each model, and
// what goes up is dropped or kept as replace says.
func TestChanceLaw(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		peers int
		set   map[string]float64
		want  [][]float64
	}{
		{2, nil, [][]float64{{0.65, 0.35}, {1, 0}}},
		{2, map[string]float64{"small_large": 0.1, "large_small": 0.25}, [][]float64{{0.9, 0.1}, {0.25, 0.75}}},
		// The middle model's knobs are of no effect in a pair.
		{2, map[string]float64{"small_middle": 1, "large_middle": 1, "replace": 0}, [][]float64{{0.65, 0.35}, {1, 0}}},
		{3, nil, [][]float64{{0.45, 0.2, 0.35}, {0.8, 0, 0.2}, {1, 0, 0}}},
		{3, map[string]float64{
			"small_middle": 0.3, "small_large": 0.1, "middle_small": 0.5, "middle_large": 0.15, "large_small": 0.2, "large_middle": 0.6, "replace": 0,
		}, [][]float64{{0.6, 0.3, 0.1}, {0.5, 0.35, 0.15}, {0.2, 0.6, 0.2}}},
		// Sums above 1 leave the rest to the second.
		{3, map[string]float64{"large_middle": 0.3, "small_large": 0.7, "small_middle": 0.9}, [][]float64{{0, 0.3, 0.7}, {0.8, 0, 0.2}, {0.7, 0.3, 0}}},
	} {
		vms := load(t, "chance", c.peers, c.set)
		replace, given := c.set["replace"]
		drops := !given || replace == 1
		for from, law := range c.want {
			got := make([]float64, c.peers)
			for i := range n {
				dest, act := step(t, vms, event.Peer(from), event.ReqID(1+i/100), 1+i%100)
				if want := drops && int(dest) > from; (act == event.Drop) != want {
					t.Fatalf("%v: from %d to %d with %v", c.set, from, dest, act)
				}
				got[dest]++
			}
			chi, cells := 0.0, 0
			for to, p := range law {
				if p < 1e-12 {
					if got[to] > 0 {
						t.Errorf("%v: %v requests go from %d to %d", c.set, got[to], from, to)
					}
					continue
				}
				d := got[to] - n*p
				chi += d * d / (n * p)
				cells++
			}
			// Mean and six standard deviations of the chi-square law.
			if df := float64(cells - 1); chi > df+6*math.Sqrt(2*df)+1e-9 {
				t.Errorf("%v: from %d: chi-square %.1f over %d cells (%v of %v)", c.set, from, chi, cells, got, law)
			}
		}
	}
}

// Steps are independent of one another: pairs of neighbouring positions and of
// models at one position fall as their product says.
func TestChanceIsMemoryless(t *testing.T) {
	const n = 20_000
	vms := load(t, "chance", 2, map[string]float64{"small_large": 0.5, "large_small": 0.5})
	for name, pair := range map[string]func(i int) (event.Peer, event.Peer){
		"positions": func(i int) (event.Peer, event.Peer) {
			a, _ := step(t, vms, 0, event.ReqID(1+i/50), 1+2*(i%50))
			b, _ := step(t, vms, 0, event.ReqID(1+i/50), 2+2*(i%50))
			return a, b
		},
		"models": func(i int) (event.Peer, event.Peer) {
			a, _ := step(t, vms, 0, event.ReqID(1+i/50), 1+i%50)
			b, _ := step(t, vms, 1, event.ReqID(1+i/50), 1+i%50)
			return a, b
		},
	} {
		var got [2][2]float64
		for i := range n {
			a, b := pair(i)
			got[a][b]++
		}
		chi := 0.0
		for _, row := range got {
			for _, x := range row {
				chi += (x - n/4) * (x - n/4) / (n / 4)
			}
		}
		if chi > 3+6*math.Sqrt(6) {
			t.Errorf("%s: chi-square %.1f (%v)", name, chi, got)
		}
	}
}

// With a pair's defaults chance is random: the same tokens are written by the
// same models.
func TestChanceIsRandom(t *testing.T) {
	for _, p := range []float64{0, 0.2, 0.35, 1} {
		chance := load(t, "chance", 2, map[string]float64{"small_large": p})
		random := load(t, "random", 2, map[string]float64{"share": p})
		for req := range event.ReqID(50) {
			run := reference.Run{Models: routertest.Models(2), Req: req + 1, Prompt: []event.Token{3, 1}, MaxTokens: 40}
			a, b := routertest.Play(t, run, chance), routertest.Play(t, run, random)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("p=%v, request %d: %+v, random.lua has %+v", p, req+1, a, b)
			}
		}
	}
}

// Who writes, over whole texts of three models, is the stationary law of the
// chain's commits.
func TestChanceWriters(t *testing.T) {
	vms := load(t, "chance", 3, nil)
	var by [3]float64
	n := 0.0
	for req := range event.ReqID(150) {
		run := reference.Run{Models: routertest.Models(3), Req: req + 1, Prompt: []event.Token{3}, MaxTokens: 80}
		for _, m := range routertest.Play(t, run, vms).Writers {
			by[m]++
			n++
		}
	}
	// A step at small, 1 of s: 0.45 commits there. 0.2 goes to the middle, which
	// commits 0.8 of it; all else is the large one's.
	want := []float64{0.45, 0.16, 0.39}
	for m, share := range want {
		if d := math.Abs(by[m]/n - share); d > 5*math.Sqrt(share/n) {
			t.Errorf("model %d writes %.3f, want %.3f", m, by[m]/n, share)
		}
	}
	if slices.Contains(by[:], 0) {
		t.Error(by)
	}
}
