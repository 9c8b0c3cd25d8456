package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/calibrate"
	"tokenrouter/algos/head/collect"
	"tokenrouter/algos/head/pair"
)

// headCalibrateCmd chooses a threshold.
type headCalibrateCmd struct {
	Score string `arg:"" placeholder:"HEAD|SIGNAL" help:"What the router compares with its threshold: a head, or entropy, entropy_norm, top1 or margin."`

	pairFlags
	headFlags

	Share    float64 `default:"0.1" help:"Wanted share of the tokens that the large model writes (default: ${default})."`
	Requests int     `default:"400" placeholder:"M" help:"Problems that the threshold is chosen on, routed anew for each that is tried (default: ${default})."`
	Verify   *int    `placeholder:"M" help:"Other problems that the threshold is then tried on; 0 = none (default: as many as --requests)."`
	Save     bool    `help:"Put threshold and share into the head's manifest; a shipped head is copied into the folder of heads first."`
	JSON     bool    `help:"Print one JSON object."`
}

// calibrated is the stable form of head calibrate --json.
type calibrated struct {
	Score     string          `json:"score"`
	Rule      string          `json:"rule"`
	Target    float64         `json:"target"`
	Threshold float64         `json:"threshold"`
	Chosen    sharePart       `json:"chosen"`         // on the problems that it was chosen on
	Verified  *sharePart      `json:"verified"`       // on others, null without
	Tolerance float64         `json:"tolerance"`      // of the verified share
	Hit       bool            `json:"hit"`            // it is within
	Tied      []float64       `json:"tied,omitempty"` // the nearest shares that there are, where no threshold comes near
	Tries     []calibrate.Try `json:"tries"`
	Seconds   float64         `json:"seconds"`
}

// sharePart is a share with its 95 % interval.
type sharePart struct {
	Problems int     `json:"problems"`
	Tokens   int     `json:"tokens"`
	Share    float64 `json:"share"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Right    int     `json:"right"`
}

func (c *headCalibrateCmd) Run() error {
	verify, err := c.verify()
	if err != nil {
		return usage(err)
	}
	lib, err := c.library()
	if err != nil {
		return usage(err)
	}
	score, isSignal := calibrate.Signal(c.Score)
	var h *head.Head
	switch {
	case isSignal && c.Save:
		return usage(fmt.Errorf("--save: %s has no manifest; give the threshold to the router, with --param threshold=T", c.Score))
	case !isSignal:
		if h, err = lib.Get(c.Score); err != nil {
			return usage(fmt.Errorf("%w; signals are %s", err, strings.Join(calibrate.Signals(), ", ")))
		}
	}
	p, err := c.loadPair()
	if err != nil {
		return err
	}
	defer p.close()
	if h != nil {
		if score, err = headScore(h, p); err != nil {
			return usage(err)
		}
	}
	choose, err := c.tasks(p, streamChoose, 0, c.Requests)
	if err != nil {
		return usage(err)
	}
	ctx, stop := interruptible()
	defer stop()
	bar := newHeadBar()
	found, err := calibrate.Find(ctx, p.Pair, choose, score, c.Share, func(run int) {
		bar.live.put(fmt.Sprintf("run %d over %d problems  %.0f s", run+1, len(choose.Tasks), time.Since(bar.begun).Seconds()))
	})
	var fresh *calibrate.Routed
	if err == nil && verify > 0 {
		stream, first := streamVerify, 0
		if c.Tasks != "" {
			stream, first = streamChoose, c.Requests
		}
		var others *calibrate.Tasks
		if others, err = c.tasks(p, stream, first, verify); err != nil {
			bar.live.clear()
			return usage(fmt.Errorf("--verify %d: %w", verify, err))
		}
		bar.live.put(fmt.Sprintf("verifying on %d other problems", len(others.Tasks)))
		fresh, err = others.Under(ctx, p.Pair, score, found.Threshold)
	}
	bar.live.clear()
	if errors.Is(err, context.Canceled) {
		return headsInterrupted()
	}
	if err != nil {
		return err
	}
	out := newCalibrated(found, fresh, &score)
	out.Seconds = time.Since(bar.begun).Seconds()
	if c.Save {
		if err := os.MkdirAll(lib.Dir(), 0o755); err != nil {
			return err
		}
		seed := &c.Seed
		if c.Tasks != "" {
			seed = nil
		}
		if err := h.WithThreshold(found.Threshold, c.Share, seed).Save(filepath.Join(lib.Dir(), c.Score)); err != nil {
			return err
		}
	}
	if c.JSON {
		err = printJSON(os.Stdout, out)
	} else {
		err = out.print(os.Stdout)
	}
	if err == nil && fresh != nil && !out.Hit {
		err = fmt.Errorf("the share is %.2f %% on other problems, not within %.2g points of %.4g %%: give more --requests", 100*out.Verified.Share, 100*out.Tolerance, 100*c.Share)
	}
	return err
}

// headScore is the score of a head on rows of the pair's small model.
func headScore(h *head.Head, p *loadedPair) (calibrate.Score, error) {
	if err := h.Fits("small", p.small().Hash(), p.small().Config.Hidden); err != nil {
		return calibrate.Score{}, err
	}
	if want, have := h.Manifest().Models["large"], p.shelf.models[1].Hash(); want != "" && want != have {
		return calibrate.Score{}, fmt.Errorf("the head %s was made for another large model: its hash is %s, that of %s is %s", h.Name(), want, p.shelf.models[1].Name, have)
	}
	if k := h.Manifest().Spec.TopLogits(); k > p.small().Config.Vocab {
		return calibrate.Score{}, fmt.Errorf("the head %s reads %d logits, %s has %d", h.Name(), k, p.small().Name, p.small().Config.Vocab)
	}
	return calibrate.Head(h, p.small()), nil
}

func (c *headCalibrateCmd) verify() (int, error) {
	verify := c.Requests
	if c.Verify != nil {
		verify = *c.Verify
	}
	switch err := c.check(); {
	case err != nil:
		return 0, err
	case !(c.Share > 0 && c.Share < 1):
		return 0, fmt.Errorf("--share %v; give one between 0 and 1", c.Share)
	case c.Requests < 1 || c.Requests > 1<<20 || verify < 0 || verify > 1<<20:
		return 0, fmt.Errorf("--requests %d, --verify %d; give 1 to %d, to verify on 0 as well", c.Requests, verify, 1<<20)
	}
	return verify, nil
}

func (c *headCalibrateCmd) tasks(p *loadedPair, stream, first, n int) (*calibrate.Tasks, error) {
	problems, err := p.problems(stream, first, n, false)
	if err != nil {
		return nil, err
	}
	return routedTasks(problems, c.Concurrency), nil
}

func routedTasks(problems []collect.Problem, at int) *calibrate.Tasks {
	t := &calibrate.Tasks{At: at, Right: func(i int, output []int32) bool { return problems[i].Right(output) }}
	for _, q := range problems {
		t.Tasks = append(t.Tasks, pair.Task{Prompt: q.Prompt, MaxTokens: q.MaxTokens})
	}
	return t
}

func newCalibrated(found *calibrate.Result, fresh *calibrate.Routed, s *calibrate.Score) *calibrated {
	out := &calibrated{
		Score: s.Name, Rule: s.Rule(), Target: found.Target, Threshold: found.Threshold, Chosen: *newSharePart(found.Run),
		Tolerance: calibrate.Tolerance(found.Target), Tries: found.Runs,
	}
	if found.Tied {
		out.Tied = []float64{found.Below, found.Above}
	}
	if fresh != nil {
		out.Verified = newSharePart(fresh)
		out.Hit = math.Abs(out.Verified.Share-out.Target) <= out.Tolerance
	}
	return out
}

// shareResamples is enough for an interval.
const shareResamples = 1000

func newSharePart(r *calibrate.Routed) *sharePart {
	out := &sharePart{Problems: len(r.Tokens), Share: r.Share()}
	for i, n := range r.Tokens {
		out.Tokens += n
		if r.Right[i] {
			out.Right++
		}
	}
	out.Low, out.High = r.Interval(shareResamples, 1)
	return out
}

func (c *calibrated) print(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, threshold %v\n", c.Rule, c.Threshold)
	part := func(name string, p *sharePart) {
		fmt.Fprintf(&b, "%-9s %.2f %% large (95 %% %.2f to %.2f), %d of %d right, %d tokens\n", name, 100*p.Share, 100*p.Low, 100*p.High, p.Right, p.Problems, p.Tokens)
	}
	part("chosen on", &c.Chosen)
	if c.Verified != nil {
		part("others", c.Verified)
	}
	fmt.Fprintf(&b, "wanted    %.4g %%, within %.2g points; %d %s tried, %.1f s\n", 100*c.Target, 100*c.Tolerance, len(c.Tries), plural(len(c.Tries), "threshold"), c.Seconds)
	if len(c.Tied) > 0 {
		fmt.Fprintf(&b, "many rows have one score: the nearest shares that there are %.2f %% and %.2f %%\n", 100*c.Tied[0], 100*c.Tied[1])
	}
	_, err := io.WriteString(to, b.String())
	return err
}
