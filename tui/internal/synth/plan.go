package synth

import (
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// How long a cluster of two is watched to know its throughput, ns. One of more
// has more vectors to try.
const (
	watchFrom = int64(5e9)
	watchFor  = int64(60e9)
)

// tokensPerS runs the cluster of cfg under B for a while of virtual time.
func tokensPerS(cfg Config, b []int) float64 {
	cfg.B, cfg.Plan, cfg.Quiet = b, nil, true
	c := New(cfg)
	c.Until(watchFrom)
	before, more := c.tokens, int64(max(len(cfg.Steps)-1, 1))
	c.Until(watchFrom + watchFor/(more*more))
	return float64(c.tokens-before) * 1e9 / float64(watchFor/(more*more))
}

// Plan is what a plan says of the cluster of cfg under its table: found by running
// it under every feasible vector whose first entry is 1.
func Plan(cfg Config) *tape.Plan {
	m := len(cfg.Steps)
	p := &tape.Plan{Policy: event.Table.String(), N: cfg.N, Method: "count-sim", SolveNs: 1_200_000}
	for n := 1; n <= cfg.N; n++ {
		at := cfg
		at.N = n
		ones := slices.Repeat([]int{1}, m)
		best, of := ones, tokensPerS(at, ones)
		p.Eager = of
		vectors(m, n, func(b []int) {
			if t := tokensPerS(at, b); t > of {
				best, of = slices.Clone(b), t
			}
		})
		p.Table = append(p.Table, best)
		p.B, p.Best = best, of
	}
	all := slices.Repeat([]int{1}, m)
	all[0] = cfg.N
	p.Lockstep = tokensPerS(cfg, all)
	p.Predicted = p.Best
	slower, faster := cfg, cfg
	slower.Steps, faster.Steps = scaled(cfg.Steps, 102), scaled(cfg.Steps, 98)
	p.Low, p.High = tokensPerS(slower, p.B), tokensPerS(faster, p.B)
	laws(p, &cfg)
	return p
}

// Eager is p as it is said under the eager policy.
func Eager(p *tape.Plan) *tape.Plan {
	e := *p
	e.Policy, e.Predicted = event.Eager.String(), p.Eager
	return &e
}

// vectors yields the vectors for n active requests but the one of ones: the first
// entry is 1, and progress is sure.
func vectors(m, n int, yield func([]int)) {
	b := slices.Repeat([]int{1}, m)
	for {
		i := m - 1
		for sum := n; i > 0; i-- { // count up in the last entries
			sum = 0
			for _, v := range b {
				sum += v - 1
			}
			if sum+1 < n {
				b[i]++
				break
			}
			b[i] = 1
		}
		if i <= 0 {
			return
		}
		yield(b)
	}
}

func scaled(steps []int64, percent int64) []int64 {
	out := make([]int64, len(steps))
	for i, s := range steps {
		out[i] = s * percent / 100
	}
	return out
}

// laws states what the cluster is made of: its routing, its steps and the
// geometric law of its sends.
func laws(p *tape.Plan, cfg *Config) {
	m := len(cfg.Steps)
	for i, ns := range cfg.Steps {
		row, commits := make([]float64, m), slices.Repeat([]float64{1}, m)
		iv := tape.Interval{N: 1000, Mean: 1}
		switch {
		case m == 1:
			row[0], iv = 1, tape.Interval{}
		case i == 0:
			row[0] = 1 - cfg.P
			for j := 1; j < m; j++ {
				row[j], commits[j] = cfg.P/float64(m-1), 0
			}
			iv.Mean = 1 / cfg.P
			iv.CV2 = 1 - cfg.P
			iv.Geom = iv.CV2
		default:
			row[0] = 1
		}
		p.P, p.K = append(p.P, row), append(p.K, commits)
		p.Step = append(p.Step, tape.StepFit{Base: float64(ns) / 1e6, Low: 1, High: cfg.N})
		p.Rows, p.Interval = append(p.Rows, 1000), append(p.Interval, iv)
	}
}
