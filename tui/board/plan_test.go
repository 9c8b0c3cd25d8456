package board

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// tabled is a cluster that runs by the table of its plan from the beginning.
func tabled(cfg synth.Config, th theme.Options) (*Model, *synth.Cluster) {
	cfg.B, cfg.Plan = nil, planOf(synth.Paper())
	c := synth.New(cfg)
	m := New(infoOf(len(cfg.Steps)), theme.New(th))
	m.SetStatus(statusOf(cfg))
	m.Add(c.Until(20e9))
	return m, c
}

// later lets time pass, also for the screen, which goes by the newest record.
func later(m *Model, c *synth.Cluster, ns int64) {
	m.Add(c.Until(c.Now() + ns))
	c.Host(&tape.Telemetry{})
	m.Add(c.Until(c.Now() + 1))
}

func says(t *testing.T, m *Model, c *synth.Cluster, w, h int, want ...string) string {
	t.Helper()
	text := Text(m, w, h, c.Now(), true)
	check(t, text, w, h)
	for _, s := range want {
		if !strings.Contains(text, s) {
			t.Errorf("%dx%d does not say %q:\n%s", w, h, s, text)
		}
	}
	return text
}

// What is measured stands beside what is predicted, and the difference is that
// of the two numbers.
func TestPredictedBesideMeasured(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	plan := planOf(synth.Paper())
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 36}, {160, 50}} {
		text := says(t, m, c, size[0], size[1], fmt.Sprintf("pred ~%.1f (", plan.Predicted))
		got := m.figs.snap.TokensPerS/plan.Predicted - 1
		if want := "(" + signed(got) + ")"; !strings.Contains(text, want) || math.Abs(got) > 0.05 {
			t.Errorf("%v: the difference is %s:\n%s", size, want, text)
		}
	}
	gain := signed(plan.Best/plan.Eager - 1)
	lock := signed(plan.Best/plan.Lockstep - 1)
	says(t, m, c, 80, 24, "B* 1,3 ~", gain+" over eager", lock+" over lock-step", "B 3  B* 3")
	says(t, m, c, 120, 36, gain+" over eager", lock+" over lock-step", "B 3  B* 3")
	says(t, m, c, 160, 50, gain+fmt.Sprintf(" over eager ~%.0f", plan.Eager), lock+fmt.Sprintf(" over lock-step ~%.0f", plan.Lockstep))
}

// Nothing is predicted that the plan does not say: before there is one, under a
// policy it is not for, for another concurrency, in too young a window.
func TestPredictionIsOfWhatRuns(t *testing.T) {
	plan := planOf(synth.Paper())
	predicted := fmt.Sprintf("pred ~%.1f", plan.Predicted)
	cfg := synth.Paper()
	c := synth.New(cfg)
	m := New(infoOf(2), theme.New(theme.Options{}))
	s := statusOf(cfg)
	s.Policy, s.B = "fixed", cfg.B
	m.SetStatus(s)
	later(m, c, 10e9)
	if text := says(t, m, c, 120, 36, "pred - (no plan)"); strings.Contains(text, "B*") {
		t.Errorf("B* without a plan:\n%s", text)
	}
	c.Host(plan) // said under the table, while fixed thresholds are in force
	later(m, c, 1e9)
	says(t, m, c, 120, 36, "pred - (not for fixed)", "B* 1,3")
	c.SetPolicy(event.Policy{Kind: event.Table, Table: plan.Table})
	later(m, c, 1e9)
	if text := says(t, m, c, 120, 36, predicted); strings.Contains(text, predicted+" (") {
		t.Errorf("a second after the change it is compared:\n%s", text)
	}
	later(m, c, 2e9)
	says(t, m, c, 120, 36, predicted+" (")
	c.SetPolicy(event.Policy{Kind: event.Eager})
	later(m, c, 3e9)
	says(t, m, c, 120, 36, fmt.Sprintf("pred ~%.1f (", plan.Eager))
	s.Concurrency = 9 // KV admits 4 of them: the plan is for these
	m.SetStatus(s)
	later(m, c, 1e9)
	says(t, m, c, 120, 36, fmt.Sprintf("pred ~%.1f (", plan.Eager))
	better := *plan // than its table, at the number that it is for
	better.B = []int{1, 2}
	c.Host(&better)
	later(m, c, 1e9)
	says(t, m, c, 120, 36, "B* 1,2 ~", "  B* 2")
	other := *plan
	other.N = 6
	c.Host(&other)
	later(m, c, 1e9)
	says(t, m, c, 120, 36, fmt.Sprintf("pred ~%.1f for N 6", plan.Eager))
}

// Who waits for whom for longer than W stands in the events, on the card and in
// the plan, for as long as it lasts: for B, or for KV that others hold.
func TestWhoWaitsForWhom(t *testing.T) {
	cfg := synth.Paper()
	cfg.N = 8
	for _, c := range []struct {
		ready int
		hold  func(*synth.Cluster, bool)
		want  string
	}{
		{2, func(c *synth.Cluster, on bool) { c.SetStalled(1, on) }, `large waits for small: 2 ready of B 3 since \d+ ms \(#\d+, #\d+\)`},
		{1, func(c *synth.Cluster, on bool) { c.SetFull(1, on) }, `large waits for small: [12] ready without KV since \d+ ms \(#\d+(, #\d+)?\)`},
	} {
		m, sim := tabled(cfg, theme.Options{})
		for m.cores[1].load.Ready != c.ready || m.cores[1].running != nil || m.cores[0].running == nil {
			m.Add(sim.Until(sim.Now() + 1e6))
		}
		c.hold(sim, true)
		sim.Delay(0, 500e6)
		later(m, sim, 50e6)
		if text := says(t, m, sim, 160, 50); strings.Contains(text, "waits for small") {
			t.Errorf("before W is over:\n%s", text)
		}
		later(m, sim, figuresEvery)
		says(t, m, sim, 160, 50)
		wait := m.waitFor(1)
		if wait == nil || wait.For <= m.figs.snap.W || wait.For < 200*time.Millisecond {
			t.Fatalf("the wait is %+v, W %v", wait, m.figs.snap.W)
		}
		text := says(t, m, sim, 160, 50, "! waits "+age(wait.For))
		if !regexp.MustCompile("! " + c.want).MatchString(text) {
			t.Errorf("no %s on\n%s", c.want, text)
		}
		says(t, m, sim, 120, 36, "! waits "+age(wait.For), "! large waits for small")
		says(t, m, sim, 80, 24, "! waits", "! large waits for small")
		text = ansi.Strip(frame.Text(m.PlanRows(76)))
		if !regexp.MustCompile("! "+c.want).MatchString(text) || !regexp.MustCompile(`small +has \d, runs \d since \d+ ms`).MatchString(text) {
			t.Errorf("the plan does not tell of it:\n%s", text)
		}
		c.hold(sim, false)
		later(m, sim, 400e6)
		if text := says(t, m, sim, 160, 50); strings.Contains(text, "large waits for") {
			t.Errorf("it is over and still said:\n%s", text)
		}
	}
}

// A note of the plan is one line without a mark, however often plans repeat it with
// other figures; the strip counts them where there is room and the plan has them in
// full.
func TestPlanNotesOnce(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	count := func() (n int) {
		for _, e := range m.events {
			if e.level != tape.Info {
				t.Errorf("%q is marked as a warning", e.text)
			}
			if strings.HasPrefix(e.text, planSays) {
				n += e.count
			}
		}
		return n
	}
	for i := range 30 {
		p := *planOf(synth.Paper())
		p.Warnings = []string{fmt.Sprintf("delayed batching gains %.1f %% here: it is idle", 0.1*float64(i)), "send intervals of small are not geometric"}
		c.Host(&p)
		for _, w := range p.Warnings { // the runtime says them as well
			c.Host(&tape.Message{Level: tape.Info, Text: "plan: " + w})
		}
		later(m, c, 1e9)
	}
	if got := count(); got != 2 {
		t.Errorf("%d notes in the events, want 2", got)
	}
	says(t, m, c, 80, 24, " over lock-step")
	says(t, m, c, 160, 50, " over lock-step", "p: 2 notes", " plan: send intervals of small are not geometric")
	if text := ansi.Strip(frame.Text(m.PlanRows(76))); !strings.Contains(text, " - delayed batching gains 2.9 % here: it is idle") {
		t.Errorf("the plan does not have the newest words:\n%s", text)
	}
	c.Host(planOf(synth.Paper()))
	later(m, c, quiet+1e9)
	p := *planOf(synth.Paper())
	p.Warnings = []string{"delayed batching gains 0.2 % here: it is idle"}
	c.Host(&p)
	later(m, c, 1e9)
	if got := count(); got != 3 {
		t.Errorf("after a minute without it a note is new: %d", got)
	}
}

// B* is said when it changes, with its gain, and not when only figures do, nor
// which vector is the best where none gains anything. Where it trembles one line
// tells the newest.
func TestStarsAreSaid(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	m.events = nil
	at := int64(quiet)
	plan := func(b []int, best, eager float64) {
		c.Host(&tape.Plan{Policy: "table", N: 4, B: b, Best: best, Eager: eager})
		later(m, c, at)
	}
	said := func(want ...string) {
		t.Helper()
		var got []string
		for _, e := range m.events {
			if e.moved == "plan" {
				got = append(got, e.text)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	two, none := "B* 1,2 at 4 active: +6.0 % over eager", "waiting gains less than 1 % at 4 active"
	plan([]int{1, 2}, 212, 200)
	plan([]int{1, 2}, 211, 200)
	plan([]int{1, 1}, 200, 200)
	plan([]int{1, 3}, 201, 200)
	said(two, none)
	at = 10e9
	for range 20 {
		plan([]int{1, 3}, 212, 200)
		plan([]int{1, 2}, 212, 200)
	}
	said(two, none, two)
	plan([]int{1, 1}, 199, 200)
	said(two, none)
}

// A B that is lowered as requests come and go stays one line, and says whose it is.
func TestClampIsOneLine(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	m.events = nil
	for i := range 20 {
		c.Note(1, event.NoteClamp, fmt.Sprintf("B = 7 is lowered to %d with %d active", 4-i%2, 4-i%2))
		later(m, c, 2e9)
	}
	if len(m.events) != 1 {
		t.Errorf("%d lines", len(m.events))
	}
	says(t, m, c, 120, 36, "large: B = 7 is lowered to 3 with 3 active")
}

// Look-ahead has no threshold: the cards say so and set B* beside it.
func TestLookAheadOnTheCards(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	c.SetPolicy(event.Policy{Kind: event.LookAhead, B: []int{1, 3}})
	s := m.Status()
	s.Policy = "look-ahead"
	m.SetStatus(s)
	later(m, c, 11e9)
	says(t, m, c, 60, 16, "ahead")
	says(t, m, c, 80, 24, "ahead  B* 3", "look-ahead  small - ▸large -")
	says(t, m, c, 160, 50, "look-ahead  B* 3", "% by look-ahead")
	waits := false
	for range 200 {
		later(m, c, figuresEvery+7e6)
		text := Text(m, 160, 50, c.Now(), true)
		waits = waits || strings.Contains(text, "waits by look-ahead")
		if strings.Contains(text, "waits by B") {
			t.Fatalf("look-ahead waits for no B:\n%s", text)
		}
	}
	if !waits {
		t.Error("it never waits")
	}
}

// The closer look says which rule started a token's batch.
func TestInspectorNamesTheRule(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	m.Add(c.Until(60e9))
	c.SetPolicy(event.Policy{Kind: event.LookAhead, B: []int{1, 3}})
	m.Add(c.Until(75e9))
	want := map[event.Rule]func(*batch) string{
		event.RuleB:     func(b *batch) string { return fmt.Sprintf("rows %d, ready %d, B %d", b.rows, b.ready, b.b) },
		event.RuleGuard: func(b *batch) string { return fmt.Sprintf("rows %d, guard, B %d", b.rows, b.b) },
		event.RuleAhead: func(b *batch) string { return fmt.Sprintf("rows %d, look-ahead", b.rows) },
	}
	seen := map[event.Rule]int{}
	for _, r := range m.done {
		m.Inspect(r.id)
		for i := range r.tokens {
			b := r.tokens[i].by.batch
			if seen[b.rule]++; seen[b.rule] > 3 {
				continue
			}
			m.UI.inspect.cur, m.UI.inspect.follow = i, false
			says(t, m, c, 120, 36, want[b.rule](b))
		}
	}
	if len(seen) != len(want) {
		t.Errorf("batches were started by %v", seen)
	}
}

// The cards tell what the prefix cache saves and what preemption costs.
func TestCardTellsOfKV(t *testing.T) {
	m, c := tabled(synth.Paper(), theme.Options{})
	says(t, m, c, 120, 36, "hits  31 %")
	for !c.Preempt(1) {
		later(m, c, 1e6)
	}
	later(m, c, 1e9)
	lost := m.figs
	text := says(t, m, c, 120, 36)
	if n := m.figs.snap.Peers[1].Recomputed; n < 30 || !strings.Contains(text, fmt.Sprintf("! recomputed %d", n)) {
		t.Errorf("%d positions recomputed (before %d):\n%s", n, lost.snap.Peers[1].Recomputed, text)
	}
	says(t, m, c, 80, 24, "! KV")
	says(t, m, c, 160, 50, "! KV of large is short: a request lost its own")
	if text := ansi.Strip(frame.Text(m.PlanRows(76))); !strings.Contains(text, "! 1 preempted") || !strings.Contains(text, "prompt tokens were cached") {
		t.Errorf("the plan does not tell of it:\n%s", text)
	}
}

// All of the plan in one place.
func TestPlanRows(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	Text(m, 120, 36, c.Now(), true)
	golden(t, "plan-76", ansi.Strip(frame.Text(m.PlanRows(76))))
	golden(t, "plan-56", ansi.Strip(frame.Text(m.PlanRows(56))))
	empty := New(infoOf(3), theme.New(theme.Options{}))
	Text(empty, 120, 36, 0, true)
	golden(t, "plan-none", ansi.Strip(frame.Text(empty.PlanRows(76))))
}

// A damaged session holds any plan.
func TestAnyPlan(t *testing.T) {
	evil := "\x1b[2J\x1b]0;owned\x07 \u202e" + strings.Repeat("W", 300)
	far := math.Inf(1)
	for i, p := range []*tape.Plan{
		{},
		{Policy: evil, N: -3, B: []int{9, 9, 9, 9, 9}, Table: [][]int{nil, {-1}, {7, 7}}, Method: evil, Warnings: []string{evil, evil, ""}},
		{Policy: "table", N: 4, Predicted: math.NaN(), Best: far, Eager: math.NaN(), Lockstep: far, Low: -1, High: far, SolveNs: math.MinInt64},
		{Policy: "table", N: 4, Predicted: 1e300, Best: -5, Eager: -5, P: [][]float64{nil, {1, 2, 3, 4}}, Step: []tape.StepFit{{Base: far, PerRow: math.NaN()}}, Interval: []tape.Interval{{N: 1, Mean: far, CV2: math.NaN(), Far: true}}},
		{Policy: "table", N: 4, B: make([]int, 500), Table: make([][]int, 500), Best: 1, Eager: 1e-300, P: [][]float64{{0, 1}, {1, 0}}},
	} {
		m, c := tabled(synth.Paper(), theme.Options{})
		c.Host(p)
		c.SetPolicy(event.Policy{Kind: event.Table, Table: p.Table})
		later(m, c, 3e9)
		for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 36}, {161, 51}} {
			check(t, Text(m, size[0], size[1], c.Now(), false), size[0], size[1])
			rows := m.PlanRows(size[0] - 10)
			check(t, frame.Text(rows), size[0]-10, len(rows))
			if len(rows) > 80 {
				t.Errorf("plan %d takes %d rows", i, len(rows))
			}
		}
	}
}
