package train

import (
	"fmt"
	"sync"

	"tokenrouter/kernels"
	"tokenrouter/kernels/gemm"
)

// Config says how a model is trained.
type Config struct {
	Shape    Shape    `json:"shape"`
	Seed     uint64   `json:"seed"`    // of the fresh weights
	Workers  int      `json:"workers"` // goroutines, each with a share of a step's tokens
	Tokens   int      `json:"tokens"`  // of a step, about
	Schedule Schedule `json:"schedule"`
	Muon     float64  `json:"muon"`  // learning rate of hidden matrices
	Adam     float64  `json:"adam"`  // learning rate of embedding and norms
	Decay    float64  `json:"decay"` // of the weights of hidden matrices
}

// Default is the recipe of the embedded family.
func Default(s Shape) Config {
	return Config{Shape: s, Seed: 1, Workers: 1, Tokens: 2048, Schedule: Schedule{Steps: 4500}, Muon: 0.02, Adam: 3e-3, Decay: 0.01}
}

// Schedule is the course of the learning rates: it rises over the first steps,
// stays, and falls in a line to a hundredth at the last step.
type Schedule struct {
	Steps int `json:"steps"`
	Fall  int `json:"fall"` // the step from which it falls
}

const warm = 50 // steps of rising rates

// rate is the share of the learning rate that step t from 0 has.
func (s Schedule) rate(t int) float64 {
	r := min(1, float64(t+1)/warm)
	if t > s.Fall {
		r *= max(0.01, float64(s.Steps-t)/float64(max(1, s.Steps-s.Fall)))
	}
	return r
}

// maxWorkers bounds what memory a wrong number takes.
const maxWorkers = 256

func (c Config) check() error {
	if err := c.Shape.check(); err != nil {
		return err
	}
	switch {
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("%d workers cannot train: give 1 to %d", c.Workers, maxWorkers)
	case c.Tokens < c.Workers || c.Tokens > 1<<20:
		return fmt.Errorf("steps of %d tokens for %d workers: give each at least one, and 1,048,576 at most", c.Tokens, c.Workers)
	case c.Schedule.Steps < 1 || c.Schedule.Fall < 0 || c.Schedule.Fall > c.Schedule.Steps:
		return fmt.Errorf("a schedule of %d steps that falls from step %d on: give at least one step and a fall within them", c.Schedule.Steps, c.Schedule.Fall)
	case !(c.Muon > 0 && c.Adam > 0 && c.Decay >= 0 && c.Decay*c.Muon < 1):
		return fmt.Errorf("learning rates %g and %g with decay %g: give rates above 0 and a decay of 0 or more", c.Muon, c.Adam, c.Decay)
	}
	return nil
}

// Trainer trains one model. It is for one goroutine at a time.
type Trainer struct {
	cfg     Config
	lay     *layout
	w       []float32
	turned  []float32
	moments moments
	step    int
	passes  []*pass
	work    []work
	muons   []muon
}

// New is a trainer of fresh weights.
func New(cfg Config) (*Trainer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	t := &Trainer{cfg: cfg, lay: newLayout(cfg.Shape)}
	n := t.lay.size
	t.w, t.turned = make([]float32, n), make([]float32, n)
	t.moments = moments{make([]float32, n), make([]float32, n)}
	t.lay.fill(t.w, cfg.Shape, cfg.Seed)
	cos, sin := angles(cfg.Shape.HeadDim)
	for range cfg.Workers {
		t.passes = append(t.passes, &pass{shape: cfg.Shape, lay: t.lay, w: t.w, turned: t.turned, grad: make([]float32, n), cos: cos, sin: sin})
	}
	t.work, t.muons = make([]work, cfg.Workers), make([]muon, cfg.Workers)
	t.turnAll()
	return t, nil
}

// angles are the cosines and sines of all positions: pair i turns by
// pos * theta^(-2i/dim), frequency and angle rounded to float32 as the runtime
// does.
func angles(dim int) (cos, sin []float32) {
	half := dim / 2
	cos, sin = make([]float32, positions*half), make([]float32, positions*half)
	for i := range half {
		freq := 1 / float32(kernels.Exp(float64(2*i)/float64(dim)*kernels.Ln(theta)))
		for p := range positions {
			s, c := kernels.Sincos(float64(float32(p) * freq))
			cos[p*half+i], sin[p*half+i] = float32(c), float32(s)
		}
	}
	return cos, sin
}

// work is the examples of a step that a worker has, in pieces.
type work struct {
	pieces []batch
	used   int
}

// piece is the number of tokens, about, that go through both passes at a time:
// enough for the products, few enough that what is saved stays near the core.
const piece = 512

// fill draws examples of so many tokens.
func (w *work) fill(tokens, vocab int, next func() Example) error {
	w.used = 0
	for tokens > 0 {
		if w.used == len(w.pieces) {
			w.pieces = append(w.pieces, batch{})
		}
		b := &w.pieces[w.used]
		w.used++
		for b.reset(); len(b.ids) < min(piece, tokens); {
			e := next()
			if err := e.check(vocab); err != nil {
				return err
			}
			b.add(e)
		}
		tokens -= len(b.ids)
	}
	return nil
}

// Config is how the model is trained.
func (t *Trainer) Config() Config { return t.cfg }

// Steps is the number of steps done.
func (t *Trainer) Steps() int { return t.step }

// Progress is the share of the schedule that is done, 0 to 1.
func (t *Trainer) Progress() float64 {
	return min(1, float64(t.step)/float64(t.cfg.Schedule.Steps))
}

// SetSchedule changes the course from here on.
func (t *Trainer) SetSchedule(s Schedule) error {
	c := t.cfg
	c.Schedule = s
	if err := c.check(); err != nil {
		return err
	}
	t.cfg = c
	return nil
}

// each runs f for every worker and waits for all.
func (t *Trainer) each(f func(worker int)) {
	var wait sync.WaitGroup
	for i := 1; i < len(t.passes); i++ {
		wait.Go(func() { f(i) })
	}
	f(0)
	wait.Wait()
}

// share is the part of n things that a worker has.
func (t *Trainer) share(n, worker int) (from, to int) {
	return n * worker / len(t.passes), n * (worker + 1) / len(t.passes)
}

// Result is what a step did.
type Result struct {
	Loss          float64 // mean cross-entropy of the tokens that count, in nats
	Tokens, Learn int
}

// Step draws examples and learns from them. The result depends on the examples
// and the number of workers alone: each worker takes the next ones in turn, and
// gradients are summed in the order of the workers.
func (t *Trainer) Step(next func() Example) (Result, error) {
	var r Result
	for i := range t.work {
		w := &t.work[i]
		if err := w.fill(t.cfg.Tokens/t.cfg.Workers, t.cfg.Shape.Vocab, next); err != nil {
			return r, err
		}
		for _, b := range w.pieces[:w.used] {
			r.Tokens += len(b.ids)
			r.Learn += len(b.rows)
		}
	}
	if r.Learn == 0 {
		return r, fmt.Errorf("step %d has %d tokens and nothing to learn: mark some tokens of the examples", t.step, r.Tokens)
	}
	losses := make([]float64, len(t.passes))
	t.each(func(i int) {
		p, w := t.passes[i], &t.work[i]
		clear(p.grad)
		for k := range w.pieces[:w.used] {
			losses[i] += p.loss(&w.pieces[k], 1/float32(r.Learn))
		}
	})
	for _, l := range losses {
		r.Loss += l / float64(r.Learn)
	}
	t.sum()
	t.update()
	t.turnAll()
	t.step++
	return r, nil
}

// sum adds all gradients to the first worker's.
func (t *Trainer) sum() {
	t.each(func(i int) {
		from, to := t.share(t.lay.size, i)
		for _, p := range t.passes[1:] {
			addTo(t.passes[0].grad[from:to], p.grad[from:to])
		}
	})
}

// update is a step of the optimisers. Tensors are dealt to the workers; none
// knows of another.
func (t *Trainer) update() {
	grad, rate := t.passes[0].grad, t.cfg.Schedule.rate(t.step)
	clip(grad[t.lay.embed:][:t.lay.spans[0].len()], embedClip)
	t.each(func(i int) {
		for k := i; k < len(t.lay.spans); k += len(t.passes) {
			if s := t.lay.spans[k]; s.inner {
				t.muons[i].step(&t.moments, t.w, grad, s, t.cfg.Muon*rate, t.cfg.Decay)
			} else {
				t.moments.adam(t.w, grad, s, t.cfg.Adam*rate, t.step+1)
			}
		}
	})
}

// turnAll transposes what forward passes multiply by. Matrices that are
// multiplied as one are transposed as one.
func (t *Trainer) turnAll() {
	s := t.cfg.Shape
	turn := func(at, rows, cols int) { gemm.Transpose(t.turned[at:], rows, t.w[at:], cols, rows, cols) }
	t.each(func(i int) {
		if i == 0 {
			turn(t.lay.embed, s.Vocab, s.Hidden)
		}
		for k := i; k < s.Layers; k += len(t.passes) {
			l := t.lay.layers[k]
			turn(l.qkv, s.qkv(), s.Hidden)
			turn(l.out, s.Hidden, s.queries())
			turn(l.gateUp, 2*s.FFN, s.Hidden)
			turn(l.down, s.Hidden, s.FFN)
		}
	})
}

// Score is how the model does on examples it does not learn from.
type Score struct {
	Loss  float64 // mean cross-entropy of the tokens that count
	Exact []bool  // of each example: greedy decoding would write it as it is
}

// Score measures examples.
func (t *Trainer) Score(examples []Example) (Score, error) {
	s := Score{Exact: make([]bool, len(examples))}
	for _, e := range examples {
		if err := e.check(t.cfg.Shape.Vocab); err != nil {
			return s, err
		}
	}
	losses, counts := make([]float64, len(t.passes)), make([]int, len(t.passes))
	t.each(func(i int) {
		p, b := t.passes[i], &batch{}
		from, to := t.share(len(examples), i)
		for k := from; k < to; k++ {
			b.reset()
			b.add(examples[k])
			losses[i] += p.loss(b, 0)
			counts[i] += len(b.rows)
			s.Exact[k] = true
			for _, ok := range p.right {
				s.Exact[k] = s.Exact[k] && ok
			}
		}
	})
	n := 0
	for i := range losses {
		s.Loss += losses[i]
		n += counts[i]
	}
	s.Loss /= float64(max(n, 1))
	return s, nil
}
