package plan

import (
	"fmt"
	"math"
)

const (
	direct   = 128   // states of a class up to which it is solved directly
	rescue   = 2048  // the same where iteration ends without balance
	cycles   = 100   // of iteration, at most
	settled  = 1e-13 // relative change of the throughput in a cycle
	floor    = 1e-15 // relative residual that rounding leaves
	balanced = 1e-9  // flows in and out of each kind differ by less
	bearable = 1e-6  // the worst that is passed on
)

// solve gives the long-run rates of a recurrent class. A small class is solved
// by elimination; a larger one by cycles of [sweeps.improve] until throughput and
// flows are settled. Throughput alone would not do: where every step takes and
// commits the same it is right from the start.
func (g *graph) solve(states []int32, t *tarjan) (rates, error) {
	states = g.order(states, t)
	in := g.incoming(states)
	if len(states) <= direct {
		return g.rates(states, in.eliminate()), nil
	}
	v := newSweeps(in)
	r := rates{tokens: math.Inf(1)}
	done := false
	for range cycles {
		residual, last := v.improve(), r.tokens
		r = g.rates(states, v.x)
		done = residual <= floor || math.Abs(r.tokens-last) <= settled*r.tokens
		if residual <= floor || done && r.imbalance <= balanced {
			break
		}
	}
	if (!done || r.imbalance > balanced) && len(states) <= rescue {
		return g.rates(states, in.eliminate()), nil
	}
	if !done || r.imbalance > bearable {
		return r, fmt.Errorf("the chain of %d states does not settle: what comes to a model and what leaves it still differ by %.2g", len(states), r.imbalance)
	}
	return r, nil
}

// eliminate solves pi P = pi, up to a factor, by removing one state after the
// other in the order given: what went through it goes straight on (Grassmann,
// Taksar, Heyman, "Regenerative analysis and steady state distributions for
// Markov chains", Operations Research 1985). Nothing is subtracted, so rare
// states and near-periodic chains come out as exactly as any.
func (in *incoming) eliminate() []float64 {
	n := len(in.scale)
	a := make([][]float64, n) // a[i][j]: from i to j
	flat := make([]float64, n*n)
	for i := range a {
		a[i] = flat[i*n : (i+1)*n]
	}
	for j := range n {
		for e := in.row[j]; e < in.row[j+1]; e++ {
			a[in.from[e]][j] = in.p[e]
		}
	}
	out := make([]float64, n)
	next := make([]int, 0, n)
	for k := range n - 1 {
		next = next[:0]
		for j := k + 1; j < n; j++ {
			if a[k][j] > 0 {
				next = append(next, j)
				out[k] += a[k][j]
			}
		}
		for i := k + 1; i < n; i++ {
			if a[i][k] == 0 {
				continue
			}
			f := a[i][k] / out[k]
			for _, j := range next {
				a[i][j] += f * a[k][j]
			}
		}
	}
	x := make([]float64, n)
	x[n-1] = 1
	for k := n - 2; k >= 0; k-- {
		for i := k + 1; i < n; i++ {
			x[k] += x[i] * a[i][k]
		}
		x[k] /= out[k]
	}
	return x
}

// rates are long-run rates per tick.
type rates struct {
	tokens              float64
	rows, batches, busy []float64 // per model
	imbalance           float64   // largest relative difference of the flows into and out of a kind
}

// rates sums up what happens in a recurrent class under the weights x.
func (g *graph) rates(states []int32, x []float64) rates {
	m := len(g.b)
	r := rates{rows: make([]float64, m), batches: make([]float64, m), busy: make([]float64, m)}
	ticks := 0.0
	flow := make([]float64, len(g.model))
	ended := make([]int, m)
	for i, s := range states {
		ticks += x[i] * g.wait[s]
		r.tokens += x[i] * g.tokens[s]
		g.unpack(g.states.key(int(s)))
		clear(ended)
		for k, m := range g.model {
			if g.tau[m] == 0 {
				ended[m] += g.r[k]
				flow[k] += x[i] * float64(g.r[k])
			}
		}
		for m, n := range ended {
			if n > 0 {
				r.rows[m] += x[i] * float64(n)
				r.batches[m] += x[i]
				r.busy[m] += x[i] * float64(g.t[m][n])
			}
		}
	}
	r.tokens /= ticks
	for m := range g.b {
		r.rows[m] /= ticks
		r.batches[m] /= ticks
		r.busy[m] /= ticks
	}
	r.imbalance = g.imbalance(flow)
	return r
}

// imbalance compares, kind by kind, the requests that become of it with those
// that cease to be: in the long run they are as many (§2.2).
func (g *graph) imbalance(flow []float64) float64 {
	in, out := make([]float64, len(flow)), make([]float64, len(flow))
	for k, f := range flow {
		for _, b := range g.next[k] {
			if b.kind != k {
				in[b.kind] += f * b.p
				out[k] += f * b.p
			}
		}
	}
	worst := 0.0
	for k := range flow {
		if most := max(in[k], out[k]); most > 0 {
			worst = max(worst, math.Abs(in[k]-out[k])/most)
		}
	}
	return worst
}
