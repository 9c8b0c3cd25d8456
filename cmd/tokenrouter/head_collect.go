package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"tokenrouter/algos/head/collect"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/runtime/workload"
)

// headCollectCmd gathers rows.
type headCollectCmd struct {
	pairFlags

	Out       string `short:"o" required:"" placeholder:"FILE.safetensors" help:"Where to. The file has its name only when it is whole."`
	Requests  int    `default:"2000" placeholder:"M" help:"Problems that are written (default: ${default})."`
	First     int    `default:"0" placeholder:"N" help:"Number of the first problem of the seed's stream."`
	Labels    string `default:"outcome" enum:"outcome,mismatch,query" help:"1 where the large model should write: outcome, its token and not the small one's leads to the right answer; mismatch, the two differ; query, one row a problem, the large model alone answers right and the small one alone does not (default: ${default})."`
	Text      string `placeholder:"WHO,..." help:"Who writes the texts, by turns: large; repair, the small model but for tokens labelled 1; entropy:H, the small model but where its entropy is at least H nats (default: repair; large with labels of mismatch)."`
	TopLogits int    `default:"32" placeholder:"K" help:"Largest logits that rows keep (default: ${default})."`
	Embedding bool   `default:"true" negatable:"" help:"Rows keep the embedding of the small model's token."`
	JSON      bool   `help:"Print one JSON object."`
}

// collected is the stable form of head collect --json.
type collected struct {
	File       string  `json:"file"`
	Bytes      int64   `json:"bytes"`
	Problems   int     `json:"problems"`
	Rows       int     `json:"rows"`
	Positives  int     `json:"positives"`
	Mismatches int     `json:"mismatches"`
	Seconds    float64 `json:"seconds"`
}

func (c *headCollectCmd) Run() error {
	o, err := c.options()
	if err != nil {
		return usage(err)
	}
	p, err := c.loadPair()
	if err != nil {
		return err
	}
	defer p.close()
	problems, err := p.problems(streamCollect, c.First, c.Requests, o.Label != dataset.Mismatch)
	if err != nil {
		return usage(err)
	}
	ctx, stop := interruptible()
	defer stop()
	bar := newHeadBar()
	o.Progress = func(done, rows int) { bar.put(done, len(problems), fmt.Sprintf("problems, %d rows", rows)) }
	rows, err := collect.Run(ctx, p.Pair, problems, o)
	bar.live.clear()
	if errors.Is(err, context.Canceled) {
		return headsInterrupted()
	}
	if err != nil {
		return err
	}
	rows.Workload, rows.Seed, rows.First, rows.Problems, rows.Tokens = c.problemName(), c.Seed, c.First, len(problems), p.most
	if c.Tasks != "" {
		rows.Seed = 0
	}
	if err := rows.Save(c.Out); err != nil {
		return fmt.Errorf("%s cannot be written: %w", c.Out, err)
	}
	out := collected{
		File: c.Out, Bytes: sizeOf(c.Out), Problems: len(problems), Rows: rows.Len(),
		Positives: dataset.Positives(rows.Labels), Mismatches: dataset.Positives(rows.Differ), Seconds: time.Since(bar.begun).Seconds(),
	}
	if c.JSON {
		return printJSON(os.Stdout, out)
	}
	text := fmt.Sprintf("%s: %d rows of %d problems, %d of them labelled 1 by %s (%.2f %%)", c.Out, out.Rows, out.Problems, out.Positives, o.Label, percentOf(out.Positives, out.Rows))
	if o.Label == dataset.Outcome {
		text += fmt.Sprintf(", mismatches %d (%.2f %%)", out.Mismatches, percentOf(out.Mismatches, out.Rows))
	}
	fmt.Printf("%s; %s in %.1f s\n", text, bytesText(out.Bytes), out.Seconds)
	return nil
}

func percentOf(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// options checks the flags.
func (c *headCollectCmd) options() (o collect.Options, err error) {
	if err := c.check(); err != nil {
		return o, err
	}
	if c.Requests < 1 || c.Requests > 1<<24 || c.First < 0 {
		return o, fmt.Errorf("--requests %d from --first %d; give 1 to %d, from 0 on", c.Requests, c.First, 1<<24)
	}
	if c.Seed == workload.EvaluationSeed {
		return o, fmt.Errorf("--seed %d is kept for judging models; give any other", c.Seed)
	}
	if err := hasFolder(c.Out); err != nil {
		return o, fmt.Errorf("-o: %w", err)
	}
	o = collect.Options{Label: dataset.Label(c.Labels), TopLogits: c.TopLogits, Embedding: c.Embedding, At: c.Concurrency}
	text := c.Text
	switch {
	case o.Label == dataset.Query && text != "":
		return o, errors.New("--text does not go with --labels query: each model writes its own")
	case text == "" && o.Label == dataset.Mismatch:
		text = collect.TextLarge
	case text == "" && o.Label == dataset.Outcome:
		text = collect.TextRepair
	}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		kind, h, has := strings.Cut(part, ":")
		t := collect.Text{Kind: kind}
		if has != (kind == collect.TextEntropy) {
			return o, fmt.Errorf("--text %s: give large, repair or entropy:H, such as entropy:0.3", part)
		}
		if has {
			if t.Threshold, err = strconv.ParseFloat(h, 64); err != nil || t.Threshold != t.Threshold {
				return o, fmt.Errorf("--text %s: %q is no entropy in nats", part, h)
			}
		}
		o.Texts = append(o.Texts, t)
	}
	return o, o.Check()
}
