package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"tokenrouter/algos/head"
	"tokenrouter/runtime/frontier"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/workload"
)

// sweepOf prepares a sweep of short runs in virtual time, and opens its file.
func sweepOf(t *testing.T, args ...string) *sweep {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for the crash file
	var cmd sweepCmd
	vars := words()
	vars["clock"] = "sim"
	parser, err := kong.New(&cmd, vars)
	if err == nil {
		_, err = parser.Parse(append([]string{"--routers=" + t.TempDir(), "--models=tiny-37k,tiny-114k", "--requests=6", "--resamples=0", "-o", filepath.Join(t.TempDir(), "s.jsonl")}, args...))
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := cmd.prepare()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.shelf.close)
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	return s
}

// end runs what is missing and closes the file.
func end(t *testing.T, s *sweep, ctx context.Context) error {
	t.Helper()
	return errors.Join(s.run(ctx), s.keep.close())
}

// Case K10: an interrupt ends a sweep with what was run, in the order of its points;
// the table and the exit code tell what is missing, and what was under way is no
// point.
func TestInterruptedSweep(t *testing.T) {
	s := sweepOf(t, "--param", "threshold=0.1,0.3,0.6,1.2", "--baselines=none")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := end(t, s, ctx)
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitInterrupted || !strings.Contains(err.Error(), "with 6 of 6 points to do") {
		t.Errorf("it ends with %v", err)
	}
	var out strings.Builder
	if err := s.print(&out); err != nil || out.Len() > 0 {
		t.Errorf("of nothing %q is printed, %v", out.String(), err)
	}
	// With a third of it done by hand the table stands, and marks the rest.
	s = sweepOf(t, "--param", "threshold=0.1,0.3,0.6,1.2", "--baselines=none")
	if err := s.all(t.Context(), s.plan[:3]); err != nil {
		t.Fatal(err)
	}
	if err := end(t, s, ctx); err == nil {
		t.Error("the rest was run")
	}
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"r2r threshold=0.1 ", "missing: r2r threshold=0.3\n", "missing: r2r threshold=1.2\n", "3 points in"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	kept, err := readSweep(s.cmd.Out)
	if err != nil || len(kept.runs) != 3 {
		t.Fatalf("%v points are kept, %v", kept, err)
	}
	for i := range kept.runs {
		if kept.runs[i].Key() != s.plan[i].key() {
			t.Errorf("line %d is %s, the point is %s", i, kept.runs[i].Key(), s.plan[i].key())
		}
	}
}

// The outcomes of single problems add up to the summary of their run, also where
// tokens are held back and taken back, and those of a mixture have families.
func TestOutcomesAddUp(t *testing.T) {
	s := sweepOf(
		t, "--workload=mixture", "--requests=12", "--baselines=all", "--param", "threshold=0.3",
		"--point", "router=window", "--point", "router=query_probe", "--point", "router=rstitch",
	)
	if err := end(t, s, t.Context()); err != nil {
		t.Fatal(err)
	}
	families := map[string]int{}
	for key, r := range s.runs {
		var tokens, large, switches, right, checked int
		steps := make([]int, len(r.Summary.TokensByRole))
		for i := range r.Problems {
			o := &r.Problems[i]
			tokens += o.Total()
			large += o.Large()
			switches += o.Switches
			families[o.Family]++
			for p, n := range o.Steps {
				steps[p] += n
			}
			if o.Checked {
				checked++
			}
			if o.Right {
				right++
			}
		}
		sum := &r.Summary
		got := fmt.Sprint(len(r.Problems), tokens, large, switches, checked, right)
		if want := fmt.Sprint(12, sum.Tokens, sum.LargeTokens, sum.Switches, sum.Total, sum.Correct); got != want {
			t.Errorf("%s: problems, tokens, large, switches, checked, right add up to %s, the summary has %s", key, got, want)
		}
		for p, n := range steps {
			// The oracle's small model takes back by APPEND what it had written.
			if role := &sum.TokensByRole[p]; n != role.Rows || n != role.Tokens+role.Dropped && r.Series != oracleName {
				t.Errorf("%s: %s made %d steps, the summary has %d rows for %d tokens and %d dropped", key, role.Role, n, role.Rows, role.Tokens, role.Dropped)
			}
		}
	}
	if len(families) != 6 {
		t.Errorf("families: %v", families)
	}
}

// Routers of whole requests come to what is composed for them, problem by problem:
// answers, tokens and cost.
func TestComposedIsWhatRuns(t *testing.T) {
	for _, c := range []struct{ series, router, knob string }{
		{frontier.QueryLength, "query_length", "length"},
		{frontier.QueryProbe, "query_probe", "threshold"},
	} {
		ends := sweepOf(t, "--requests=32", "--param", "threshold=4", "--baselines=none")
		if err := end(t, ends, t.Context()); err != nil {
			t.Fatal(err)
		}
		set := setOf(t, ends)
		i := slices.IndexFunc(set.Points, func(p *frontier.Point) bool { return p.Series == c.series })
		if i < 0 || i+3 >= len(set.Points) || set.Points[i+3].Series != c.series {
			t.Fatalf("%s has no four points", c.series)
		}
		want := set.Points[i+3]
		var threshold float64
		if _, err := fmt.Sscanf(want.Label[strings.Index(want.Label, "=")+1:], "%g", &threshold); err != nil {
			t.Fatal(err)
		}
		if c.knob == "threshold" {
			threshold -= 1e-4 // it is shown rounded
		}
		s := sweepOf(t, "--requests=32", "--router", c.router, "--param", fmt.Sprintf("%s=%v", c.knob, threshold), "--baselines=none")
		if err := end(t, s, t.Context()); err != nil {
			t.Fatal(err)
		}
		run := setOf(t, s)
		got := run.Points[2]
		if got.Series != c.router || len(run.Tasks) != 32 || !slices.Equal(run.Tasks, set.Tasks) {
			t.Fatalf("%s over %d problems", got.Name(), len(run.Tasks))
		}
		sent := 0
		for k := range run.Tasks {
			if got.Large[k] > 0 {
				sent++
			}
			if got.Right[k] != want.Right[k] || got.Tokens[k] != want.Tokens[k] || got.Large[k] != want.Large[k] || math.Abs(got.Cost[k]-want.Cost[k]) > 1e-12 {
				t.Errorf("%s, problem %s: right %v, tokens %v, large %v, cost %v; composed %v, %v, %v, %v", got.Name(), run.Tasks[k],
					got.Right[k], got.Tokens[k], got.Large[k], got.Cost[k], want.Right[k], want.Tokens[k], want.Large[k], want.Cost[k])
			}
		}
		if sent == 0 || sent == len(run.Tasks) {
			t.Errorf("%s sends %d of %d", got.Name(), sent, len(run.Tasks))
		}
	}
}

func setOf(t *testing.T, s *sweep) *frontier.Set {
	t.Helper()
	file, err := readSweep(s.cmd.Out)
	if err != nil {
		t.Fatal(err)
	}
	set, err := frontier.NewSet(file.runs, file.about.params(), frontier.CostSteps)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAxes(t *testing.T) {
	for text, want := range map[string]string{
		"0.05:1.5:8":      "[0.05 0.257 0.464 0.671 0.879 1.09 1.29 1.5]",
		"0.01:1:5:log":    "[0.01 0.0316 0.1 0.316 1]",
		"1,0.5, 2":        "[1 0.5 2]",
		"0.3":             "[0.3]",
		"1000.1:1000.5:3": "[1000.1 1000.3 1000.5]",
	} {
		if a, err := parseAxis("k", text); err != nil || fmt.Sprint(a.values) != want {
			t.Errorf("%s: %v, %v; want %s", text, a.values, err, want)
		}
	}
	for _, text := range []string{"", "a", "1,", "1:2", "1:2:3:4", "2:1:3", "0:1:1", "0:1:3:log", "0:Inf:3", "NaN:1:3", "1:1.0000000000000002:5", "1,1"} {
		if a, err := parseAxis("k", text); err == nil {
			t.Errorf("%q is taken as %v", text, a.values)
		}
	}
}

// The axis with the most values is that of the curve; each value of another one is a
// curve of its own.
func TestProducts(t *testing.T) {
	s := sweepOf(t, "--baselines=none", "--point", "router=query_probe tokens=4,8 threshold=0.1,0.2,0.3")
	var keys []string
	for i := range s.plan {
		keys = append(keys, s.plan[i].key())
	}
	want := "small_only|large_only|" +
		"query_probe tokens=4 threshold=0.1|query_probe tokens=4 threshold=0.2|query_probe tokens=4 threshold=0.3|" +
		"query_probe tokens=8 threshold=0.1|query_probe tokens=8 threshold=0.2|query_probe tokens=8 threshold=0.3"
	if got := strings.Join(keys, "|"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if p := s.plan[4]; p.series != "query_probe tokens=4" || fmt.Sprint(p.flags()) != "map[threshold:0.3 tokens:4]" {
		t.Errorf("%+v", p)
	}
	if err := s.keep.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.cmd.Out); err != nil {
		t.Error(err)
	}
}

// A point that a head has decided is another point with another head, and is not
// taken for what was run.
func TestSweepKnowsItsHeads(t *testing.T) {
	dir := t.TempDir()
	calibrated := 0.0
	save := func(bias float32) {
		t.Helper()
		m, err := tiny.Load("tiny-37k")
		if err != nil {
			t.Fatal(err)
		}
		spec := head.Spec{Kind: "linear", Features: []string{"hidden"}, Hidden: m.Config.Hidden}
		w := make([]float32, spec.Inputs())
		w[0] = bias
		h, err := head.New(head.Manifest{Spec: spec, Name: "h", Meaning: "large", Models: map[string]string{"small": m.Hash()}, Data: "none", Threshold: calibrated}, map[string][]float32{"weight": w})
		if err == nil {
			err = h.Save(filepath.Join(dir, "h"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	save(1)
	file := filepath.Join(t.TempDir(), "byhead.lua")
	text := `local threshold = param("threshold", { default = 0.5, min = 0, max = 1, head = "h" })
function route(r)
  if r.model ~= "small" then return HOME end
  if r.score("h") >= threshold() then return to("large"), DROP end
  return STAY
end
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sweepOf(t, "--heads", dir, "--baselines=none", "--router", file, "--param", "threshold=0.4,0.5")
	if err := end(t, s, t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &s.plan[2]
	r := s.runs[p.key()]
	if p.series != "byhead" || len(r.Heads) != 1 || len(r.Heads["h"]) != 64 {
		t.Fatalf("%s has the heads %v", p.key(), r.Heads)
	}
	if o := r.Problems[0]; !o.Scored || o.Score <= 0 || o.Score >= 1 {
		t.Errorf("the first candidate of %s has the score %v", o.Task, o.Score)
	}
	if err := s.same(p); err != nil {
		t.Error(err)
	}
	save(2)
	if err := s.same(p); err == nil || !strings.Contains(err.Error(), "by a head h of the hash") {
		t.Errorf("another head: %v", err)
	}
	save(1)
	own := sweepOf(t, "--heads", dir, "--baselines=none", "--router", file)
	if err := end(t, own, t.Context()); err != nil {
		t.Fatal(err)
	}
	q := &own.plan[len(own.plan)-1]
	if got := own.runs[q.key()].Params["threshold"]; q.series != "byhead" || got != 0.5 {
		t.Fatalf("%s ran at the threshold %v", q.key(), got)
	}
	calibrated = 0.25
	save(1)
	if err := own.same(q); err == nil || !strings.Contains(err.Error(), "at a threshold of 0.5, which the head h puts at 0.25 now") {
		t.Errorf("another threshold of the head: %v", err)
	}
	if err := s.same(p); err != nil {
		t.Errorf("a threshold that was given: %v", err)
	}
}

// What is chosen on one sweep is reported on another only if the problems are other
// ones and the routers the same.
func TestWhatMayBeChosenOn(t *testing.T) {
	tasks := func(extract string) []workload.Task {
		lines := `{"extract":"` + extract + `"}` + "\n" + `{"id":1,"question":"q","answer":"1"}`
		list, err := workload.ReadTasks(strings.NewReader(lines), "tasks.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	one, err1 := tasksHash(tasks("text"))
	other, err2 := tasksHash(tasks("number"))
	if err1 != nil || err2 != nil || one == other {
		t.Errorf("tasks whose answers are found elsewhere have the hashes %s and %s, %v %v", one, other, err1, err2)
	}
	for _, c := range []struct {
		a, b sweepAbout
		same bool
	}{
		{sweepAbout{Workload: "light", Seed: 1}, sweepAbout{Workload: "light", Seed: 1}, true},
		{sweepAbout{Workload: "light", Seed: 1}, sweepAbout{Workload: "light", Seed: 2}, false},
		{sweepAbout{Workload: "light", Seed: 1}, sweepAbout{Workload: "heavy", Seed: 1}, false},
		{sweepAbout{Workload: tasksMark + one, Seed: 1}, sweepAbout{Workload: tasksMark + one, Seed: 2}, true},
		{sweepAbout{Workload: tasksMark + one, Seed: 1}, sweepAbout{Workload: tasksMark + other, Seed: 1}, false},
	} {
		if got := c.a.sameProblems(&c.b); got != c.same {
			t.Errorf("%s seed %d and %s seed %d: %v", c.a.Workload, c.a.Seed, c.b.Workload, c.b.Seed, got)
		}
	}
	run := func(router, head string) *sweepFile {
		return &sweepFile{name: "sweep.jsonl", runs: []frontier.Run{{Series: "r2r", Router: router, Heads: map[string]string{"r2r": head}}}}
	}
	was := run("r2r.lua@1", "a")
	for _, c := range []struct {
		now  *sweepFile
		want string
	}{
		{run("r2r.lua@1", "a"), ""},
		{run("r2r.lua@2", "a"), `the point "r2r" is of r2r.lua@1`},
		{run("r2r.lua@1", "b"), "asks other heads"},
		{&sweepFile{}, ""},
	} {
		err := sameRouters(was, c.now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// The bar counts points and parts of them, and says how long the rest will take.
func TestSweepBar(t *testing.T) {
	var out strings.Builder
	b := newSweepBar(os.Stdin, 4, 100)
	b.live = liveLine{w: &out}
	now := b.since
	b.clock = func() time.Time { return now }
	b.begin(0, "r2r threshold=0.5")
	b.begin(1, "r2r threshold=1")
	now = now.Add(30 * time.Second)
	b.ended(0)
	out.Reset()
	b.at(1, 50)
	if got, want := out.String(), "\r[#########---------------] 1/4 points  50s left  r2r threshold=1  "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b.clear()
	out.Reset()
	silent := newSweepBar(os.Stdin, 4, 100)
	silent.live = liveLine{}
	silent.begin(0, "x")
	silent.clear()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}
