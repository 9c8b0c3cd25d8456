package frontier_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tokenrouter/runtime/frontier"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds text against a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is not what it was; look at the difference, and write it anew with -update:\n%s", name, text)
	}
}

// shown is the table that the golden files are of: two families, so few problems
// that a person can read the CSV.
func shown(t *testing.T) *frontier.Table {
	t.Helper()
	runs := world{n: 48, seed: 20}.sweep()
	for i := range runs {
		for k := range runs[i].Problems {
			runs[i].Problems[k].Family = []string{"story", "sort"}[k%2]
		}
	}
	return table(t, runs, frontier.Options{Resamples: 200, Seed: 1, Against: []string{"random", "r2r", frontier.QueryMix}})
}

func TestGolden(t *testing.T) {
	tab := shown(t)
	text := tab.Text()
	golden(t, "table.txt", text)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(line); n > 124 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.Contains(line, "NaN") || strings.Contains(line, "Inf") || strings.HasSuffix(line, " \n") {
			t.Errorf("%q", line)
		}
	}
	var table strings.Builder
	if err := frontier.WriteCSV(&table, tab); err != nil {
		t.Fatal(err)
	}
	golden(t, "points.csv", table.String())
	rows, err := csv.NewReader(strings.NewReader(table.String())).ReadAll() // as wide each as the head
	if err != nil || len(rows) != 1+len(tab.Rows) {
		t.Fatalf("%d rows for %d points, %v", len(rows), len(tab.Rows), err)
	}
	data, err := json.MarshalIndent(frontier.NewReport(tab), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	some := frontier.NewReport(tab)
	some.Points = some.Points[:3]
	part, err := json.MarshalIndent(some, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(part)+"\n")
	var back frontier.Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	for i := range back.Points {
		p, r := &back.Points[i], &tab.Rows[i]
		if *p.Accuracy.Value != r.Accuracy.Value || (p.TokensPS == nil) != math.IsNaN(r.Point.Rate) || p.Composed != r.Point.Composed() {
			t.Errorf("point %d: %+v for %+v", i, p, r)
		}
		if v, err := strconv.ParseFloat(rows[1+i][6], 64); err != nil || math.Abs(v-r.Accuracy.Value) > 1e-7 {
			t.Errorf("row %d of the CSV has %s for %v", i, rows[1+i][6], r.Accuracy.Value)
		}
	}
}

// Problems without a family have a column with a name where others have one.
func TestProblemsWithoutAFamily(t *testing.T) {
	runs := world{n: 8, seed: 20}.sweep()
	for i := range runs {
		for k := range runs[i].Problems {
			runs[i].Problems[k].Family = []string{"story", ""}[k%2]
		}
	}
	head := regexp.MustCompile(`(?m)^point +story +\(none\)$`)
	if text := table(t, runs, frontier.Options{}).Text(); !head.MatchString(text) {
		t.Errorf("no column for those without a family:\n%s", text)
	}
}

// The intervals hold their figures, shares and accuracies are parts, the two ends are
// where they are, and no point in the Pareto set is dominated by one that was run.
func TestTableInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := world{n: rapid.IntRange(4, 40).Draw(rt, "n"), seed: rapid.Uint64Range(0, 1000).Draw(rt, "seed")}
		s, err := frontier.NewSet(w.sweep(), params, frontier.CostSteps)
		if err != nil {
			rt.Fatal(err)
		}
		tab := frontier.NewTable(s, frontier.Options{Resamples: 20, Seed: w.seed, Against: []string{"random"}})
		for i := range tab.Rows {
			r := &tab.Rows[i]
			for _, f := range []frontier.Figure{r.Accuracy, r.Share} {
				if !(f.Value >= 0 && f.Value <= 1+1e-12 && f.Lo >= 0 && f.Lo <= f.Hi && f.Hi <= 1+1e-12) {
					rt.Fatalf("%s: %+v", r.Point.Name(), f)
				}
			}
			for k := range tab.Rows {
				q := &tab.Rows[k]
				if r.BestShare && q.Point.Series != frontier.QueryBest && q.Share.Value <= r.Share.Value && q.Accuracy.Value > r.Accuracy.Value {
					rt.Fatalf("%s is marked, and %s is better", r.Point.Name(), q.Point.Name())
				}
			}
		}
		if small, large := tab.Row(s.Small), tab.Row(s.Large); small.Share.Value != 0 || large.Share.Value != 1 || large.OfLarge.Lo != 1 && !math.IsNaN(large.OfLarge.Lo) {
			rt.Fatalf("the ends: %+v, %+v", small, large)
		}
		for _, c := range tab.Curves {
			if c.Series == frontier.QueryMix && math.Abs(c.Area.Value-(tab.Row(s.Small).Accuracy.Value+tab.Row(s.Large).Accuracy.Value)/2) > 1e-9 {
				rt.Fatalf("mixing is a straight line where both write as much: %+v", c)
			}
		}
	})
}

var numbers = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)

// The drawing is a document of its own, all of it within its frame, whatever curves
// are called.
func TestDrawing(t *testing.T) {
	tab := shown(t)
	for _, axis := range frontier.Axes() {
		var b strings.Builder
		if err := frontier.NewPlot(tab, axis).WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		if axis != frontier.AxisCost { // which is as the shares are
			golden(t, string(axis)+".svg", b.String())
		}
		drawn(t, b.String())
	}
	runs := world{n: 20, seed: 21}.sweep()
	for i := range runs[2:] {
		runs[2+i].Series = "<a href='x'>&\"\x00\x1b]8;;" + strings.Repeat("w", 50) + strconv.Itoa(i%3)
	}
	var b strings.Builder
	if err := frontier.NewPlot(table(t, runs, frontier.Options{}), frontier.AxisShare).WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	drawn(t, b.String())
}

func drawn(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = true
	marks := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "svg", "style", "rect", "text", "line", "path", "circle", "title":
		default:
			t.Errorf("there is a <%s>", e.Name.Local)
		}
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "x", "x1", "x2", "cx", "y", "y1", "y2", "cy":
				v, err := strconv.ParseFloat(a.Value, 64)
				if err != nil || v < 0 || v > 900 {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
				marks++
			case "d":
				if strings.ContainsAny(a.Value, "NI") || len(numbers.FindAllString(a.Value, -1)) < 3 {
					t.Errorf("a path %q", a.Value)
				}
			case "href", "onload":
				t.Errorf("an attribute %s", a.Name.Local)
			}
		}
	}
	if marks < 20 {
		t.Errorf("only %d places are marked", marks)
	}
}

// The chart has the size that was asked for, both ends and a letter for each curve.
func TestChart(t *testing.T) {
	tab := shown(t)
	for _, axis := range frontier.Axes() {
		golden(t, "chart-"+string(axis)+".txt", frontier.NewPlot(tab, axis).Chart(90, 20))
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := frontier.NewPlot(tab, rapid.SampledFrom(frontier.Axes()).Draw(rt, "axis"))
		columns, rows := rapid.IntRange(60, 160).Draw(rt, "columns"), rapid.IntRange(10, 50).Draw(rt, "rows")
		lines := strings.Split(strings.TrimRight(p.Chart(columns, rows), "\n"), "\n")
		plot := strings.Join(lines[:rows-3], "\n")
		for i, l := range lines {
			if len(l) > columns {
				rt.Fatalf("line %d has %d columns of %d: %q", i, len(l), columns, l)
			}
		}
		if strings.Count(plot, "S") != 1 || strings.Count(plot, "L") != 1 {
			rt.Fatalf("the ends in\n%s", plot)
		}
		for _, l := range p.Lines {
			if !l.Composed && !strings.ContainsRune(plot, rune('a'+l.Number)) && len(l.Dots) > 4 {
				rt.Fatalf("no %c of %s in\n%s", 'a'+l.Number, l.Name, plot)
			}
		}
	})
}
