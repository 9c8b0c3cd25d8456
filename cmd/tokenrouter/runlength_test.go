package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/sessions/store"
	"tokenrouter/tui/theme"
)

func runlengthOf(t *testing.T, args ...string) *runlengthCmd {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for the crash file
	var cmd runlengthCmd
	parser, err := kong.New(&cmd, words())
	if err == nil {
		_, err = parser.Parse(append([]string{"--routers=" + t.TempDir()}, args...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &cmd
}

// lengthsIn are the runs at p in a session.
func lengthsIn(t *testing.T, path string, p event.Peer) metrics.Lengths {
	t.Helper()
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	e := metrics.NewEstimator(2, metrics.EstimatorOptions{Whole: true})
	for rec, err := range s.Records() {
		if err != nil {
			t.Fatal(err)
		}
		e.Add(&rec)
	}
	return e.Lengths(p)
}

// The router that is written has the run lengths that were measured: it is run, and
// its own runs are tested against them.
func TestRunlengthWritesItsProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "process.lua")
	c := runlengthOf(t, "--router=r2r", "--param=threshold=0.02", "--requests=60", "--write="+file)
	path, err := c.path(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.measure(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write(r); err != nil {
		t.Fatal(err)
	}
	small := &r.Subservers[0]
	if small.Runs < 200 || math.Abs(small.Mean*r.Routing[0][1]-1) > 0.1 || r.Committed[0][1] != 0 {
		t.Errorf("%d runs of %.2f steps in the mean, P %v, K %v", small.Runs, small.Mean, r.Routing, r.Committed)
	}
	again := runlengthOf(t, "--router="+file, "--requests=60", "--seed=9")
	path, err = again.path(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := lengthsIn(t, path, 0)
	hazard := func(k int) float64 { return small.hazards[min(k, len(small.hazards))-1] }
	if chi2, df, p, ok := l.Fit(hazard, 0); !ok || p < 1e-3 {
		t.Errorf("its runs are not those that were measured: chi2 %.1f of %d, p %v", chi2, df, p)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "DROP") {
		t.Errorf("a candidate that goes to the large model is not dropped: %v\n%s", err, text)
	}
}

// A session is measured, planned for and run again: the requests come in other
// orders, what models say is all recorded, and the same twice gives the same.
func TestRunlengthOfASession(t *testing.T) {
	sessions := t.TempDir()
	path, err := runlengthOf(t, "--router=r2r", "--param=threshold=0.02", "--requests=30").path(t.Context(), sessions)
	if err != nil {
		t.Fatal(err)
	}
	once := func(jobs string) string {
		c := runlengthOf(t, path, "--seconds=12", "--repeat=2", "-n4", jobs)
		ns, err := c.check()
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.measure(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.predict(t.Context(), r, path, t.TempDir(), ns); err != nil {
			t.Fatal(err)
		}
		if r.DrawnShare != 0 {
			t.Errorf("%v of the answers are not in the recording", r.DrawnShare)
		}
		p := r.Plans[0]
		for _, l := range p.Lines {
			if off := l.ByCorrected/l.Measured.Mean - 1; math.Abs(off) > 0.1 {
				t.Errorf("%s: %.1f tok/s are measured, %.1f predicted", l.Policy, l.Measured.Mean, l.ByCorrected)
			}
		}
		text := r.text(theme.New(theme.Options{ASCII: true}), 100)
		for _, want := range []string{"r2r.lua", "n = 4", "law by BIC", "geometric"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if a, b := once("--jobs=2"), once("--jobs=1"); a != b {
		t.Errorf("two runs at a time\n%s\none\n%s", a, b)
	}
}

// A router that asks a head is run again with the scores that were recorded.
func TestRunlengthOfAHead(t *testing.T) {
	path, err := runlengthOf(t, "--router=r2r_neural", "--param=threshold=0.1", "--requests=20").path(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := runlengthOf(t, path, "--seconds=8", "--repeat=2", "-n4")
	r, err := c.measure(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.predict(t.Context(), r, path, t.TempDir(), []int{4}); err != nil {
		t.Fatal(err)
	}
	share := r.Routing[0][1]
	if r.DrawnShare != 0 || share < 0.02 || share > 0.4 || r.Plans[0].Lines[0].Measured.Mean <= 0 {
		t.Errorf("%v of the answers were drawn, %v were sent on; %+v", r.DrawnShare, share, r.Plans[0].Lines[0])
	}
}

func TestRunlengthRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"is not a number of requests":   {"-n0"},
		"--requests 0":                  {"--requests=0"},
		"--repeat 0":                    {"--repeat=0"},
		"--write: there is no folder":   {"--write=nowhere/a.lua"},
		"--seconds -1":                  {"--seconds=-1"},
		"only the closed loop has":      {"--arrivals=poisson:3"},
		"the session says which router": {"latest", "--router=r2r"},
	} {
		if _, err := runlengthOf(t, args...).check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
