package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/train"
	"tokenrouter/runtime/model/tensor"
)

// headTrainCmd trains a head.
type headTrainCmd struct {
	Data string `arg:"" placeholder:"FILE.safetensors" help:"Rows that head collect gathered."`
	Out  string `short:"o" required:"" placeholder:"DIR/NAME" help:"Where to: NAME.safetensors, NAME.json and NAME.csv with the losses; routers call the head NAME."`

	Kind       string   `default:"mlp" enum:"linear,mlp,citer,r2r" help:"linear (Co-LLM's row of the LM head), mlp, or the networks of CITER and R2R (default: ${default})."`
	Features   []string `sep:"," placeholder:"F" help:"What it reads: hidden, embedding, logits:K, signals (default: hidden, of an mlp all that the rows have; fixed for citer and r2r)."`
	Widths     []int    `sep:"," placeholder:"W" help:"Widths of the hidden layers: of an mlp (default: 64), of citer two (2h,h), of r2r one a block (default: 64,64)."`
	Activation string   `default:"relu" enum:"relu,gelu" help:"Of an mlp: relu or gelu (default: ${default})."`
	Expansion  int      `default:"2" help:"Of the blocks of r2r: how many times wider their middle is (default: ${default}; published: 4)."`
	Bias       bool     `default:"true" negatable:"" help:"Of a linear head: with a bias; Co-LLM has none."`
	Meaning    string   `placeholder:"ROLE" help:"Whom a high score speaks for: large, or small (default: small for citer, else large)."`

	Label     string  `placeholder:"LABEL" help:"What is learnt: outcome, mismatch or query (default: what the rows were collected for)."`
	PosWeight float64 `default:"0" placeholder:"W" help:"Weight in the loss of the rows whose score should be high; 0 = so that both sides weigh the same, times --factor. Scores are probabilities only with 1."`
	Factor    float64 `default:"1" help:"Factor on that weight (default: ${default})."`
	Rate      float64 `default:"0.002" help:"Learning rate, falling to a tenth (default: ${default})."`
	Decay     float64 `default:"0.01" help:"Decoupled weight decay (default: ${default})."`
	Beta1     float64 `default:"0.9" help:"Of AdamW (default: ${default})."`
	Beta2     float64 `default:"0.999" help:"Of AdamW (default: ${default})."`
	Batch     int     `default:"1024" help:"Rows of a step (default: ${default})."`
	Epochs    int     `default:"40" help:"Most epochs (default: ${default})."`
	Patience  int     `default:"8" help:"Epochs without a better loss on the held-out problems after which it ends (default: ${default})."`
	HeldOut   float64 `default:"0.2" help:"Share of the problems that is held out (default: ${default})."`
	Seed      uint64  `default:"1" help:"Seed of weights, order and what is held out (default: ${default})."`
	Note      string  `placeholder:"TEXT" help:"Goes into the manifest."`
	JSON      bool    `help:"Print one JSON object."`
}

// trained is the stable form of head train --json.
type trained struct {
	Head          string        `json:"head"`
	Hash          string        `json:"hash"`
	Kind          string        `json:"kind"`
	Features      []string      `json:"features"`
	Params        int64         `json:"parameters"`
	Label         string        `json:"label"`
	PosWeight     float64       `json:"pos_weight"`
	Rows          int           `json:"rows"`
	Positives     int           `json:"positives"`
	HeldRows      int           `json:"held_out_rows"`
	HeldPositives int           `json:"held_out_positives"`
	Best          train.Epoch   `json:"best"`
	Curve         []train.Epoch `json:"curve"`
	Seconds       float64       `json:"seconds"`
}

func (c *headTrainCmd) Run() error {
	name, _, err := headName(c.Out)
	if err != nil {
		return usage(err)
	}
	rows, err := dataset.Load(c.Data)
	if err != nil {
		return usage(fmt.Errorf("rows: %w", err))
	}
	o, meaning, err := c.options(rows)
	if err != nil {
		return usage(err)
	}
	manifest := c.manifest(name, meaning, rows, &o)
	if err := manifest.Check(); err != nil {
		return usage(fmt.Errorf("-o %s: %w", c.Out, err))
	}
	ctx, stop := interruptible()
	defer stop()
	bar := newHeadBar()
	o.Progress = func(e train.Epoch) {
		bar.put(e.N, o.Epochs, fmt.Sprintf("epochs  loss %.4f  held out %.4f  AUC %.4f", e.Loss, e.HeldOut, e.AUC))
	}
	got, err := train.Run(ctx, rows, o)
	bar.live.clear()
	if errors.Is(err, context.Canceled) {
		return headsInterrupted()
	}
	if err != nil {
		return err
	}
	h, err := head.New(manifest, got.Tensors)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Out), 0o755); err != nil {
		return err
	}
	if err := h.Save(c.Out); err != nil {
		return err
	}
	if err := writeCurve(filepath.Join(filepath.Dir(c.Out), name+".csv"), got.Curve); err != nil {
		return err
	}
	out := trained{
		Head: filepath.Join(filepath.Dir(c.Out), name), Hash: h.Hash(), Kind: o.Spec.Kind, Features: o.Spec.Features, Params: o.Spec.Params(),
		Label: string(o.Label), PosWeight: got.Weight, Rows: got.Rows, Positives: got.Positives, HeldRows: got.HeldRows, HeldPositives: got.HeldPositives,
		Best: got.Curve[got.Best-1], Curve: got.Curve, Seconds: time.Since(bar.begun).Seconds(),
	}
	if c.JSON {
		return printJSON(os.Stdout, out)
	}
	return out.print(os.Stdout)
}

// headName is the name of a head by the path of its files, and the path without
// their ending.
func headName(path string) (name, at string, err error) {
	for _, ext := range []string{".safetensors", ".json"} {
		path = strings.TrimSuffix(path, ext)
	}
	if name = filepath.Base(path); name == "." || name == string(filepath.Separator) || strings.HasSuffix(path, string(filepath.Separator)) {
		return "", "", fmt.Errorf("-o %s is a folder; give one with a name, such as heads/mine", path)
	}
	return name, path, nil
}

// options checks the flags against the rows.
func (c *headTrainCmd) options(rows *dataset.Rows) (o train.Options, meaning string, err error) {
	o = train.Options{
		Label: dataset.Label(c.Label), NoBias: !c.Bias, Weight: c.PosWeight, Factor: c.Factor, Rate: c.Rate, Decay: c.Decay,
		Beta1: c.Beta1, Beta2: c.Beta2, Batch: c.Batch, Epochs: c.Epochs, Wait: c.Patience, HeldOut: c.HeldOut, Seed: c.Seed,
	}
	if o.Label == "" {
		o.Label = rows.Meta.Label
	}
	if meaning = c.Meaning; meaning == "" {
		if meaning = "large"; c.Kind == "citer" {
			meaning = "small"
		}
	}
	o.Small = meaning == "small"
	s := &o.Spec
	*s = head.Spec{Kind: c.Kind, Features: c.Features, Hidden: rows.Hidden, Widths: c.Widths}
	logits := fmt.Sprintf("logits:%d", rows.TopK)
	switch {
	case c.Kind == "r2r":
		if s.Expansion = c.Expansion; len(s.Widths) == 0 {
			s.Widths = []int{64, 64}
		}
		if len(s.Features) == 0 {
			s.Features = []string{"hidden", "embedding", logits}
		}
	case len(s.Features) == 0 && c.Kind == "mlp":
		s.Features = []string{"hidden", logits, "signals"}
		if rows.Embedded {
			s.Features = slices.Insert(s.Features, 1, "embedding")
		}
	case len(s.Features) == 0:
		s.Features = []string{"hidden"}
	}
	if c.Kind == "mlp" {
		if len(s.Widths) == 0 {
			s.Widths = []int{64}
		}
		if c.Activation != "relu" {
			s.Activation = c.Activation
		}
	}
	switch {
	case meaning != "large" && meaning != "small":
		err = fmt.Errorf("--meaning %q; give large or small", meaning)
	case c.Kind != "mlp" && c.Activation != "relu":
		err = fmt.Errorf("--activation goes with --kind mlp, not with %s", c.Kind)
	case c.Kind != "linear" && !c.Bias:
		err = fmt.Errorf("--no-bias goes with --kind linear, not with %s", c.Kind)
	default:
		if err = o.Check(); err == nil {
			err = train.Fits(s, rows)
		}
		if err == nil {
			_, err = rows.Label(o.Label)
		}
	}
	return o, meaning, err
}

// manifest says what the head is made of and from.
func (c *headTrainCmd) manifest(name, meaning string, rows *dataset.Rows, o *train.Options) head.Manifest {
	return head.Manifest{
		Name: name, Spec: o.Spec, Meaning: meaning, Role: "small", Models: rows.Hashes, Note: c.Note,
		Label: string(o.Label), HeldOut: o.HeldOut,
		Data:  fmt.Sprintf("%s, problems %d to %d, labels %s, text %s, %d rows", rows.Workload, rows.First, rows.First+rows.Problems-1, o.Label, orAlone(rows.Text), rows.Len()),
		Seeds: []head.Seed{{For: seedData, Seed: rows.Seed}, {For: seedTrain, Seed: o.Seed}},
	}
}

// What the seeds of a manifest are for.
const (
	seedData  = "problems"
	seedTrain = "training"
)

func orAlone(text string) string {
	if text == "" {
		return "each model's own"
	}
	return text
}

// writeCurve keeps the losses.
func writeCurve(path string, curve []train.Epoch) error {
	return tensor.Create(path, func(to io.Writer) error {
		w := csv.NewWriter(to)
		lines := [][]string{{"epoch", "loss", "held_out", "auc"}}
		for _, e := range curve {
			line := []string{strconv.Itoa(e.N)}
			for _, x := range []float64{e.Loss, e.HeldOut, e.AUC} {
				line = append(line, strconv.FormatFloat(x, 'g', 8, 64))
			}
			lines = append(lines, line)
		}
		return w.WriteAll(lines)
	})
}

// print is what was trained in words, with the losses as a chart.
func (t *trained) print(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s on %s, %s weights, labels %s, hash %.12s, %.1f s\n", t.Head, t.Kind, strings.Join(t.Features, "+"), count(t.Params), t.Label, t.Hash, t.Seconds)
	fmt.Fprintf(&b, "trained on %d rows, %d of them to be scored high (weight %.4g); held out %d rows, %d of them\n", t.Rows, t.Positives, t.PosWeight, t.HeldRows, t.HeldPositives)
	fmt.Fprintf(&b, "best of %d epochs: %d, held-out loss %.4f, AUC %.4f\n\n", len(t.Curve), t.Best.N, t.Best.HeldOut, t.Best.AUC)
	b.WriteString(lossChart(t.Curve, 60, 8))
	_, err := io.WriteString(to, b.String())
	return err
}

// lossChart draws the losses by epoch: * held out, . trained on.
func lossChart(curve []train.Epoch, columns, rows int) string {
	lo, hi := curve[0].Loss, curve[0].Loss
	for _, e := range curve {
		lo, hi = min(lo, e.Loss, e.HeldOut), max(hi, e.Loss, e.HeldOut)
	}
	columns = min(columns, len(curve))
	grid := make([][]byte, rows)
	for r := range grid {
		grid[r] = slices.Repeat([]byte(" "), columns)
	}
	at := func(x float64) int {
		if hi == lo {
			return rows - 1
		}
		return min(int(float64(rows)*(hi-x)/(hi-lo)), rows-1)
	}
	for c := range columns {
		e := curve[c*len(curve)/columns]
		grid[at(e.Loss)][c] = '.'
		grid[at(e.HeldOut)][c] = '*'
	}
	var b strings.Builder
	for r, line := range grid {
		label := ""
		switch r {
		case 0:
			label = fmt.Sprintf("%.4f", hi)
		case rows - 1:
			label = fmt.Sprintf("%.4f", lo)
		}
		fmt.Fprintf(&b, "%8s |%s\n", label, strings.TrimRight(string(line), " "))
	}
	fmt.Fprintf(&b, "%8s +%s\n%8s  epochs 1 to %d; * held out, . trained on\n", "", strings.Repeat("-", columns), "", len(curve))
	return b.String()
}
