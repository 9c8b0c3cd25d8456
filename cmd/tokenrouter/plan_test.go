package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/charmbracelet/colorprofile"
	"pgregory.net/rapid"

	"tokenrouter/runtime/plan"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

func parsePlan(t *testing.T, args ...string) *planCmd {
	t.Helper()
	var c cli
	parser, err := kong.New(&c, words())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"plan"}, args...)); err != nil {
		t.Fatal(err)
	}
	return &c.Plan
}

const vectorsFile = "../../runtime/plan/testdata/vectors.json"

// The command prints what the vectors expect, figure by figure: they have six
// significant digits, as the output has. An entry that is like another lists
// only what differs.
func TestPlanAnswersTheVectors(t *testing.T) {
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	type vector struct {
		ID     string
		Input  map[string]any
		Expect map[string]any
	}
	var file struct{ Vectors, Extra []vector }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 7 || len(file.Extra) < 2 {
		t.Fatalf("%d vectors and %d extra", len(file.Vectors), len(file.Extra))
	}
	for _, v := range slices.Concat(file.Vectors, file.Extra) {
		t.Run(v.ID, func(t *testing.T) {
			got := specJSON(t, "--spec", vectorsFile, "--id", v.ID, "--json")
			for k, want := range v.Expect {
				if !reflect.DeepEqual(got[k], want) {
					t.Errorf("%s is %v, want %v", k, got[k], want)
				}
			}
			if v.Input["like"] != nil {
				return
			}
			if len(got) != len(v.Expect) {
				t.Errorf("%d keys, want %d", len(got), len(v.Expect))
			}
			alone := filepath.Join(t.TempDir(), "input.json")
			in, err := json.Marshal(v.Input)
			if err == nil {
				err = os.WriteFile(alone, in, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := specJSON(t, "--spec", alone, "--json"); len(got) != len(v.Expect) {
				t.Errorf("the input alone gives %v", got)
			}
		})
	}
}

func specJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := parsePlan(t, args...).runSpec(&out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	return got
}

// What the plan searches with B[0] free is found among all vectors: the best of
// the small model's thresholds too.
func TestPlanLooksAtEveryVector(t *testing.T) {
	c := parsePlan(t, "--p", "0.35", "-n", "9")
	s, err := c.system()
	if err != nil {
		t.Fatal(err)
	}
	all, front, err := c.searchAll(&s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for x := 1; x <= s.N; x++ {
		for y := 1; x+y-1 <= s.N; y++ {
			under := s.Spec
			under.B = []int{x, y}
			r, err := plan.Chain(&under)
			if err != nil {
				t.Fatal(err)
			}
			if r.Throughput > all.tokensPerS*(1+1e-9) || (x == 1 && r.Throughput > front.tokensPerS*(1+1e-9)) {
				t.Errorf("B = %v has %v tok/s; found %v and %v", under.B, r.Throughput, all, front)
			}
		}
	}
}

func TestFourDigits(t *testing.T) {
	for x, want := range map[float64]string{
		207.954: "208.0", 63.4317: "63.43", 1.23456: "1.235", 0.0123456: "0.01235", 999.96: "1000",
		1462.6: "1463", 48233.5: "48230", 110.323: "110.3", 9.99961: "10.00",
	} {
		if got := fourDigits(x); got != want {
			t.Errorf("%v gives %s, want %s", x, got, want)
		}
	}
}

// A step time survives being written as --latency takes it.
func TestParseLatency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := plan.Latency{Base: rapid.Float64Range(0, maxStepMS).Draw(t, "base"), PerRow: rapid.Float64Range(0, 1e3).Draw(t, "row")}
		format := rapid.SampledFrom([]string{"%v+%vn", " %v + %v n ", "%.17e+%.17en"}).Draw(t, "format")
		text := fmt.Sprintf(format, want.Base, want.PerRow)
		got, err := parseLatency(text)
		if want.Of(1) == 0 {
			if err == nil {
				t.Fatalf("%q is accepted", text)
			}
			return
		}
		if err != nil || got != want {
			t.Fatalf("%q gives %v, %v; want %v", text, got, err, want)
		}
	})
	for text, want := range map[string]plan.Latency{"6": {Base: 6}, "0.5n": {PerRow: 0.5}, "1e+1": {Base: 10}, "1e+1+2n": {Base: 10, PerRow: 2}} {
		if got, err := parseLatency(text); err != nil || got != want {
			t.Errorf("%q gives %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "n", "+n", "6+n", "6n+1", "6++1n", "nan", "-1+2n", "6+-1n", "0+0n", "Inf"} {
		if got, err := parseLatency(text); err == nil || !strings.Contains(err.Error(), "--latency") {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Whatever the figures and the terminal, no line is wider than it, eager and B*
// are there, ASCII mode is ASCII, and colours only colour.
func TestPlanTextFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawReport(t)
		width := rapid.IntRange(40, 140).Draw(t, "width")
		ascii := rapid.Bool().Draw(t, "ascii")
		plain := r.text(theme.New(theme.Options{Profile: colorprofile.NoTTY, ASCII: ascii}), width)
		colour := r.text(theme.New(theme.Options{Profile: colorprofile.TrueColor, ASCII: ascii}), width)
		if got := escapes.ReplaceAllString(colour, ""); strings.Contains(plain, "\x1b") || !strings.Contains(colour, "\x1b[") || trimmed(got) != trimmed(plain) {
			t.Fatalf("colours change the text:\n%s\n%s", got, plain)
		}
		for line := range strings.Lines(plain) {
			line = strings.TrimSuffix(line, "\n")
			if w := frame.Width(line); w > width {
				t.Fatalf("%d columns in %d: %q", w, width, line)
			}
			if i := strings.IndexFunc(line, func(c rune) bool { return c > '~' || c < ' ' }); ascii && i >= 0 {
				t.Fatalf("not ASCII: %q", line)
			}
		}
		if !strings.Contains(plain, "\nB* ") || !regexp.MustCompile(`(?m)^  (eager|B\*, eager) +\(1`).MatchString(plain) {
			t.Fatalf("B* or eager is missing:\n%s", plain)
		}
		if lines := strings.Count(plain, "\n"); lines > 140 {
			t.Fatalf("%d lines", lines)
		}
	})
}

func trimmed(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// drawReport makes up a report of any size.
func drawReport(t *rapid.T) *planReport {
	models := rapid.IntRange(1, maxPlanModels).Draw(t, "models")
	n := rapid.IntRange(1, 2000).Draw(t, "n")
	figure := rapid.Float64Range(0, 1e7)
	vectorOf := func(b1 int) []int {
		b := ones(models)
		b[models-1] = b1
		return b
	}
	r := &planReport{
		Algo: "matrix", N: n, Models: roles(models), Commit: "matrix", QuantumMS: 0.1, Method: plan.ByCountSim,
		Best: vectorOf(rapid.IntRange(1, n).Draw(t, "best")), TokensPerS: figure.Draw(t, "tok/s"), P99: figure.Draw(t, "p99"),
		StepsPerS: make([]float64, models), BusyFraction: make([]float64, models), MeanBatch: make([]float64, models),
		Eager:    planPoint{B: ones(models), TokensPerS: figure.Draw(t, "eager"), StdErr: figure.Draw(t, "error")},
		Lockstep: planPoint{B: lockstep(n, models), TokensPerS: figure.Draw(t, "lock-step"), P99: math.Pi},
		flat:     rapid.Bool().Draw(t, "flat"), Rule: rapid.IntRange(0, n).Draw(t, "rule"),
		MaxP99:   rapid.SampledFrom([]float64{0, 70}).Draw(t, "bound"),
		Warnings: rapid.SliceOfN(rapid.StringMatching(`([a-z*]{1,12} ){0,30}[0-9]{1,3} %`), 0, 3).Draw(t, "warnings"),
	}
	for i := range models {
		r.LatencyMS = append(r.LatencyMS, specLatency{figure.Draw(t, "base"), figure.Draw(t, "row")})
		row := make([]float64, models)
		row[i] = rapid.Float64Range(0, 1).Draw(t, "p")
		r.Routing, r.Committed = append(r.Routing, row), append(r.Committed, row)
		r.StepsPerS[i] = figure.Draw(t, "steps")
	}
	most := rapid.IntRange(1, n).Draw(t, "points")
	for b := 1; b <= n; b++ {
		if b <= most || b == r.Best[models-1] {
			r.Curve = append(r.Curve, planPoint{B: vectorOf(b), TokensPerS: figure.Draw(t, "point"), P99: figure.Draw(t, "p99")})
		}
		if len(r.Curve) > 100 && b < r.Best[models-1] {
			b = r.Best[models-1] - 1
		} else if len(r.Curve) > 100 {
			break
		}
	}
	for k := 1; k <= min(n, 300); k++ {
		r.Table = append(r.Table, planRow{N: k, Best: vectorOf(k), TokensPerS: r.TokensPerS, Interpolated: k > 32 && k%7 > 0 && k < n, OverBound: k%5 == 0})
	}
	return r
}

// The chapter of docs/cli.md names every key and every flag.
func TestPlanIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, ok := strings.Cut(string(text), "\n## `tokenrouter plan`")
	if !ok {
		t.Fatal("no chapter")
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var names []string
	for _, v := range []any{planReport{}, planBand{}, planPoint{}, planRow{}, specReply{}, specInput{}, specLatency{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[planCmd]()) {
		name := f.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		names = append(names, "--"+name)
	}
	for _, name := range names {
		if !regexp.MustCompile("[`{\\s\"|]" + regexp.QuoteMeta(name) + "[`},\\s\"|:]").MatchString(chapter) {
			t.Errorf("%s is not documented", name)
		}
	}
}
