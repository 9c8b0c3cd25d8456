package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/frontier"
	"tokenrouter/scripting/near"
)

// frontierCmd shows what sweeps came to.
type frontierCmd struct {
	Files  []string `arg:"" optional:"" name:"file" help:"Files of a sweep; several of them are one if they are of the same problems."`
	Choose string   `placeholder:"FILE" help:"With --report: choose the setting of each router on this sweep, the one with the fewest large tokens that keeps enough right answers."`
	Report string   `placeholder:"FILE" help:"With --choose: a sweep over other problems, on which what was chosen is reported."`
	Keep   float64  `default:"0.99" placeholder:"PART" help:"With --choose: part of the right answers of the large model that is enough (default: ${default})."`
	tableFlags
}

// tableFlags say what is made of points.
type tableFlags struct {
	Cost          string `name:"cost" default:"steps" enum:"steps,tokens,positions" help:"What costs, times the parameters of the model: steps (each row that gave a candidate, dropped ones too), tokens (who wrote it, as R2R counts), positions (all that was computed) (default: ${default})."`
	Resamples     int    `default:"2000" placeholder:"N" help:"Resamples of the problems that intervals are of; 0 = no intervals (default: ${default})."`
	BootstrapSeed uint64 `default:"1" help:"Seed of the resamples (default: ${default})."`
	Range         string `placeholder:"FROM:TO" help:"Shares of large tokens that areas and APGR are of, such as 0:0.2 (default: all)."`
	Against       string `default:"random,r2r,query mix" placeholder:"CURVE,..." help:"Curves that the others are held against; points against the first (default: ${default})."`
	X             string `name:"x" default:"share" enum:"share,rate,cost" help:"What right answers are drawn against (default: ${default})."`
	SVG           string `name:"svg" placeholder:"FILE" help:"Draw the curves into a file."`
	CSV           bool   `name:"csv" help:"Print a line for each point."`
	JSON          bool   `name:"json" help:"Print one JSON object."`

	from, to float64
}

// maxResamples bounds what may be asked for.
const maxResamples = 1_000_000

func (f *tableFlags) check() error {
	switch {
	case f.CSV && f.JSON:
		return errors.New("--json and --csv exclude each other")
	case f.Resamples < 0 || f.Resamples > maxResamples:
		return fmt.Errorf("--resamples %d is outside 0 to %d", f.Resamples, maxResamples)
	}
	if f.SVG != "" {
		if err := hasFolder(f.SVG); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if f.Range == "" {
		return nil
	}
	from, to, ok := strings.Cut(f.Range, ":")
	var err1, err2 error
	f.from, err1 = strconv.ParseFloat(from, 64)
	f.to, err2 = strconv.ParseFloat(to, 64)
	if !ok || err1 != nil || err2 != nil || !(f.from >= 0 && f.from < f.to && f.to <= 1) {
		return fmt.Errorf("--range %q is not of the form 0:0.2, two shares from 0 to 1", f.Range)
	}
	return nil
}

// table measures points.
func (f *tableFlags) table(runs []frontier.Run, about *sweepAbout) (*frontier.Table, error) {
	set, err := frontier.NewSet(runs, about.params(), frontier.CostOf(f.Cost))
	if err != nil {
		return nil, err
	}
	var against []string
	for name := range strings.SplitSeq(f.Against, ",") {
		against = append(against, strings.TrimSpace(name))
	}
	return frontier.NewTable(set, frontier.Options{Resamples: f.Resamples, Seed: f.BootstrapSeed, From: f.from, To: f.to, Against: against}), nil
}

func (f *frontierCmd) Run() error {
	choosing := f.Choose != "" || f.Report != ""
	var err error
	switch {
	case choosing && (f.Choose == "" || f.Report == ""):
		err = errors.New("--choose and --report go together: the one is chosen on, the other is reported")
	case choosing && len(f.Files) > 0:
		err = errors.New("--choose and --report name the files; leave the others out")
	case choosing && (f.CSV || f.SVG != ""):
		err = errors.New("--csv and --svg are of one sweep; for what was chosen there is --json")
	case !choosing && len(f.Files) == 0:
		err = errors.New("name the file of a sweep; tokenrouter sweep writes one")
	default:
		err = f.check()
	}
	if err != nil {
		return usage(err)
	}
	if choosing {
		return f.choose(os.Stdout)
	}
	s, err := readSweeps(f.Files)
	if err != nil {
		return usage(err)
	}
	t, err := f.table(s.runs, &s.about)
	if err != nil {
		return usage(err)
	}
	if err := f.strange(t); err != nil {
		return usage(err)
	}
	return f.print(os.Stdout, t, s.about.head(t), &s.about)
}

// strange refuses names of --against that no curve has, but for those of its default:
// not every sweep has them.
func (f *tableFlags) strange(t *frontier.Table) error {
	may := []string{"random", "r2r", frontier.QueryMix}
	var series []string
	for i := range t.Curves {
		series = append(series, t.Curves[i].Series)
	}
	for name := range strings.SplitSeq(f.Against, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(series, name) && !slices.Contains(may, name) {
			return fmt.Errorf("--against: there is no curve %q%s", name, near.List(name, "curves", series))
		}
	}
	return nil
}

// print shows a table in the form that is asked for, and draws it.
func (f *tableFlags) print(w io.Writer, t *frontier.Table, head string, about *sweepAbout) error {
	plot := frontier.NewPlot(t, frontier.Axis(f.X))
	if f.SVG != "" {
		if err := writeFile(f.SVG, plot.WriteSVG); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	switch {
	case f.CSV:
		return frontier.WriteCSV(w, t)
	case f.JSON:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			About *sweepAbout `json:"about"`
			frontier.Report
		}{about, frontier.NewReport(t)})
	}
	_, err := io.WriteString(w, onTerminal(head+"\n"+t.Text()+"\n"+plot.Chart(chartWide, chartHigh)))
	return err
}

// Size of the chart in a terminal.
const chartWide, chartHigh = 100, 24

// hasFolder tells before anything is run that a file cannot be written where it is to
// be.
func hasFolder(name string) error {
	dir := filepath.Dir(name)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("there is no folder %s for %s", dir, filepath.Base(name))
	} else if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	return nil
}

// writeFile writes a file whole.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// readSweeps reads files as one sweep. All must be of the same problems and clusters.
// A point that two of them have must be the same in both.
func readSweeps(names []string) (*sweepFile, error) {
	var all *sweepFile
	at := map[string]int{}
	for _, name := range names {
		s, err := readSweep(name)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = &sweepFile{name: name, about: s.about, raw: s.raw}
		} else if diff, err := all.unlike(s, "program"); err != nil || diff != "" {
			return nil, errors.Join(err, fmt.Errorf("%s and %s are not of the same problems and machines (%s); show them one by one", all.name, name, diff))
		}
		for i := range s.runs {
			r := s.runs[i]
			if k, twice := at[r.Key()]; !twice {
				at[r.Key()] = len(all.runs)
				all.runs = append(all.runs, r)
			} else if !reflect.DeepEqual(all.runs[k], r) {
				return nil, fmt.Errorf("%s has another point %q than the files before it; show it by itself", name, r.Key())
			}
		}
	}
	return all, nil
}

// choose prints what is chosen on one sweep and reported on another.
func (f *frontierCmd) choose(w io.Writer) error {
	on, report, err := f.two()
	if err != nil {
		return usage(err)
	}
	var tables [2]*frontier.Table
	for i, s := range []*sweepFile{on, report} {
		if tables[i], err = f.table(s.runs, &s.about); err != nil {
			return usage(fmt.Errorf("%s: %w", s.name, err))
		}
	}
	choices, err := frontier.Choose(tables[0], tables[1], f.Keep)
	if err != nil {
		return usage(fmt.Errorf("--keep: %w", err))
	}
	if f.JSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(map[string]any{
			"keep": f.Keep, "chosen_on": on.about, "reported_on": report.about, "problems": tables[1].Problems,
			"resamples": f.Resamples, "choices": frontier.NewChoices(choices),
		})
	}
	text := fmt.Sprintf("there        %s: %d problems of %s, seed %d\n", f.Choose, tables[0].Problems, on.about.Workload, on.about.Seed) +
		fmt.Sprintf("here         %s: %d problems of %s, seed %d\n", f.Report, tables[1].Problems, report.about.Workload, report.about.Seed) +
		fmt.Sprintf("chosen       there: the fewest large tokens that keep %g of large_only's right answers; reported here\n", f.Keep)
	name, of := intervals(f.Resamples)
	text += fmt.Sprintf("%-13s%s; of here, like tok/s\n\n", name, of)
	_, err = io.WriteString(w, onTerminal(text+frontier.ChoiceText(choices)))
	return err
}

// two reads the sweeps to choose on and to report on, which differ in their problems
// alone.
func (f *frontierCmd) two() (on, report *sweepFile, err error) {
	if on, err = readSweep(f.Choose); err != nil {
		return nil, nil, fmt.Errorf("--choose: %w", err)
	}
	if report, err = readSweep(f.Report); err != nil {
		return nil, nil, fmt.Errorf("--report: %w", err)
	}
	diff, err := on.unlike(report, "program", "seed", "requests", "workload", "concurrency", "batch", "profile", "clock", "speed", "jitter", "contention", "kernels")
	switch {
	case err != nil:
		return nil, nil, err
	case diff != "":
		return nil, nil, fmt.Errorf("%s and %s differ in more than their problems (%s)", on.name, report.name, diff)
	case on.about.sameProblems(&report.about):
		return nil, nil, fmt.Errorf("%s and %s are of the same problems (%s, seed %d); choose on others than are reported: sweep one of them with another --seed, or other --tasks", on.name, report.name, on.about.Workload, on.about.Seed)
	}
	return on, report, sameRouters(on, report)
}

// sameRouters refuses sweeps whose points of one name are of different routers or
// heads: what is chosen would not be what is reported.
func sameRouters(on, report *sweepFile) error {
	for i := range on.runs {
		a := &on.runs[i]
		at := slices.IndexFunc(report.runs, func(b frontier.Run) bool { return b.Key() == a.Key() })
		if at < 0 {
			continue
		}
		b := &report.runs[at]
		switch {
		case a.Router != b.Router:
			return fmt.Errorf("the point %q is of %s in %s and of %s in %s; sweep one of them again", a.Key(), a.Router, on.name, b.Router, report.name)
		case !maps.Equal(a.Heads, b.Heads):
			return fmt.Errorf("the point %q asks other heads in %s than in %s; sweep one of them again", a.Key(), on.name, report.name)
		}
	}
	return nil
}

// head says what a table is of.
func (a *sweepAbout) head(t *frontier.Table) string {
	var out strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-13s%s\n", name, fmt.Sprintf(format, args...))
	}
	var models []string
	for i, m := range a.Models {
		models = append(models, event.Role(event.Peer(i), len(a.Models))+" "+m)
	}
	row("models", "%s", strings.Join(models, " + "))
	posed := fmt.Sprintf("%d of %s, seed %d, the same for all points", t.Problems, a.Workload, a.Seed)
	if t.Set.LeftOut > 0 {
		posed += fmt.Sprintf("; %d left out that some point lacks or that have no answer to check", t.Set.LeftOut)
	}
	row("problems", "%s", posed)
	clock := a.Clock
	if a.Arrivals != closedLoop {
		clock += ", arrivals " + a.Arrivals
	} else {
		clock += fmt.Sprintf(", %d at a time", a.Concurrency)
	}
	row("clock", "%s, batch %s", clock, a.Batch)
	name, text := intervals(t.Options.Resamples)
	row(name, "%s; tok/s is of the one run", text)
	return out.String()
}

// intervals says what intervals are of, and how that line begins.
func intervals(resamples int) (name, text string) {
	if resamples == 0 {
		return "intervals", "none, with --resamples 0"
	}
	return "(a to b)", fmt.Sprintf("95 %% intervals over %d resamples of the problems, paired", resamples)
}
