package main

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tokenrouter/runtime/ladder"
)

// griddled is a grid of runs that are next to nothing.
func griddled(t *testing.T, args ...string) (*gridRun, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // for the crash file
	var cmd gridCmd
	parser, err := kong.New(&cmd)
	if err == nil {
		_, err = parser.Parse(append([]string{"--routers=" + t.TempDir(), "-n2", "--repeat=2", "--length=0.02", "--workloads=light"}, args...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd.prepare()
}

func printed(t *testing.T, g *gridRun) gridJSON {
	t.Helper()
	var out strings.Builder
	g.cmd.JSON = true
	if err := g.print(&out); err != nil {
		t.Fatal(err)
	}
	var got gridJSON
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A grid that was stopped goes on where it was, and what comes out does not depend
// on that nor on how many runs are made at a time. The parts of a ratio multiply to
// it.
func TestGridGoesOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kept.jsonl")
	args := []string{"--algos=citer,me", "--rungs=lockstep,async,tokenrouter", "--profile=qwen3-h100"}
	whole, err := griddled(t, append(args, "--jobs=3")...)
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.run(t.Context(), func(*ladder.Cell) error { return nil }); err != nil {
		t.Fatal(err)
	}
	again, err := griddled(t, append(args, "--jobs=1")...)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		keep, cells, err := openKept(name, "grid", &again.about, wantedByAny(again.grids))
		if err != nil {
			t.Fatal(err)
		}
		again.cells = cells
		if want := 4 * round; len(cells) != want {
			t.Fatalf("%d runs are kept, want %d", len(cells), want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		err = again.run(ctx, func(c *ladder.Cell) error {
			if runs++; round == 0 && runs == 4 {
				cancel()
			}
			return keep.add(c)
		})
		cancel()
		if e, ok := err.(*exitError); round == 0 && (!ok || e.code != exitInterrupted) || round == 1 && err != nil {
			t.Fatalf("round %d ends with %v", round, err)
		}
		if err := keep.close(); err != nil {
			t.Fatal(err)
		}
	}
	a, b := printed(t, whole), printed(t, again)
	a.WallS, b.WallS = 0, 0
	was, _ := json.Marshal(a)
	is, _ := json.Marshal(b)
	if string(was) != string(is) {
		t.Errorf("at once\n%s\nin two goes, one run at a time\n%s", was, is)
	}
	found := false
	for _, c := range a.Tables {
		for _, s := range c.Over {
			product := 1.0
			for _, p := range s.Parts {
				product *= p.Ratio
			}
			if math.Abs(product/s.Total.Ratio-1) > 1e-9 {
				t.Errorf("%s over %s, %s: the parts make %v, the total is %v", c.Algo, s.Rung, s.Key, product, s.Total.Ratio)
			}
			// The large model computes the whole text for each of CITER's tokens.
			if c.Algo == "citer" && s.Rung == ladder.Recompute && s.Key == ladder.Throughput {
				found = true
				if r := s.Parts[ladder.Reprefill].Ratio; r < 1.02 {
					t.Errorf("what is computed again costs %v", r)
				}
			}
		}
	}
	if !found {
		t.Error("citer does not stand beside what its official code does")
	}
	if slices.ContainsFunc(a.Tables[1].Rungs, func(r ladder.RungJSON) bool { return r.Rung == ladder.Recompute }) {
		t.Error("me is run as official code of another algorithm")
	}
}

func TestGridRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`no algorithm "r2d2"`:           {"--algos=r2d2"},
		`no rung "eager"`:               {"--rungs=eager"},
		`"0" is not a number`:           {"-n0"},
		"light is named twice":          {"--workloads=light,light"},
		"no workload":                   {"--workloads=long"},
		"--repeat 0":                    {"--repeat=0"},
		"--length 0":                    {"--length=0"},
		`"x" is no algorithm`:           {"--process=x=y.lua"},
		"not of the form":               {"--param=small_large=1"},
		"is no algorithm of this":       {"--algos=me", "--param=r2r.small_large=1"},
		"exclude each other":            {"--json", "--csv"},
		"citer: ":                       {"--algos=citer", "--param=citer.nonsense=1"},
		"cost profile \"x\" is unknown": {"--profile=x"},
	} {
		if _, err := griddled(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
