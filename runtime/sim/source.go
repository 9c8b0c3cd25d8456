package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/plan"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sched"
)

// Source is models and router in one: it answers the batch of a step that ends.
type Source interface {
	// Answer fills in what the model said and the router decided about the rows
	// of core p's batch b at time at: step has one row for each of b that samples,
	// in their order, with Req set and all else zero. A failure goes into Err.
	// core knows the requests as they were when the step began.
	Answer(at int64, p event.Peer, core *sched.Core, b *event.Batch, step *event.StepResult)
}

// Markov is the source of the throughput model (§1.1): a step at model i
// sends its request to j with chance P[i][j] and commits its token iff K[i][j]
// is 1. Steps between sends follow Send where it is given. Of each system only
// P, K and Send count; with several, the source switches to the next one every
// so often, in turn, at multiples of every in virtual time.
func Markov(seed uint64, every time.Duration, systems ...plan.Spec) (Source, error) {
	if len(systems) == 0 || len(systems) > 1 && every <= 0 {
		return nil, fmt.Errorf("%d systems that switch every %v; give one, or several and a time", len(systems), every)
	}
	s := &markov{seed: seed, every: int64(every)}
	for i := range systems {
		// What else a system is has no say here.
		sys := plan.Spec{N: 1, P: systems[i].P, K: systems[i].K, Send: systems[i].Send}
		for range sys.P {
			sys.Step = append(sys.Step, plan.Latency{Base: 1})
		}
		if err := sys.Check(); err != nil {
			return nil, err
		}
		t, err := newTable(&sys)
		if err != nil {
			return nil, err
		}
		s.tables = append(s.tables, t)
	}
	return s, nil
}

type markov struct {
	seed   uint64
	every  int64
	tables []table
}

// table is one system with its chances as limits of 64-bit draws, so that no
// machine rounds otherwise.
type table struct {
	dest [][]limit // of a step; of one that sends where model i has phases
	drop [][]bool
	send []*phases
}

// limit is where the draws of an outcome end.
type limit = uint64

// phases is plan.Phases with its chances as limits; the outcome behind the last
// phase is to leave.
type phases struct {
	start []limit
	next  [][]limit
	state [][]byte // the request's state in each phase
}

func newTable(s *plan.Spec) (table, error) {
	n := len(s.P)
	t := table{send: make([]*phases, n)}
	for i, row := range s.P {
		weights, drops := slices.Clone(row), make([]bool, n)
		for j := range row {
			if s.K == nil || s.K[i][j] == 1 {
				continue
			}
			if s.K[i][j] != 0 || i == j {
				return t, fmt.Errorf("entry K[%d][%d] is %v; a step commits its token, 1, or drops it for another model, 0", i, j, s.K[i][j])
			}
			drops[j] = true
		}
		t.drop = append(t.drop, drops)
		if i < len(s.Send) && s.Send[i] != nil {
			if len(s.Send[i].Start) > 256 {
				return t, fmt.Errorf("the send law of model %d has %d phases; give at most 256", i, len(s.Send[i].Start))
			}
			t.send[i] = newPhases(s.Send[i])
			weights[i] = 0
		}
		t.dest = append(t.dest, limits(weights))
	}
	if i := t.cycle(s.P); i >= 0 {
		return t, fmt.Errorf("a position could be dropped at model %d again and again; let K commit somewhere on the way round", i)
	}
	return t, nil
}

// cycle is a model to which drops can lead back, -1 if there is none: the core
// takes a position that is dropped twice for a router fault (INV-11).
func (t *table) cycle(p [][]float64) int {
	n := len(p)
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
		for j := range reach[i] {
			reach[i][j] = t.drop[i][j] && p[i][j] > 0
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	for i := range n {
		if reach[i][i] {
			return i
		}
	}
	return -1
}

func newPhases(p *plan.Phases) *phases {
	ph := &phases{start: limits(p.Start)}
	for k, row := range p.Next {
		leave := 1.0
		for _, x := range row {
			leave -= x
		}
		ph.next = append(ph.next, limits(append(slices.Clone(row), max(0, leave))))
		ph.state = append(ph.state, []byte{byte(k)})
	}
	return ph
}

// limits turns weights into limits, up to the last outcome that can happen.
func limits(weights []float64) []limit {
	sum, last := 0.0, 0
	for i, w := range weights {
		if sum += w; w > 0 {
			last = i
		}
	}
	out := make([]limit, last+1)
	part := 0.0
	for i := range out {
		part += weights[i]
		out[i] = math.MaxUint64
		if x := math.Ldexp(part/sum, 64); i < last && x < math.MaxUint64 {
			out[i] = uint64(x)
		}
	}
	return out
}

func pick(l []limit, draw uint64) int {
	i := 0
	for i < len(l)-1 && draw >= l[i] {
		i++
	}
	return i
}

// Answer implements Source. The phase of a send interval is the request's state,
// which travels with it and begins anew at each model.
func (s *markov) Answer(at int64, p event.Peer, core *sched.Core, b *event.Batch, step *event.StepResult) {
	t := &s.tables[0]
	if len(s.tables) > 1 {
		t = &s.tables[at/s.every%int64(len(s.tables))]
	}
	k := 0
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Sample {
			s.row(t, p, core, row, &step.Rows[k])
			k++
		}
	}
}

func (s *markov) row(t *table, p event.Peer, core *sched.Core, row *event.Row, out *event.RowResult) {
	key := rng.Key{Seed: s.seed, Req: uint64(row.Req), Pos: row.Start + len(row.Tokens), Model: int(p), Purpose: rng.Route}
	draw := key.Uint64(0)
	out.Output.Token = event.Token(draw % vocabulary)
	if ph := t.send[p]; ph != nil {
		key.Purpose = rng.Phase
		var state []byte
		if v, ok := core.View(row.Req); ok {
			state = v.State
		}
		var now int
		if len(state) == 1 && int(state[0]) < len(ph.next) {
			now = int(state[0])
		} else {
			now = pick(ph.start, key.Uint64(1))
		}
		if next := pick(ph.next[now], key.Uint64(0)); next < len(ph.next) {
			out.Dest, out.State = p, ph.state[next]
			return
		}
	}
	to := pick(t.dest[p], draw)
	out.Dest = event.Peer(to)
	if t.drop[p][to] {
		out.Action = event.Drop
	}
}
