package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/model/train"
)

// stateFile is where a run can go on, in its folder.
const stateFile = "state.safetensors"

// rows is the number of rows of the family's embedding: its 423 tokens and one
// more.
const rows = 424

type trainCmd struct {
	Shape   string  `default:"842k" help:"37k, 114k, 842k or 3.7m, or hidden,layers,heads,kvheads,headdim,ffn."`
	Mix     string  `help:"Families and weights: story=2,ledger=1,drill=2:0.5 (a weight may move from:to). all is one of each, the default. With --resume: another mixture from here on."`
	Steps   int     `help:"Steps of the whole run, 4500 if not given. With --resume: another end, with its --fall."`
	Fall    int     `default:"-1" help:"The step from which learning rates fall; half of the steps if not given."`
	Tokens  int     `default:"2048" help:"Tokens of a step, about."`
	Seed    uint64  `default:"1" help:"Seed of the fresh weights."`
	Data    uint64  `default:"100" help:"Seed of the problems, below 299."`
	Workers int     `help:"Goroutines, one if not given. Another number gives other weights. With --resume: so many from here on."`
	CPU     float64 `name:"cpu" help:"Stop after so many CPU seconds, with a state to go on from; 0 for no limit."`
	Muon    float64 `default:"0.02" help:"Learning rate of hidden matrices."`
	Adam    float64 `default:"0.003" help:"Learning rate of embedding and norms."`
	Out     string  `required:"" help:"Folder of the checkpoint and the state."`
	Every   int     `default:"250" help:"Steps between reports and states."`
	Watch   int     `default:"50" help:"Problems of each family that a report is about."`
	Resume  bool    `help:"Go on from the state in the folder; shape, seeds and rates are its own."`
	FallNow int     `help:"With --resume: let the learning rates fall from here over so many steps, and end."`
}

// Run is kong's entry.
func (c *trainCmd) Run(ctx context.Context) error {
	if err := cpu.Err(); err != nil {
		return err
	}
	tok, err := familyTokenizer()
	if err != nil {
		return err
	}
	enc, err := newEncoder(tok)
	if err != nil {
		return err
	}
	t, at, err := c.begin()
	if err != nil {
		return err
	}
	mix, err := newMixture(at, enc)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	r := &run{cmd: c, trainer: t, mix: mix, pad: pad(tok), end: enc.end, start: enc.start}
	for _, p := range mix.parts {
		if _, ok := drills[p.name]; !ok {
			r.families = append(r.families, p.name)
		}
	}
	if r.watch, err = watched(enc, r.families, c.Watch); err != nil {
		return err
	}
	return r.loop(ctx)
}

// begin is a fresh trainer, or the one of the state.
func (c *trainCmd) begin() (*train.Trainer, place, error) {
	if c.Every < 1 || c.Watch < 1 {
		return nil, place{}, errors.New("--every and --watch are at least 1")
	}
	if c.Resume {
		return c.goOn()
	}
	if c.FallNow != 0 {
		return nil, place{}, errors.New("--fall-now ends a run that is under way: give --resume too")
	}
	if _, err := os.Stat(filepath.Join(c.Out, stateFile)); err == nil {
		return nil, place{}, fmt.Errorf("%s has a run already: go on with --resume, or name another folder", c.Out)
	}
	shape, err := train.ParseShape(c.Shape, rows)
	if err != nil {
		return nil, place{}, err
	}
	cfg := train.Default(shape)
	cfg.Seed, cfg.Workers, cfg.Tokens, cfg.Muon, cfg.Adam = c.Seed, cmp.Or(c.Workers, 1), c.Tokens, c.Muon, c.Adam
	cfg.Schedule = c.schedule()
	t, err := train.New(cfg)
	return t, place{Mix: cmp.Or(c.Mix, every), Seed: c.Data}, err
}

// schedule is what --steps and --fall say.
func (c *trainCmd) schedule() train.Schedule {
	s := train.Schedule{Steps: cmp.Or(c.Steps, 4500), Fall: c.Fall}
	if s.Fall < 0 {
		s.Fall = s.Steps / 2
	}
	return s
}

func (c *trainCmd) goOn() (*train.Trainer, place, error) {
	var at place
	t, note, err := train.Resume(filepath.Join(c.Out, stateFile), c.Workers)
	if err != nil {
		return nil, at, err
	}
	if err := json.Unmarshal([]byte(note), &at); err != nil {
		return nil, at, fmt.Errorf("%s: its place in the data: %w", stateFile, err)
	}
	at.Mix = cmp.Or(c.Mix, at.Mix)
	s := t.Config().Schedule
	switch {
	case c.FallNow != 0 && c.Steps != 0:
		return nil, at, errors.New("--fall-now and --steps both say when the run ends")
	case c.Steps != 0:
		s = c.schedule()
	case c.FallNow > 0:
		s = train.Schedule{Steps: t.Steps() + c.FallNow, Fall: t.Steps()}
	case c.FallNow < 0:
		return nil, at, errors.New("--fall-now is a number of steps")
	}
	return t, at, t.SetSchedule(s)
}

// run is a training under way.
type run struct {
	cmd      *trainCmd
	trainer  *train.Trainer
	mix      *mixture
	families []string
	watch    map[string][]train.Example
	pad      int32
	end      int32
	start    int32

	before float64 // CPU seconds of earlier runs
	since  time.Time
	loss   float64 // of the steps since the last report
	steps  int
	tokens int
	last   float64 // CPU seconds at the last report
}

// spent is the CPU seconds of the whole training.
func (r *run) spent() float64 { return r.before + cpuSeconds() }

func (r *run) loop(ctx context.Context) error {
	r.before, r.since = r.mix.CPU-cpuSeconds(), time.Now()
	r.last = r.spent()
	cfg := r.trainer.Config()
	fmt.Printf("%d weights, %d of %d steps done, %s, kernels %s\n", cfg.Shape.Params(), r.trainer.Steps(), cfg.Schedule.Steps, r.mix.Mix, cpu.Current())
	for {
		done := r.trainer.Steps()
		stop := done >= cfg.Schedule.Steps || ctx.Err() != nil || r.cmd.CPU > 0 && r.spent() >= r.cmd.CPU
		if stop || r.steps == r.cmd.Every {
			if err := r.report(); err != nil {
				return err
			}
		}
		if stop {
			return nil
		}
		progress := r.trainer.Progress()
		res, err := r.trainer.Step(func() train.Example { return r.mix.next(progress) })
		if r.mix.err != nil {
			err = r.mix.err
		}
		if err != nil {
			return err
		}
		r.loss += res.Loss
		r.tokens += res.Tokens
		r.steps++
	}
}

// report prints a line and saves the state and the checkpoint.
func (r *run) report() error {
	spent := r.spent()
	line := fmt.Sprintf("step %d  cpu %.0f s", r.trainer.Steps(), spent)
	if r.steps > 0 {
		line += fmt.Sprintf("  loss %.4f  %.0f tokens/s  %.0f tokens/cpu-s", r.loss/float64(r.steps),
			float64(r.tokens)/time.Since(r.since).Seconds(), float64(r.tokens)/(spent-r.last))
	}
	var all []string
	right, asked, loss := 0, 0, 0.0
	for _, f := range r.families {
		s, err := r.trainer.Score(r.watch[f])
		if err != nil {
			return err
		}
		n := 0
		for _, exact := range s.Exact {
			if exact {
				n++
			}
		}
		right, asked, loss = right+n, asked+len(s.Exact), loss+s.Loss/float64(len(r.families))
		all = append(all, fmt.Sprintf("%s %.2f", f, float64(n)/float64(len(s.Exact))))
	}
	fmt.Printf("%s  held out: loss %.4f, exact %.3f (%s)\n", line, loss, float64(right)/float64(max(asked, 1)), strings.Join(all, ", "))
	if err := r.save(); err != nil {
		return err
	}
	r.since, r.loss, r.steps, r.tokens, r.last = time.Now(), 0, 0, 0, r.spent()
	return nil
}

func (r *run) save() error {
	r.mix.CPU = r.spent()
	note, err := json.Marshal(r.mix.place)
	if err != nil {
		return err
	}
	if err := r.trainer.Save(filepath.Join(r.cmd.Out, stateFile), string(note)); err != nil {
		return err
	}
	if err := r.trainer.Export(r.cmd.Out, train.Tokens{BOS: r.start, EOS: r.end, Pad: r.pad}); err != nil {
		return err
	}
	for _, name := range tokenizerFiles {
		b, err := fs.ReadFile(tiny.Tokenizer(), name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.cmd.Out, name), b, 0o666); err != nil {
			return err
		}
	}
	return nil
}

var tokenizerFiles = [...]string{"tokenizer.json", "tokenizer_config.json"}

// familyTokenizer is the tokenizer of the embedded family.
func familyTokenizer() (*tokenizer.Tokenizer, error) {
	var b [len(tokenizerFiles)][]byte
	for i, name := range tokenizerFiles {
		var err error
		if b[i], err = fs.ReadFile(tiny.Tokenizer(), name); err != nil {
			return nil, err
		}
	}
	return tokenizer.Load(b[0], b[1])
}

func pad(tok *tokenizer.Tokenizer) int32 {
	id, _ := tok.ID("<|pad|>")
	return id
}
