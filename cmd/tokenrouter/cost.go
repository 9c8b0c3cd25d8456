package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"tokenrouter/runtime/cost"
)

// costCmd is about cost profiles: how long a step of a model takes.
type costCmd struct {
	List costListCmd `cmd:"" help:"List the built-in cost profiles."`
	Show costShowCmd `cmd:"" help:"Show what a cost profile says and how good it is."`
	Fit  costFitCmd  `cmd:"" help:"Fit a cost profile from the batches of a recorded session."`
}

// costListCmd lists what --profile takes by name.
type costListCmd struct{}

func (costListCmd) Run() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tSETS\tSOURCE")
	for _, name := range cost.Names() {
		p, err := cost.Lookup(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, strings.Join(setsOf(&p), ", "), p.Source)
	}
	return w.Flush()
}

func setsOf(p *cost.Profile) []string {
	var sets []string
	for i := range p.Rows {
		if s := p.Rows[i].Set(); !slices.Contains(sets, s) {
			sets = append(sets, s)
		}
	}
	return sets
}

// costShowCmd shows one profile.
type costShowCmd struct {
	Profile string `arg:"" placeholder:"NAME|FILE.json" help:"A built-in profile, or a JSON file of one."`
	Context int    `default:"512" help:"Tokens of context that the rows of the step times shown stand behind (default: ${default})."`
	JSON    bool   `name:"json" help:"Print the file form, which --profile takes from a file."`
}

func (c *costShowCmd) Run() error {
	p, err := readProfile(c.Profile)
	if err == nil && (c.Context < 0 || c.Context > maxContext) {
		err = fmt.Errorf("--context %d; give 0 to %d tokens", c.Context, maxContext)
	}
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		return p.Write(os.Stdout)
	}
	return printProfile(os.Stdout, &p, c.Context)
}

// Tokens of context of the rows that step times are shown for, and their bound.
const (
	defaultContext = 512
	maxContext     = 100_000_000
)

// printProfile is a profile in words: what steps take, what they are made of, and
// how good the figures are.
func printProfile(to io.Writer, p *cost.Profile, ctx int) error {
	var out strings.Builder
	fmt.Fprintf(&out, "profile   %s\n", p.Name)
	if p.Source != "" {
		fmt.Fprintf(&out, "source    %s\n", p.Source)
	}
	if p.LatencyMs > 0 {
		fmt.Fprintf(&out, "message   %.4g ms from one subserver to another\n", p.LatencyMs)
	}
	fmt.Fprintf(&out, "\nstep times in ms, decode rows behind %d tokens of context, or a prompt of 512 tokens\n", ctx)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROLE\tMODEL\tSET\t1 ROW\t8 ROWS\t64 ROWS\tPROMPT\tBETWEEN\tKV TOKENS")
	for i := range p.Rows {
		r := &p.Rows[i]
		fmt.Fprintf(w, "%s\t%s\t%s", r.Role, dash(r.Model), r.Set())
		for _, rows := range []int{1, 8, 64} {
			b := cost.Decoding(rows, ctx)
			fmt.Fprintf(w, "\t%.4g", p.Step(i, &b).Seconds()*1e3)
		}
		var prompt cost.Batch
		prompt.Add(512, 0, true)
		fmt.Fprintf(w, "\t%.4g\t%s\t%s\n", p.Step(i, &prompt).Seconds()*1e3, between(r), kvText(r.KVTokens))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range p.Rows {
		printRow(&out, &p.Rows[i])
	}
	_, err := io.WriteString(to, out.String())
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func kvText(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// between is the overhead of a row.
func between(r *cost.Row) string {
	switch {
	case r.Overhead == 0 && r.OverheadPerRow == 0:
		return "-"
	case r.OverheadPerRow == 0:
		return fmt.Sprintf("%.3g", r.Overhead)
	}
	return fmt.Sprintf("%.3g+%.3gn", r.Overhead, r.OverheadPerRow)
}

// printRow lists the coefficients of a row beside the range that they were
// measured in, and how good they are.
func printRow(out *strings.Builder, r *cost.Row) {
	fmt.Fprintf(out, "\n%s", r.Role)
	if r.TP > 0 {
		fmt.Fprintf(out, ", on %d %s", r.TP, plural(r.TP, "device"))
	}
	out.WriteByte('\n')
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range r.Terms() {
		fmt.Fprintf(w, "  %s\t%.7g\t%s", t.Key, t.Ms, t.Of)
		if m := t.Measured; m != nil {
			fmt.Fprintf(w, "\tfitted from %.6g to %.6g", m[0], m[1])
		}
		fmt.Fprintln(w)
	}
	w.Flush() // into memory
	for _, s := range []struct {
		of    *cost.Stalls
		where string
	}{{r.Stalls, "steps"}, {r.OverheadStalls, "times between steps"}} {
		if s.of != nil {
			fmt.Fprintf(out, "  stalls, drawn beside the coefficients: %.2g %% of the %s are longer by %.3g ms in the mean, %.3g ms at most\n",
				100*s.of.Share, s.where, s.of.Mean(), slices.Max(s.of.Ms))
		}
	}
	q := r.Quality
	if q == nil {
		return
	}
	fmt.Fprintf(out, "  fitted on %d batches; %d others: %s, R2 %.3f\n", q.Batches, q.All.N, fitErrors(q.All), q.R2)
	if q.Prefill.N > 0 {
		fmt.Fprintf(out, "    with prefill (%d): %s\n", q.Prefill.N, fitErrors(q.Prefill))
	}
	if q.Decode.N > 0 {
		fmt.Fprintf(out, "    decode only (%d): %s\n", q.Decode.N, fitErrors(q.Decode))
	}
	if q.Stretch > 0 {
		fmt.Fprintf(out, "    with stalls all batches took %.3f times what the coefficients say\n", q.Stretch)
	}
	if len(q.Zeroed) > 0 {
		fmt.Fprintf(out, "    came out as 0: %s\n", strings.Join(q.Zeroed, ", "))
	}
}

func fitErrors(e cost.Errors) string {
	return fmt.Sprintf("MAPE %.2f %%, bias %+.2f %%", 100*e.MAPE, 100*e.Bias)
}
