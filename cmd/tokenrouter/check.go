package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tokenrouter/algos"
	"tokenrouter/algos/head"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
	"tokenrouter/scripting/lint"
)

// checkCmd reads a router without running a session.
type checkCmd struct {
	Router  []string `arg:"" help:"Names of routers, or paths of .lua files."`
	Routers string   `default:"routers" placeholder:"DIR" help:"Folder of your own routers (default: ${default})."`
	Models  []int    `placeholder:"N" help:"Numbers of models that it has to run with (default: 2 and 3 are tried)."`
	Rows    string   `placeholder:"SESSION" help:"Try and measure it on rows of a recorded session: a folder, the name of one, the beginning of a name, or latest."`
	Profile string   `default:"a100-r2r" help:"Cost profile whose steps the cost of a call is held against (default: ${default})."`
	Cost    bool     `default:"true" negatable:"" help:"Measure what a call costs."`
	Strict  bool     `help:"Warnings count as errors."`
	JSON    bool     `help:"Print a JSON object a router."`

	Sessions string `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
	headFlags
}

// checked is what came of a router, and its stable form in --json.
type checked struct {
	File     string         `json:"file"`
	Hash     string         `json:"hash"`    // empty where the text is refused
	Shipped  bool           `json:"shipped"` // it is no file of the user's
	Findings []lint.Finding `json:"findings"`
	Cost     *routerCost    `json:"cost,omitempty"`
}

// routerCost is what the calls of a router take.
type routerCost struct {
	Models  int         `json:"models"`
	Rows    string      `json:"rows"` // "built-in", or the session they are of
	Rounds  int         `json:"rounds"`
	Calls   []lint.Cost `json:"calls"`
	Heads   []headCost  `json:"heads"`
	Profile string      `json:"profile"`
	StepMs  float64     `json:"step_ms"` // a decode step of one row at the small model
	Share   float64     `json:"share"`   // of route, and the heads it names, in that step
}

// headCost is what one score of a head takes.
type headCost struct {
	Name string  `json:"name"`
	Ns   float64 `json:"ns"`
}

func (c *checkCmd) Run() error {
	bad, err := c.check(os.Stdout)
	if err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("errors in %d of %s; see above", bad, counted(len(c.Router), "router"))
	}
	return nil
}

// check writes what it finds and counts the routers with errors.
func (c *checkCmd) check(to io.Writer) (bad int, err error) {
	for _, n := range c.Models {
		if n < 1 || n > 8 {
			return 0, usage(fmt.Errorf("--models %d: give numbers of models from 1 to 8", n))
		}
	}
	profile, err := readProfile(c.Profile)
	if err != nil {
		return 0, usage(fmt.Errorf("--profile: %w", err))
	}
	heads, err := c.library()
	if err != nil {
		return 0, usage(err)
	}
	var rows *sessionRows
	if c.Rows != "" {
		if rows, err = c.recorded(); err != nil {
			return 0, err
		}
	}
	lib := library.Library{Dir: c.Routers, Embedded: algos.Routers()}
	for _, name := range c.Router {
		path, text, shipped, err := lib.Resolve(name)
		if err != nil {
			return 0, usage(err)
		}
		out, err := c.one(cmp.Or(path, filepath.Base(name)), text, heads, rows, &profile)
		if err != nil {
			return 0, err
		}
		out.Shipped = shipped
		if worst, found := lint.Worst(out.Findings); found && (worst == lint.Error || c.Strict && worst == lint.Warning) {
			bad++
		}
		if c.JSON {
			err = printJSON(to, out)
		} else {
			err = out.print(to)
		}
		if err != nil {
			return 0, err
		}
	}
	return bad, nil
}

// one checks one router.
func (c *checkCmd) one(path, text string, heads *head.Library, rows *sessionRows, profile *cost.Profile) (*checked, error) {
	if filepath.Ext(path) != library.Ext {
		path += library.Ext
	}
	scorer := checkScorer{heads}
	p, found := lint.Check(path, text, lint.Options{Models: c.Models, Scorer: scorer})
	out := &checked{File: path, Findings: append([]lint.Finding{}, found...)}
	for i := range out.Findings {
		out.Findings[i].File = path // where to open it
	}
	if p == nil {
		return out, nil
	}
	out.Hash = p.Hash
	if rows != nil {
		if err := rows.try(p, scorer); err != nil {
			e, ok := errors.AsType[*scripting.Error](err)
			if !ok {
				return nil, err
			}
			out.Findings = append(out.Findings, lint.Finding{
				File: path, Line: e.Line, Severity: lint.Error, Rule: "fault", Message: "a fault on a row of " + rows.name + ": " + e.Msg,
			})
		}
	}
	if worst, _ := lint.Worst(out.Findings); worst == lint.Error || !c.Cost {
		return out, nil
	}
	var err error
	out.Cost, err = c.measure(p, heads, rows, profile)
	return out, err
}

// measure times the calls of a router that runs, with as many models as it was
// tried with.
func (c *checkCmd) measure(p *scripting.Program, heads *head.Library, rows *sessionRows, profile *cost.Profile) (*routerCost, error) {
	out := &routerCost{Rows: "built-in", Rounds: lint.Rounds, Profile: profile.Name, Heads: []headCost{}}
	models := c.Models
	if len(models) == 0 {
		models = []int{2, 3}
	}
	var err error
	if rows != nil {
		out.Rows, out.Models = rows.name, rows.models
		out.Calls, err = rows.measure(p)
	} else {
		for _, n := range models { // one that needs three models faults with two
			out.Models = n
			if out.Calls, err = lint.Measure(p, scripting.Env{Peers: n}, nil); err == nil {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, name := range p.Heads {
		h, err := heads.Get(name)
		if err != nil {
			return nil, err
		}
		ns, err := scoreTime(h)
		if err != nil {
			return nil, fmt.Errorf("the head %s: %w", name, err)
		}
		out.Heads = append(out.Heads, headCost{name, ns})
		sum += ns
	}
	small := slices.IndexFunc(out.Calls, func(c lint.Cost) bool { return c.Hook == "route" && c.Model == event.Role(event.Front, out.Models) })
	if small >= 0 {
		batch := cost.Decoding(1, 512)
		step := profile.Step(0, &batch)
		out.StepMs = step.Seconds() * 1e3
		out.Share = (out.Calls[small].Ns + sum) / float64(step.Nanoseconds())
	}
	return out, nil
}

// scoreTime is how long one score of a head takes, in ns: of the fastest of some
// rounds, with inputs of zeros, whose products take as long as any.
func scoreTime(h *head.Head) (float64, error) {
	spec := &h.Manifest().Spec
	in := head.Input{
		Hidden: make([]float32, spec.Hidden), Embedding: make([]float32, spec.Hidden),
		Logits: make([]float32, spec.TopLogits()), Signals: make([]float32, head.Signals),
	}
	var ws head.Workspace
	n, best := 1, time.Duration(0)
	for rounds := 0; rounds < lint.Rounds; {
		from := time.Now()
		for range n {
			if _, err := h.Score(&ws, &in); err != nil {
				return 0, err
			}
		}
		took := time.Since(from)
		if took < lint.RoundTime {
			n *= 2
			continue
		}
		if rounds++; best == 0 || took < best {
			best = took
		}
	}
	return float64(best.Nanoseconds()) / float64(n), nil
}

// checkScorer knows the heads on disk; no model is there to compute a score.
type checkScorer struct{ lib *head.Library }

func (s checkScorer) Check(name string) error {
	_, err := s.lib.Get(name)
	return err
}

func (checkScorer) Score(string, *scripting.Row) (float64, error) { return 0, scripting.ErrNoModel }

// Threshold is what a head was calibrated for.
func (s checkScorer) Threshold(name string) (threshold float64, ok bool) {
	h, err := s.lib.Get(name)
	if err != nil {
		return 0, false
	}
	t := h.Manifest().Threshold
	return t, t > 0
}

// Reads says why a head cannot be asked at the model of a role.
func (s checkScorer) Reads(name, role string) error {
	h, err := s.lib.Get(name)
	if err != nil {
		return err
	}
	if reads := h.Manifest().Reads(); reads != role {
		return fmt.Errorf("the head reads rows of the %s model, this one is of the %s; ask only where r.model == %q", reads, role, reads)
	}
	return nil
}
