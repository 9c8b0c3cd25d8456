package live_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
)

// fed is a runtime on whose tape a test puts what is measured.
type fed struct {
	*testing.T
	tp   *tape.Tape
	rt   *live.Runtime
	took time.Duration
}

func newFed(t *testing.T, took time.Duration) *fed {
	tp := tape.New()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", policy: event.Policy{Kind: event.Table}, concurrency: 8,
		tasks: referenceTasks(t, 1), tape: tp,
	})
	t.Cleanup(func() { closeRuntime(t, rt) })
	return &fed{T: t, tp: tp, rt: rt, took: took}
}

// makes says whether a look makes a table after 20 s of the pair in which a share p
// of steps send to the large model. Tables take no time here, but are said to.
func (f *fed) makes(p float64) bool {
	simulatePair(f.T, 8, p, func(r *tape.Record) { f.tp.Append(*r) })
	f.rt.Look()
	made := *f.rt.Took() == 0
	*f.rt.Took() = f.took
	return made
}

func (f *fed) table() [][]int { return f.rt.Status().Policy.Table }

func (f *fed) policy(form string) {
	f.Helper()
	if err := f.rt.SetPolicy(form); err != nil {
		f.Fatal(err)
	}
}

// A table that was made is found again when the figures come back to where they
// were: at once, though it is too early to make one, and also after the router was
// another meanwhile.
func TestTablesAreFoundAgain(t *testing.T) { synctest.Test(t, tablesAreFoundAgain) }

func tablesAreFoundAgain(t *testing.T) {
	f := newFed(t, time.Second)
	if !f.makes(0.35) {
		t.Fatal("no table")
	}
	first := f.table()
	time.Sleep(20 * time.Second)
	if !f.makes(0.1) {
		t.Fatal("no table for another share")
	}
	second := f.table()
	if slices.EqualFunc(first, second, slices.Equal) {
		t.Fatal("the tables are the same; the test has lost its sense")
	}
	found := func(after string, p float64, want [][]int) {
		t.Helper()
		if made, now := f.makes(p), f.table(); made || !slices.EqualFunc(now, want, slices.Equal) {
			t.Errorf("%s: made anew %v, in force %v, want %v", after, made, now, want)
		}
	}
	found("back", 0.35, first)
	f.tp.AppendHost(0, event.None, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: "other"})
	found("another router that sends as was seen before", 0.1, second)
	f.policy("eager")
	f.policy("table")
	found("another policy and back", 0.35, first)
}

// Where no core goes by a table none is made but for the figures; one is there all
// the same when the policy becomes the table, and a fresh one follows at once.
func TestNoTablesForOtherPolicies(t *testing.T) { synctest.Test(t, noTablesForOtherPolicies) }

func noTablesForOtherPolicies(t *testing.T) {
	for _, form := range []string{"eager", "fixed:1,4", "lock-step"} {
		f := newFed(t, time.Nanosecond) // cheap: it is never too early for one
		f.policy(form)
		if !f.makes(0.35) {
			t.Fatalf("%s: no table for the figures", form)
		}
		time.Sleep(time.Second)
		if f.makes(0.1) {
			t.Errorf("%s: a table a second after the figures", form)
		}
		time.Sleep(time.Second)
		if !f.makes(0.1) {
			t.Errorf("%s: no table for figures that are due", form)
		}
		if f.makes(0.6) {
			t.Errorf("%s: a table before figures are due", form)
		}
		f.policy("table")
		if got := f.table(); len(got) != 8 {
			t.Errorf("%s: then the table is %v", form, got)
		}
		if !f.makes(0.6) {
			t.Errorf("%s: no fresh table for those who go by it", form)
		}
	}
}

// In virtual time a system that stays as it is needs a handful of tables, though
// its measured shares tremble at every look.
func TestVirtualTablesAreFew(t *testing.T) {
	cfg := flat(t, 8, 0.35, event.Policy{Kind: event.Table})
	cfg.Horizon = 60 * time.Second
	rt, recs := runConfig(t, cfg)
	looks, tables := int(cfg.Horizon/(250*time.Millisecond)), 0
	for i := range recs {
		if ev := recs[i].Event; ev != nil && ev.Kind == event.SetPolicy && recs[i].Core == event.Front && ev.Policy.Table != nil {
			tables++
		}
	}
	if kept := rt.Kept(); kept < 1 || kept > 20 {
		t.Errorf("%d tables were made in %d looks", kept, looks)
	}
	if tables < 2 {
		t.Errorf("%d tables in force; the test has lost its sense", tables)
	}
}
