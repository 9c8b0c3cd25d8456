package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/workload"
)

// The flags of the routing say the same to chance as to plan: the knobs between
// the models are the matrix.
func TestChanceKnobs(t *testing.T) {
	for _, c := range []struct {
		args   []string
		models int // 0: as many as there are
		want   map[string]float64
	}{
		{
			[]string{"--p=0.35"},
			0,
			map[string]float64{"small_large": 0.35, "large_small": 1, "small_middle": 0, "middle_small": 1, "middle_large": 0, "replace": 1},
		},
		{
			[]string{"--p01=0.2", "--p10=0.5"},
			0,
			map[string]float64{"small_large": 0.2, "large_small": 0.5, "small_middle": 0, "middle_small": 1, "middle_large": 0, "replace": 1},
		},
		{
			[]string{"--weights=6,3,1"},
			3,
			map[string]float64{
				"small_middle": 0.3, "small_large": 0.1, "middle_small": 0.6, "middle_large": 0.1,
				"large_small": 0.6, "large_middle": 0.3, "replace": 0,
			},
		},
		{[]string{"--P=0.8,0.2;0.3,0.7"}, 2, map[string]float64{"small_large": 0.2, "large_small": 0.3, "replace": 1}},
	} {
		f := &parsed(t, &runCmd{}, c.args...).clusterFlags
		if err := f.settle(); err != nil {
			t.Fatal(c.args, err)
		}
		knobs, err := f.params()
		if err != nil {
			t.Fatal(c.args, err)
		}
		if d := cmp.Diff(c.want, knobs); d != "" || f.models != c.models || f.Router != chance {
			t.Errorf("%v: router %s of %d models\n%s", c.args, f.Router, f.models, d)
		}
	}
}

// What is not given depends on who writes the tokens, and settling twice is as
// settling once.
func TestSettle(t *testing.T) {
	drawn := &parsed(t, &runCmd{}).clusterFlags
	models := &parsed(t, &runCmd{}, "--tokens=models", "--n=7").clusterFlags
	live := &parsed(t, &runCmd{}, "--clock=live").clusterFlags
	for _, f := range []*clusterFlags{drawn, models, live, drawn} {
		if err := f.settle(); err != nil {
			t.Fatal(err)
		}
	}
	if drawn.Tokens != tokensDrawn || drawn.Models != "small,large" || *drawn.BatchTokens != drawnBudget || drawn.KVTokens != nil || drawn.MaxTokens != nil || drawn.maxNew != drawnMaxNew || *drawn.Speed != 0 {
		t.Errorf("drawn tokens: %+v", drawn)
	}
	if models.Concurrency != 7 || *models.KVTokens != modelKVTokens || models.maxNew != modelMaxNew || models.Router != "r2r" || *models.Speed != 0 {
		t.Errorf("models in virtual time: %+v", models)
	}
	if live.Tokens != tokensModels || *live.Speed != 1 {
		t.Errorf("live: %+v", live)
	}
}

func TestTensorParallel(t *testing.T) {
	p := &cost.Profile{Name: "p", Rows: []cost.Row{{Role: "small"}, {Role: "large", TP: 2}}}
	for text, want := range map[string][]float64{
		"1,2": {1, 1}, "2,4": {0.5, 0.5}, "1,1": {1, 2}, "4:0.6,8:0.3": {0.6, 0.3}, " 1 , 2 ": {1, 1},
	} {
		if got, err := tensorParallel(text, p); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1", "1,2,3", "0,1", "1,x", "1,2:", "1,2:0", "1,2:-1", "1,2:NaN", "1,2:101", ","} {
		if got, err := tensorParallel(text, p); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestContention(t *testing.T) {
	f := clockFlags{Contention: []string{"small@large:1.8", "large@small:1"}}
	got, err := f.contention(2)
	if err != nil || !cmp.Equal(got, [][]float64{{1, 1.8}, {1, 1}}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "small", "small@large", "small:2", "small@small:2", "small@middle:2", "small@large:0.9", "small@large:NaN", "a@b:2"} {
		f.Contention = []string{text}
		if got, err := f.contention(2); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	f.Contention = []string{"small@large:1.8", "small@large:2"}
	if got, err := f.contention(2); err == nil {
		t.Errorf("twice: %v", got)
	}
}

// A flag is the latency of messages whatever the profile has, 0 too.
func TestLatencyFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "2ms": 2 * time.Millisecond} {
		f := &parsed(t, &runCmd{}, "--latency="+text).clusterFlags
		if err := f.settle(); err != nil {
			t.Fatal(err)
		}
		p, err := f.profile(2, func(p *cost.Profile) error {
			p.LatencyMs = 5
			return nil
		})
		if err != nil || p.Latency() != want {
			t.Errorf("%s: %v, %v", text, p.Latency(), err)
		}
	}
}

// --max-tokens holds tasks that ask for more, and those that ask for nothing.
func TestCapped(t *testing.T) {
	most := 10
	f := clusterFlags{loadFlags: loadFlags{MaxTokens: &most, maxNew: most}}
	s := f.cap(workload.NewList([]workload.Task{{MaxTokens: 3}, {MaxTokens: 30}, {Prompt: []event.Token{1}}}))
	for _, want := range []int{3, 10, 10} {
		if task, ok := s.Next(); !ok || task.MaxTokens != want {
			t.Errorf("%+v, want %d", task, want)
		}
	}
	if _, ok := s.Next(); ok {
		t.Error("there is one more")
	}
}

// A line of progress is of session time: tokens/s as well.
func TestProgressLine(t *testing.T) {
	seen := watch{done: 3, tokens: 5000}
	for _, c := range []struct {
		p       progress
		virtual bool
		want    string
	}{
		{progress{}, false, "3 requests  100 tok/s  50s"},
		{progress{total: 12}, false, "[######------------------] 3/12 requests  100 tok/s  50s"},
		{progress{horizon: 100 * time.Second}, true, "[############------------] 3 requests  100 tok/s  50s of virtual time in 2s"},
	} {
		if got := c.p.line(&seen, 50*time.Second, 2*time.Second, c.virtual); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// docs/cli.md has every flag of board, run and sim, and every key of the summary.
func TestRunIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var c cli
	parser, err := kong.New(&c, words())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Children {
		if !slices.Contains([]string{"board", "run", "sim"}, node.Name) {
			continue
		}
		for _, f := range node.Flags {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[reportJSON]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	if len(names) < 100 {
		t.Fatalf("only %d names", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile("[`{\\s]" + regexp.QuoteMeta(name) + "[`},\\s=\\]]").Match(text) {
			t.Errorf("%s is not documented", name)
		}
	}
}

// A trace and a recorded session are run to their end; what has none is not.
func TestWhatEnds(t *testing.T) {
	seven := 7
	for _, c := range []struct {
		run   runCmd
		limit int
	}{
		{runCmd{}, 100},
		{runCmd{Requests: &seven}, 7},
		{runCmd{Seconds: 3}, 0},
		{runCmd{clusterFlags: clusterFlags{loadFlags: loadFlags{Arrivals: "poisson:2"}}}, 100},
		{runCmd{clusterFlags: clusterFlags{loadFlags: loadFlags{Arrivals: "trace:a.csv"}}}, 0},
		{runCmd{clusterFlags: clusterFlags{loadFlags: loadFlags{Arrivals: "trace:a.csv"}}, Requests: &seven}, 7},
		{runCmd{clusterFlags: clusterFlags{clockFlags: clockFlags{Tokens: "latest"}}}, 0},
		{runCmd{clusterFlags: clusterFlags{clockFlags: clockFlags{Tokens: tokensDrawn}}}, 100},
	} {
		if w, err := c.run.todo(); err != nil || w.limit != c.limit {
			t.Errorf("%+v: %d requests, %v; want %d", c.run, w.limit, err, c.limit)
		}
	}
}
