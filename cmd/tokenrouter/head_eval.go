package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/eval"
	"tokenrouter/algos/head/train"
)

// headEvalCmd judges a head by rows.
type headEvalCmd struct {
	Head string `arg:"" placeholder:"HEAD" help:"A head, or a signal: entropy, top1 or margin."`
	Data string `arg:"" placeholder:"FILE.safetensors" help:"Rows that head collect gathered; of those that the head was trained on only the held-out problems are judged."`
	headFlags

	Label     string   `placeholder:"LABEL" help:"What is to be told apart: outcome, mismatch or query (default: what the rows were collected for)."`
	Against   []string `sep:"," default:"entropy" placeholder:"SCORE" help:"Heads and signals beside it on the same rows (default: ${default})."`
	HeldOut   *float64 `placeholder:"S" help:"Share of the problems that was held out when the head was trained (default: as its manifest says)."`
	Resamples int      `default:"400" help:"Resamples of the problems that the 95 % intervals are taken from (default: ${default})."`
	JSON      bool     `help:"Print one JSON object."`
}

// evaluated is the stable form of head eval --json.
type evaluated struct {
	Data    string         `json:"data"`
	Label   string         `json:"label"`
	HeldOut bool           `json:"held_out_only"` // the head was trained on the others
	Scores  []evaluatedOne `json:"scores"`
}

type evaluatedOne struct {
	Score string `json:"score"`
	*eval.Report
}

func (c *headEvalCmd) Run() error {
	lib, err := c.library()
	if err != nil {
		return usage(err)
	}
	rows, err := dataset.Load(c.Data)
	if err != nil {
		return usage(fmt.Errorf("rows: %w", err))
	}
	label := dataset.Label(c.Label)
	if label == "" {
		label = rows.Meta.Label
	}
	labels, err := rows.Label(label)
	if err != nil {
		return usage(err)
	}
	if c.Resamples < 0 || c.Resamples > 100_000 || c.HeldOut != nil && !(*c.HeldOut > 0 && *c.HeldOut <= 1) {
		return usage(errors.New("--resamples is 0 to 100000, --held-out a share above 0"))
	}
	out := evaluated{Data: c.Data, Label: string(label)}
	var heads []*head.Head
	names := append([]string{c.Head}, slices.DeleteFunc(slices.Clone(c.Against), func(n string) bool { return n == c.Head })...)
	keep := slices.Repeat([]bool{true}, rows.Len())
	for _, name := range names {
		if _, ok := rowSignal(name); ok {
			heads = append(heads, nil)
			continue
		}
		h, err := lib.Get(name)
		if err == nil {
			err = cmp.Or(h.Fits("small", rows.Hashes["small"], rows.Hidden), h.Fits("large", rows.Hashes["large"], rows.Hidden))
		}
		if err != nil {
			return usage(err)
		}
		heads = append(heads, h)
		if seed, ok := trainedOn(h.Manifest(), rows); ok {
			share, err := c.heldOut(h.Manifest())
			if err != nil {
				return usage(err)
			}
			out.HeldOut = true
			for i := range keep {
				keep[i] = keep[i] && train.HeldOut(seed, rows.Number(i), share)
			}
		}
	}
	ctx, stop := interruptible()
	defer stop()
	for i, name := range names {
		scores, small, err := rowScores(ctx, name, heads[i], rows, keep)
		if err != nil {
			return err
		}
		r, err := c.report(scores, small, labels, rows, keep, heads[i] != nil)
		if err != nil {
			return usage(err)
		}
		out.Scores = append(out.Scores, evaluatedOne{name, r})
	}
	if c.JSON {
		return printJSON(os.Stdout, out)
	}
	return out.print(os.Stdout)
}

// heldOut is the share of the problems that a head was not trained on.
func (c *headEvalCmd) heldOut(m *head.Manifest) (float64, error) {
	switch {
	case c.HeldOut != nil && m.HeldOut > 0 && *c.HeldOut > m.HeldOut:
		return 0, fmt.Errorf("--held-out %v: the head %s was trained on all problems but %v of them", *c.HeldOut, m.Name, m.HeldOut)
	case c.HeldOut != nil:
		return *c.HeldOut, nil
	case m.HeldOut == 0:
		return 0, fmt.Errorf("the head %s was trained on problems of these rows, and its manifest does not say which share was held out; give --held-out, or rows of another seed", m.Name)
	}
	return m.HeldOut, nil
}

// trainedOn says whether a head was trained on rows of the same problems, and the
// seed by which they were held out.
func trainedOn(m *head.Manifest, rows *dataset.Rows) (split uint64, ok bool) {
	for _, s := range m.Seeds {
		switch s.For {
		case seedTrain:
			split = s.Seed
		case seedData:
			ok = s.Seed == rows.Seed && strings.HasPrefix(m.Data, rows.Workload+",")
		}
	}
	return split, ok
}

// rowSignal is a signal of a row, and whether a high one speaks for the small model.
func rowSignal(name string) (of func(s []float32) float64, ok bool) {
	of, ok = map[string]func(s []float32) float64{
		"entropy": func(s []float32) float64 { return float64(s[0]) },
		"top1":    func(s []float32) float64 { return -float64(s[1]) },
		"margin":  func(s []float32) float64 { return -float64(s[1] - s[2]) },
	}[name]
	return of, ok
}

// rowScores scores the rows that are kept; small says that a high score speaks for
// the small model.
func rowScores(ctx context.Context, name string, h *head.Head, rows *dataset.Rows, keep []bool) (scores []float64, small bool, err error) {
	of, _ := rowSignal(name)
	if h != nil {
		if k := h.Manifest().Spec.TopLogits(); k > rows.TopK {
			return nil, false, usage(fmt.Errorf("the head %s reads %d logits, the rows have %d; collect with --top-logits %[2]d", name, k, rows.TopK))
		}
		if h.Manifest().Spec.Has("embedding") && !rows.Embedded {
			return nil, false, usage(fmt.Errorf("the head %s reads embeddings, and the rows have none; collect with --embedding", name))
		}
	}
	var ws head.Workspace
	for i := range rows.Len() {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, false, headsInterrupted()
		}
		if !keep[i] {
			continue
		}
		if h == nil {
			scores = append(scores, of(rows.Measure(i)))
			continue
		}
		in := rows.Input(i, h.Manifest().Spec.TopLogits())
		s, err := h.Score(&ws, &in)
		if err != nil {
			return nil, false, err
		}
		scores = append(scores, s)
	}
	return scores, h != nil && h.Manifest().Meaning == "small", nil
}

// report judges scores of the rows that are kept. Those that speak for the small
// model are turned round: labels speak for the large one.
func (c *headEvalCmd) report(scores []float64, small bool, labels []uint8, rows *dataset.Rows, keep []bool, probabilities bool) (*eval.Report, error) {
	groups, _ := rows.Groups()
	var kept []uint8
	var problem []int32
	last, n := int32(-1), int32(-1)
	for i, k := range keep {
		if !k {
			continue
		}
		if groups[i] != last {
			last = groups[i]
			n++
		}
		kept, problem = append(kept, labels[i]), append(problem, n)
	}
	if small {
		for i, s := range scores {
			scores[i] = 1 - s
		}
	}
	o := eval.Defaults()
	o.Resamples, o.Probabilities = c.Resamples, probabilities
	return eval.Of(scores, kept, problem, o)
}

func (e *evaluated) print(to io.Writer) error {
	var b strings.Builder
	r := e.Scores[0].Report
	which := ""
	if e.HeldOut {
		which = " that were held out in training"
	}
	fmt.Fprintf(&b, "%s: %d rows of %d problems%s, %d labelled 1 by %s (%.2f %%)\nfigures with 95 %% intervals over resampled problems\n\n",
		e.Data, r.Rows, r.Problems, which, r.Positives, e.Label, percentOf(r.Positives, r.Rows))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, of func(r *eval.Report) string) {
		fmt.Fprint(w, name)
		for i := range e.Scores {
			fmt.Fprint(w, "\t", of(e.Scores[i].Report))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "SCORE")
	for i := range e.Scores {
		fmt.Fprint(w, "\t", e.Scores[i].Score)
	}
	fmt.Fprintln(w)
	row("ROC AUC", func(r *eval.Report) string { return figureText(r.AUC, "%.4f", 1) })
	row("average precision", func(r *eval.Report) string { return figureText(r.Precision, "%.4f", 1) })
	for i, s := range r.Shares {
		row(fmt.Sprintf("share at recall %g", s.At), func(r *eval.Report) string { return figureText(r.Shares[i].Figure, "%.2f %%", 100) })
	}
	for i, s := range r.Recalls {
		row(fmt.Sprintf("recall at share %g", s.At), func(r *eval.Report) string { return figureText(r.Recalls[i].Figure, "%.3f", 1) })
	}
	probability := func(of func(c *eval.Calibration) eval.Figure) func(r *eval.Report) string {
		return func(r *eval.Report) string {
			if r.Calibration == nil {
				return "-"
			}
			return figureText(of(r.Calibration), "%.4f", 1)
		}
	}
	row("Brier", probability(func(c *eval.Calibration) eval.Figure { return c.Brier }))
	row("calibration error", probability(func(c *eval.Calibration) eval.Figure { return c.ECE }))
	if err := w.Flush(); err != nil {
		return err
	}
	if c := r.Calibration; c != nil {
		fmt.Fprintf(&b, "\nreliability of %s\n", e.Scores[0].Score)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SCORES\tROWS\tMEAN\tLABELLED 1")
		for _, bin := range c.Bins {
			if bin.Rows > 0 {
				fmt.Fprintf(w, "%.1f to %.1f\t%d\t%.4f\t%.4f\n", bin.From, bin.To, bin.Rows, bin.Score, bin.Rate)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func figureText(f eval.Figure, format string, times float64) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", times*f.Value, times*f.Low, times*f.High)
}
