package frontier_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/frontier"
	"tokenrouter/runtime/rng"
)

func table(t *testing.T, runs []frontier.Run, o frontier.Options) *frontier.Table {
	t.Helper()
	return frontier.NewTable(set(t, runs), o)
}

func rowOf(t *testing.T, tab *frontier.Table, name string) *frontier.Row {
	t.Helper()
	for i := range tab.Rows {
		if tab.Rows[i].Point.Name() == name {
			return &tab.Rows[i]
		}
	}
	t.Fatalf("no point %q", name)
	return nil
}

// Four problems by hand: every figure of a point, and the curve through it.
func TestTableByHand(t *testing.T) {
	outcome := func(task string, right bool, small, large, steps int) frontier.Outcome {
		return frontier.Outcome{Task: task, Checked: true, Right: right, Tokens: []int{small, large}, Steps: []int{steps, large}, Fed: []int{steps + 5, large + 5}, Switches: large}
	}
	runs := []frontier.Run{
		{Series: frontier.SmallOnly, Router: "s@1", Problems: []frontier.Outcome{outcome("a", true, 10, 0, 10), outcome("b", false, 10, 0, 10), outcome("c", false, 10, 0, 10), outcome("d", false, 10, 0, 10)}},
		{Series: frontier.LargeOnly, Router: "l@1", Problems: []frontier.Outcome{outcome("a", true, 0, 10, 1), outcome("b", true, 0, 10, 1), outcome("c", true, 0, 10, 1), outcome("d", false, 0, 10, 1)}},
		{Series: "x", Router: "x@1", Knobs: knob(1), Problems: []frontier.Outcome{outcome("d", true, 18, 2, 20), outcome("a", true, 8, 2, 10), outcome("b", true, 6, 4, 10), outcome("c", false, 10, 0, 10)}},
	}
	tab := table(t, runs, frontier.Options{Against: []string{frontier.QueryMix}})
	r := rowOf(t, tab, "x threshold=1")
	near(t, "share", r.Share.Value, 8.0/50, 1e-15)
	near(t, "accuracy", r.Accuracy.Value, 0.75, 0)
	near(t, "of large", r.OfLarge.Value, 1, 0)
	near(t, "recovered", r.Recovered.Value, 1, 1e-15)
	near(t, "cost", r.Cost.Value, (50*37e3+8*3.7e6)/4/1e9, 1e-15)
	near(t, "cost of large", r.OfCost.Value, (50*37e3+8*3.7e6)/(4*37e3+40*3.7e6), 1e-12)
	near(t, "switches", r.Switches.Value, 8.0/50, 1e-15)
	near(t, "lead", r.Lead.Value, 0.75-(0.25+0.5*0.16), 1e-12) // mixing is a straight line where both write as much
	i := slices.IndexFunc(tab.Curves, func(c frontier.CurveRow) bool { return c.Series == "x" })
	c := tab.Curves[i]
	area := 0.16*0.5 + 0.84*0.75
	near(t, "area", c.Area.Value, area, 1e-12)
	near(t, "APGR", c.APGR.Value, (area-0.25)/0.5, 1e-12)
	near(t, "CPT 50", c.CPT[0].Value, 0.08, 1e-12)
	near(t, "CPT 95", c.CPT[2].Value, 0.152, 1e-12)
	if !math.IsNaN(r.Accuracy.Lo) {
		t.Error("an interval of no resamples")
	}
	for cost, want := range map[frontier.CostOf]float64{frontier.CostTokens: 42*37e3 + 8*3.7e6, frontier.CostPositions: 70*37e3 + 28*3.7e6} {
		s, err := frontier.NewSet(runs, params, cost)
		if err != nil {
			t.Fatal(err)
		}
		near(t, string(cost), frontier.NewTable(s, frontier.Options{}).Rows[2].Cost.Value, want/4/1e9, 1e-15)
	}
	clipped := table(t, runs, frontier.Options{From: 0, To: 0.1})
	near(t, "area of a part", clipped.Curves[i].Area.Value, 0.25+0.5*0.05/0.16, 1e-12)
}

// Points are paired by problem whatever their order, over those that all have.
func TestSetPairs(t *testing.T) {
	w := world{n: 40, seed: 3}
	runs := w.sweep()
	slices.Reverse(runs[3].Problems)
	runs[4].Problems = runs[4].Problems[:30]
	runs[2].Problems[5].Checked = false
	runs[2].Summary.Faults = 3
	s := set(t, runs)
	if text := frontier.NewTable(s, frontier.Options{}).Text(); !strings.Contains(text, "r2r threshold=50 had 3 router faults") {
		t.Errorf("nothing is said of faults in\n%s", text)
	}
	if len(s.Tasks) != 29 || s.LeftOut != 11 {
		t.Fatalf("%d problems, %d left out", len(s.Tasks), s.LeftOut)
	}
	for _, p := range s.Points[:len(runs)] {
		for i, task := range s.Tasks {
			var n int
			if _, err := fmt.Sscan(task, &n); err != nil {
				t.Fatal(err)
			}
			if want := float64(60 + n%40); math.Abs(p.Tokens[i]-want) > 1e-9 {
				t.Fatalf("%s: problem %s has %v tokens, want %v", p.Name(), task, p.Tokens[i], want)
			}
		}
	}
}

func TestSetRefuses(t *testing.T) {
	w := world{n: 5, seed: 3}
	twice := w.sweep()
	twice[2].Problems = append(twice[2].Problems, twice[2].Problems[1])
	for want, runs := range map[string][]frontier.Run{
		"problem " + twice[2].Problems[1].Task + " is there twice": twice,
		"not both among them": w.sweep()[1:],
		"there twice":         append(w.sweep(), w.sweep()[3]),
		"no problem with":     {w.run(frontier.SmallOnly, nil, 0, 0), {Series: frontier.LargeOnly}},
	} {
		if _, err := frontier.NewSet(runs, params, frontier.CostSteps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, sizes := range map[string][]float64{"these are of 1": params[:1], "these are of 0": nil, "another number of models than 3": {1, 2, 3}} {
		if _, err := frontier.NewSet(w.sweep(), sizes, frontier.CostSteps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", sizes, err, want)
		}
	}
	if _, err := frontier.NewSet(w.sweep(), params, "money"); err == nil || !strings.Contains(err.Error(), `no cost "money"`) {
		t.Errorf("money: %v", err)
	}
}

// What is composed is what a router of whole requests gets: at each threshold every
// problem is that of small only or of large only, by the rule.
func TestComposed(t *testing.T) {
	s := set(t, world{n: 200, seed: 4}.sweep())
	small, large := s.Small, s.Large
	seen := map[string]int{}
	last := map[string]int{}
	for _, p := range s.Points {
		if !p.Composed() {
			continue
		}
		seen[p.Series]++
		sent := 0
		for i := range s.Tasks {
			if p.Series == frontier.QueryMix {
				lo, hi := min(small.Right[i], large.Right[i]), max(small.Right[i], large.Right[i])
				if p.Right[i] < lo || p.Right[i] > hi {
					t.Fatalf("%s: %v is no mixture of %v and %v", p.Name(), p.Right[i], small.Right[i], large.Right[i])
				}
				continue
			}
			switch from := p.Large[i]; from {
			case 0:
				if p.Right[i] != small.Right[i] || p.Cost[i] != small.Cost[i] {
					t.Fatalf("%s: problem %d is not that of small only", p.Name(), i)
				}
			default:
				sent++
				probe := 0.0
				if p.Series == frontier.QueryProbe {
					probe = (frontier.ProbeTokens - 1) * params[0] / 1e9
				}
				if p.Right[i] != large.Right[i] || math.Abs(p.Cost[i]-large.Cost[i]-probe) > 1e-15 {
					t.Fatalf("%s: problem %d is not that of large only", p.Name(), i)
				}
			}
		}
		if p.Series != frontier.QueryMix && sent <= last[p.Series] {
			t.Errorf("%s sends %d, the threshold before %d", p.Name(), sent, last[p.Series])
		}
		last[p.Series] = sent
	}
	for _, series := range []string{frontier.QueryMix, frontier.QueryLength, frontier.QueryProbe, frontier.QueryBest} {
		if seen[series] < 8 {
			t.Errorf("%s has %d points", series, seen[series])
		}
	}
	if seen[frontier.QueryHead] != 0 {
		t.Error("a head that nobody asked")
	}
}

// A threshold on the score of a head sends the problems that it scores highest.
func TestComposedHead(t *testing.T) {
	w := world{n: 64, seed: 5}
	runs := w.sweep()
	head := w.run("query_head", knob(0.5), 0.2, 0.5)
	for i := range head.Problems {
		head.Problems[i].Score, head.Problems[i].Scored = float64((i*29)%64)/64, true
	}
	s := set(t, append(runs, head))
	n := 0
	for _, p := range s.Points {
		if p.Series != frontier.QueryHead {
			continue
		}
		n++
		least, most := 1.0, 0.0 // of those sent, and of those kept
		for i := range s.Tasks {
			score := head.Problems[i].Score
			if p.Large[i] > 0 {
				least = min(least, score)
			} else {
				most = max(most, score)
			}
		}
		if least <= most {
			t.Errorf("%s sends a problem of score %v and keeps one of %v", p.Name(), least, most)
		}
	}
	if n != 15 {
		t.Errorf("%d thresholds", n)
	}
}

// The intervals are those of a naive bootstrap: resamples of lists of outcomes, each
// measured anew from the runs.
func TestBootstrapIsPaired(t *testing.T) {
	w := world{n: 60, seed: 6}
	runs := w.sweep()
	o := frontier.Options{Resamples: 40, Seed: 9, Against: []string{"random"}}
	tab := table(t, runs, o)
	var share, area, lead []float64
	for b := range o.Resamples {
		key := rng.Key{Seed: o.Seed, Req: uint64(b), Purpose: rng.Resample}
		again := make([]frontier.Run, len(runs))
		for k := range runs {
			again[k] = runs[k]
			again[k].Problems = nil
		}
		for i := range w.n {
			at := int(key.Float64(i) * float64(w.n))
			for k := range runs {
				p := runs[k].Problems[at]
				p.Task = fmt.Sprint("draw ", i)
				again[k].Problems = append(again[k].Problems, p)
			}
		}
		one := table(t, again, frontier.Options{Against: o.Against})
		share = append(share, one.Rows[3].Share.Value)
		lead = append(lead, one.Rows[3].Lead.Value)
		area = append(area, one.Versus[0].Difference.Value)
	}
	for what, c := range map[string]struct {
		xs  []float64
		got frontier.Figure
	}{"share": {share, tab.Rows[3].Share}, "lead": {lead, tab.Rows[3].Lead}, "difference of areas": {area, tab.Versus[0].Difference}} {
		slices.Sort(c.xs)
		near(t, what+" lo", c.got.Lo, c.xs[0]+(c.xs[1]-c.xs[0])*0.975, 1e-9) // at 0.025 of 39 gaps
		near(t, what+" hi", c.got.Hi, c.xs[39]-(c.xs[39]-c.xs[38])*0.975, 1e-9)
	}
	if again := table(t, runs, o); !reflect.DeepEqual(again.Versus, tab.Versus) {
		t.Error("the same seed gives other intervals")
	}
	o.Seed++
	if again := table(t, runs, o); reflect.DeepEqual(again.Versus, tab.Versus) {
		t.Error("another seed gives the same intervals")
	}
}

// A curve against its own copy differs by nothing in any resample, however wide the
// interval of either is.
func TestPairsCancel(t *testing.T) {
	w := world{n: 80, seed: 7}
	runs := w.sweep()
	for _, r := range runs[2:6] {
		r.Series = "copy"
		runs = append(runs, r)
	}
	tab := table(t, runs, frontier.Options{Resamples: 200, Seed: 1, Against: []string{"r2r"}})
	for _, v := range tab.Versus {
		if v.Series == "copy" && (v.Difference.Value != 0 || v.Difference.Lo != 0 || v.Difference.Hi != 0) {
			t.Errorf("%+v", v)
		}
	}
	for _, c := range tab.Curves {
		if c.Area.Hi-c.Area.Lo < 0.05 {
			t.Errorf("%s: an interval of %v to %v", c.Series, c.Area.Lo, c.Area.Hi)
		}
	}
}

// Where the large model is no better there is no gap to recover, and resamples in
// which that is so are counted, not filled in.
func TestNoGap(t *testing.T) {
	w := world{n: 30, seed: 8}
	runs := w.sweep()
	for i := range runs[1].Problems {
		runs[1].Problems[i].Right = i%2 == 0
	}
	for i := range runs[0].Problems {
		runs[0].Problems[i].Right = i%2 == 0 && i > 0
	}
	tab := table(t, runs, frontier.Options{Resamples: 100, Seed: 1})
	for _, c := range tab.Curves {
		if c.APGR.Undefined == 0 || c.APGR.Undefined == 100 {
			t.Errorf("%s: %d of 100 resamples have no gap", c.Series, c.APGR.Undefined)
		}
	}
	if want := fmt.Sprintf("In %d of 100 resamples large_only is not the better one", tab.Curves[0].APGR.Undefined); !strings.Contains(tab.Text(), want) {
		t.Errorf("%s\nlacks: %s", tab.Text(), want)
	}
	for i := range runs[0].Problems {
		runs[0].Problems[i].Right = true
	}
	tab = table(t, runs, frontier.Options{Resamples: 10})
	if c := tab.Curves[0]; !math.IsNaN(c.APGR.Value) || !math.IsNaN(c.CPT[0].Value) || !math.IsNaN(c.APGR.Lo) {
		t.Errorf("a worse large model: %+v", c)
	}
}

// The cheapest point that keeps enough is chosen on one set, and told as the other
// set has it.
func TestChoose(t *testing.T) {
	a, b := world{n: 300, seed: 10}, world{n: 300, seed: 11}
	on := table(t, a.sweep(), frontier.Options{})
	report := table(t, b.sweep()[:5], frontier.Options{Resamples: 50})
	const keep = 0.75
	choices, err := frontier.Choose(on, report, keep)
	if err != nil || len(choices) != 2 {
		t.Fatalf("%+v, %v", choices, err)
	}
	c := choices[0]
	if c.Series != "r2r" || c.Chosen == nil || c.Chosen.OfLarge.Value < keep {
		t.Fatalf("%+v", c)
	}
	for i := range on.Rows {
		if r := &on.Rows[i]; r.Point.Series == "r2r" && r.OfLarge.Value >= keep && r.Share.Value < c.Chosen.Share.Value {
			t.Errorf("%s is cheaper than %s", r.Point.Name(), c.Point.Name())
		}
	}
	if c.Row == nil || c.Row != rowOf(t, report, c.Point.Name()) {
		t.Errorf("%s is reported as %+v", c.Point.Name(), c.Row)
	}
	if r := choices[1]; r.Series != "random" || r.Row != nil {
		t.Errorf("random is not in the second set: %+v", r)
	}
	text := frontier.ChoiceText(choices)
	for _, want := range []string{c.Point.Name(), "random"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if j := frontier.NewChoices(choices); len(j) != 2 || j[0].OfLarge.Lo == nil || j[1].Share.Value != nil {
		t.Errorf("%+v", j)
	}
	for _, keep := range []float64{0, 1.1, math.NaN()} {
		if _, err := frontier.Choose(on, report, keep); err == nil {
			t.Errorf("keep %v is taken", keep)
		}
	}
}
