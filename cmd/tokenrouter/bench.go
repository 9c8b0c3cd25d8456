package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/bench"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tiny"
)

// benchCmd measures the program itself.
type benchCmd struct {
	Engine benchEngineCmd `cmd:"" help:"Measure the engine against the limits of this machine."`
}

// benchEngineCmd measures limits and, in the same run, how near the engine comes.
type benchEngineCmd struct {
	Model   string   `xor:"what" placeholder:"MODEL" help:"Measure with this model: a GGUF file, a folder with safetensors, or a name."`
	Shape   string   `xor:"what" placeholder:"SHAPE" help:"Measure with random weights of a shape: ${shapes} (default: qwen3-0.6b)."`
	Handoff []string `sep:"," placeholder:"MODEL" help:"Measure two models, or shapes, that hand a request over after every token, and how they share the cores. Without --model and --shape nothing else is measured."`

	Format  string  `placeholder:"FORMAT" help:"Hold weights as f32, f16, bf16, q8 or q4 (default: as they are stored; q8 of a shape)."`
	Threads []int   `placeholder:"N" help:"Numbers of cores to measure (default: 1 and all)."`
	Batch   []int   `placeholder:"N" help:"Batch sizes of decoding (default: 1,2,4,8,16,32)."`
	Prompt  int     `default:"128" help:"Tokens of the prompt that is read (default: ${default})."`
	Context int     `default:"64" help:"Positions behind each decoding row (default: ${default})."`
	Seconds float64 `default:"1" help:"Time for each figure; a slow step takes longer (default: ${default})."`
	JSON    bool    `name:"json" help:"Print one JSON object."`
}

// benchShape is measured where nothing else is named; benchBatch, which fills the
// kernels, is that of the figures of shared cores and of pauses.
const (
	benchShape = "qwen3-0.6b"
	benchBatch = 16
)

// handoffRequests are the numbers of requests that are handed over.
var handoffRequests = []int{1, 8}

// benched is a model under its name.
type benched struct {
	name string
	*bench.Model
}

func (b *benchEngineCmd) Run() error {
	o, err := b.options()
	if err != nil {
		return usage(err)
	}
	if cpu.Current() == cpu.Go {
		fmt.Fprintln(os.Stderr, "tokenrouter:", slowKernels())
	}
	dir, err := os.MkdirTemp("", "tokenrouter-bench-*") // for models that are made
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := interruptible()
	defer stop()
	type result struct {
		r   *benchReport
		err error
	}
	done := make(chan result, 1)
	live := newLiveLine(os.Stderr)
	defer live.clear()
	o.Progress = func(what string) { live.put("bench: " + what) }
	go func() {
		r, err := (&benchRun{b, o, dir}).measure(ctx)
		done <- result{r, err}
	}()
	select {
	case <-ctx.Done():
		return &exitError{exitInterrupted, errors.New("interrupted; nothing was measured to its end")}
	case r := <-done:
		live.clear()
		if r.err != nil {
			return r.err
		}
		if b.JSON {
			return printJSON(os.Stdout, r.r)
		}
		return r.r.print(os.Stdout)
	}
}

// options checks the flags.
func (b *benchEngineCmd) options() (o bench.Options, err error) {
	if len(b.Handoff) != 0 && len(b.Handoff) != 2 {
		return o, fmt.Errorf("--handoff %s; give two models, A,B", strings.Join(b.Handoff, ","))
	}
	if !(b.Seconds > 0 && b.Seconds <= 3600) {
		return o, fmt.Errorf("--seconds %v is outside of what lies above 0, up to 3600", b.Seconds)
	}
	for _, f := range []struct {
		name string
		list []int
		most int
	}{
		{"--threads", b.Threads, maxThreads},
		{"--batch", b.Batch, 1024},
		{"--prompt", []int{b.Prompt}, 1 << 16},
		{"--context", []int{b.Context}, 1 << 16},
	} {
		for _, n := range f.list {
			if n < 1 || n > f.most {
				return o, fmt.Errorf("%s %d is outside 1 to %d", f.name, n, f.most)
			}
		}
	}
	return bench.Options{
		Cores: b.Threads, Batches: b.Batch, Prompt: b.Prompt, Context: b.Context,
		Time: time.Duration(b.Seconds * float64(time.Second)),
	}, b.check()
}

// check looks at what is named before minutes go into the first of it.
func (b *benchEngineCmd) check() error {
	if b.Format != "" && !slices.Contains(weightsFormats, b.Format) {
		return fmt.Errorf("--format %q is none of %s", b.Format, strings.Join(weightsFormats, ", "))
	}
	for _, name := range b.Handoff {
		if _, err := positions(name); err != nil {
			return err
		}
	}
	if _, err := synth.Find(cmp.Or(b.Shape, benchShape)); err != nil {
		return err
	}
	name := cmp.Or(b.Model, b.Shape, benchShape)
	most, err := positions(name)
	switch {
	case err != nil:
		return err
	case b.Prompt > most:
		return fmt.Errorf("--prompt %d: %s has %d positions", b.Prompt, name, most)
	case b.Context >= most:
		return fmt.Errorf("--context %d: %s has %d positions, one of which is for the row itself", b.Context, name, most)
	}
	return nil
}

// positions is how many a model or a shape has.
func positions(name string) (int, error) {
	if s, err := synth.Find(name); err == nil {
		return s.MaxPos, nil
	}
	c, _, err := openModel(name)
	if err != nil {
		return 0, err
	}
	return c.Config.MaxPos, c.Close()
}

// cores is the largest number of cores that is measured.
func (b *benchEngineCmd) cores() (n int) {
	for _, c := range b.Threads {
		n = max(n, c)
	}
	return cmp.Or(n, team.Machine())
}

// benchRun is a measurement under way.
type benchRun struct {
	*benchEngineCmd
	opts bench.Options
	dir  string // for files that are not kept
}

// measure loads what is named and measures it.
func (b *benchRun) measure(ctx context.Context) (r *benchReport, err error) {
	r = &benchReport{Kernels: cpu.Current().String()}
	if b.Model != "" || b.Shape != "" || len(b.Handoff) == 0 {
		m, err := b.open(b.Model, b.Shape)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		if r.Limits, r.Steps, err = bench.Measure(m.Model, b.opts); err != nil {
			return nil, err
		}
		r.Model = m.reported()
		p, err := bench.MeasurePauses(m.Model, b.cores(), benchBatch, b.opts)
		if err != nil {
			return nil, err
		}
		r.Pauses = &p
		if b.cores() > 1 {
			s, err := bench.MeasureShare(m.Model, m.Model, b.cores(), benchBatch, b.opts)
			if err != nil {
				return nil, err
			}
			r.Share = &s
		}
	}
	if len(b.Handoff) == 2 && ctx.Err() == nil {
		r.Handoff, err = b.handoff()
	}
	return r, err
}

// handoff measures two models.
func (b *benchRun) handoff() (h *benchHandoff, err error) {
	h = &benchHandoff{Share: []bench.Share{}}
	var m [2]*benched
	for i, name := range b.Handoff {
		if m[i], err = b.open(name, ""); err != nil {
			return nil, err
		}
		defer m[i].Close()
		h.Models = append(h.Models, *m[i].reported())
	}
	threads := b.Threads
	if threads == nil {
		threads = []int{1}
		if n := team.Machine(); n > 1 {
			threads = append(threads, n)
		}
	}
	for _, n := range threads {
		for _, requests := range handoffRequests {
			f, err := bench.MeasureHandoff(m[0].Model, m[1].Model, n, requests, b.opts)
			if err != nil {
				return nil, err
			}
			h.Rates = append(h.Rates, f)
		}
		if n > 1 {
			s, err := bench.MeasureShare(m[0].Model, m[1].Model, n, handoffRequests[len(handoffRequests)-1]/2, b.opts)
			if err != nil {
				return nil, err
			}
			h.Share = append(h.Share, s)
		}
	}
	return h, nil
}

// open loads a model by its name, or one of a shape that is made for the
// occasion. A name may be one of a shape as well.
func (b *benchRun) open(name, shape string) (*benched, error) {
	if name == "" {
		shape = cmp.Or(shape, benchShape)
	} else if _, err := synth.Find(name); err == nil {
		shape = name
	}
	if shape == "" {
		at, err := findModel(name, "")
		if err != nil {
			return nil, usage(err)
		}
		return b.load(at)
	}
	s, err := synth.Find(shape)
	if err != nil {
		return nil, usage(err)
	}
	at := origin{name: shape + ", random weights", path: filepath.Join(b.dir, shape+".gguf")}
	b.opts.Progress("making " + shape)
	format, ok := benchFormats[cmp.Or(b.Format, "q8")]
	if !ok {
		return nil, usage(fmt.Errorf("--format %q is none of %s", b.Format, strings.Join(weightsFormats, ", ")))
	}
	defer os.Remove(at.path) // what is loaded is in memory
	if err := synth.Write(at.path, s, synth.Options{Format: format, Seed: 1, Tokenizer: tiny.Tokenizer()}); err != nil {
		return nil, err
	}
	return b.load(at)
}

// benchFormats are formats in memory and those of a file that become them.
var benchFormats = map[string]string{"f32": "f32", "f16": "f16", "bf16": "bf16", "q8": "q8_0", "q4": "q4_0"}

func (b *benchRun) load(at origin) (_ *benched, err error) {
	c, err := at.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b.opts.Progress("loading " + at.name)
	m, err := bench.Load(c, model.Options{Format: b.Format, Threads: b.cores()})
	if err != nil {
		return nil, err
	}
	return &benched{at.name, m}, nil
}
