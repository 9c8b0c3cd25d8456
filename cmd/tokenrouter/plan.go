package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/charmbracelet/colorprofile"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/plan"
	"tokenrouter/tui/theme"
)

const (
	defaultProfile = cost.A100R2R
	defaultPlanN   = "4"
	defaultQuantum = 0.1
)

// planCmd asks the throughput model for B*, without running anything.
type planCmd struct {
	Algo    string   `placeholder:"NAME" help:"Preset of the routing: r2r, citer, collm (with --p), r-stitch (--p01, --p10), me (--weights). Without it the flags given tell which."`
	P       *float64 `name:"p" placeholder:"P" help:"Probability that a step of the small model sends its request to the large one, which sends it back after a token."`
	P01     *float64 `name:"p01" placeholder:"P" help:"r-stitch: probability that a step of the small model sends its request to the large one."`
	P10     *float64 `name:"p10" placeholder:"P" help:"r-stitch: probability that a step of the large model sends it back."`
	Weights string   `placeholder:"W,W[,W]" help:"me: weight of each model, which need not add up to 1."`
	Matrix  string   `name:"P" placeholder:"ROW;ROW" help:"Any routing: a row per model of the probabilities of where a step sends its request, such as '0.8,0.2;0.3,0.7'."`
	Commit  string   `placeholder:"replace|append|ROW;ROW" help:"Tokens that a step commits: replace (none when it sends to a larger model, which writes the position anew), append (always one), or a matrix by from and to (default: append for me, else replace)."`

	N       string  `short:"n" name:"n" placeholder:"N|A-B" help:"Active requests; a range bounds the table of B*(n), and the rest is of its end (default: 4)."`
	Latency string  `placeholder:"T,T[,T]" help:"Step time of each model in ms, small first; 6.0+0.1n grows with the rows n of the batch, such as 6.0+0.1n,27.9+0.5n."`
	Profile string  `placeholder:"NAME|FILE" help:"Step times of a cost profile instead: a built-in name, or a JSON file of one (default: a100-r2r)."`
	Context *int    `placeholder:"TOKENS" help:"Tokens of context that requests stand behind in the mean, for a profile whose step times grow with it (default: 512)."`
	Seats   string  `placeholder:"N[,N]" help:"Most rows of a batch, one number or one per model (default: no bound)."`
	Quantum float64 `default:"0.1" help:"Unit in ms that step times are rounded to (default: ${default})."`

	Method string   `default:"auto" enum:"auto,chain,countsim,fluid" help:"auto, chain (exact), countsim (simulated counts, any N) or fluid (limit of many requests)."`
	MaxP99 *float64 `name:"max-p99" placeholder:"MS" help:"Only thresholds that keep the 99th percentile of the time between two tokens of a request within this."`
	P99    bool     `name:"p99" help:"Measure that percentile for every line of the table, not only for B*, eager and lock-step."`
	FreeB0 bool     `name:"free-b0" help:"Search the threshold of the first model as well; else it is 1."`
	Seed   uint64   `default:"1" help:"Seed of the simulators."`

	Spec string `placeholder:"FILE.json" help:"Read the system from a file instead, - is standard input; docs/cli.md describes it."`
	ID   string `name:"id" placeholder:"ID" help:"With --spec and a file of several systems: which one."`

	JSON    bool   `name:"json" help:"Print one JSON object."`
	ASCII   bool   `name:"ascii" help:"Draw with ASCII characters only."`
	Theme   string `default:"auto" enum:"auto,dark,light" help:"Colours for a dark (also auto) or a light background."`
	Palette string `default:"default" enum:"default,deuteranopia" help:"default, or deuteranopia: colours that are told apart without red and green."`
}

func (c *planCmd) Run() error {
	if c.Spec != "" {
		return c.runSpec(os.Stdout)
	}
	if c.ID != "" {
		return usage(errors.New("--id goes with --spec, and a file of several systems"))
	}
	if b := c.MaxP99; b != nil && !(*b > 0 && *b <= maxStepMS) {
		return usage(fmt.Errorf("--max-p99 %v is no bound; give ms above 0", *b))
	}
	s, err := c.system()
	if err != nil {
		return usage(err)
	}
	r, err := c.report(s)
	if err != nil {
		return c.cure(err)
	}
	return c.print(os.Stdout, r, r.text)
}

// print writes v as JSON, or its text for this terminal.
func (c *planCmd) print(w io.Writer, v any, text func(t *theme.Theme, width int) string) error {
	if c.JSON {
		return printJSON(w, v)
	}
	t := theme.New(theme.Options{
		Profile: colorprofile.Detect(os.Stdout, os.Environ()),
		Light:   c.Theme == "light", Palette: theme.Palette(c.Palette), ASCII: c.ASCII,
	})
	width, _ := size()
	_, err := io.WriteString(w, text(t, width))
	return err
}

// cure adds to a failure of the plan which flag helps.
func (c *planCmd) cure(err error) error {
	switch {
	case errors.Is(err, plan.ErrTooLarge):
		return fmt.Errorf("--method %s: %w; take --method auto or countsim", c.Method, err)
	case errors.Is(err, plan.ErrBound):
		return fmt.Errorf("--max-p99 %v: %w", c.bound(), err)
	}
	return err
}

// runSpec answers for the thresholds that a file gives.
func (c *planCmd) runSpec(w io.Writer) error {
	given := c.routingFlags()
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--algo", c.Algo != ""},
		{"--commit", c.Commit != ""},
		{"--n", c.N != ""},
		{"--latency", c.Latency != ""},
		{"--profile", c.Profile != ""},
		{"--context", c.Context != nil},
		{"--seats", c.Seats != ""},
		{"--quantum", c.Quantum != defaultQuantum},
		{"--max-p99", c.MaxP99 != nil},
		{"--p99", c.P99},
		{"--free-b0", c.FreeB0},
	} {
		if f.given {
			given = append(given, f.name)
		}
	}
	if len(given) > 0 {
		return usage(fmt.Errorf("--spec describes the whole system; leave out %s", given[0]))
	}
	in, err := readSpec(c.Spec, c.ID)
	if err != nil {
		return usage(err)
	}
	s, err := in.spec()
	if err != nil {
		return usage(fmt.Errorf("--spec %s: %w", c.Spec, err))
	}
	if s == nil {
		f := feasibleReply{plan.Feasible(in.B, in.N)}
		return c.print(w, f, f.text)
	}
	r, err := c.reply(s)
	if errors.Is(err, plan.ErrDeadlock) {
		f := feasibleReply{false}
		return c.print(w, f, f.text)
	}
	if err != nil {
		return c.cure(err)
	}
	if r.stderr > 0 {
		fmt.Fprintf(os.Stderr, "tokenrouter: simulated counts, not the chain; the standard error of tok/s is up to %.2g\n", r.stderr)
	}
	return c.print(w, r, r.text)
}

// bound is --max-p99, 0 for none.
func (c *planCmd) bound() float64 {
	if c.MaxP99 == nil {
		return 0
	}
	return *c.MaxP99
}

// number is --n with its default.
func (c *planCmd) number() string { return cmp.Or(c.N, defaultPlanN) }
