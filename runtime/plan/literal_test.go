package plan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// literal solves a system the plain way, as an oracle of the chain: it follows
// every request by itself, embeds after dispatch (§1.2) and shares nothing
// with the chain but the spec. Only for very small systems.
type literal struct {
	s      *Spec
	number map[string]int
	states []scene
	next   [][]leap
	tokens []float64 // expected at the completion after the state
	time   []float64 // until then, quanta
}

type scene struct {
	at      []int // request -> model
	phase   []int
	running []bool
	left    []int // model -> quanta
}

type leap struct {
	to int
	p  float64
}

func (x scene) clone() scene {
	return scene{slices.Clone(x.at), slices.Clone(x.phase), slices.Clone(x.running), slices.Clone(x.left)}
}

// start is the law of the phase in which a request comes to a model.
func (l *literal) start(m int) []float64 {
	if l.s.Send == nil || l.s.Send[m] == nil {
		return []float64{1}
	}
	return l.s.Send[m].Start
}

// route calls yield for all that can become of requests list after a step.
func (l *literal) route(x scene, list []int, p, tokens float64, yield func(scene, float64, float64)) {
	if len(list) == 0 {
		yield(x, p, tokens)
		return
	}
	r := list[0]
	i, leave := x.at[r], 1.0
	k := func(j int) float64 {
		if l.s.K == nil {
			return 1
		}
		return l.s.K[i][j]
	}
	move := func(j, phase int, q float64) {
		if q > 0 {
			y := x.clone()
			y.at[r], y.phase[r], y.running[r] = j, phase, false
			l.route(y, list[1:], p*q, tokens+k(j), yield)
		}
	}
	if l.s.Send != nil && l.s.Send[i] != nil {
		for phase, q := range l.s.Send[i].Next[x.phase[r]] {
			move(i, phase, q)
			leave -= q
		}
		leave /= 1 - l.s.P[i][i]
	} else {
		move(i, 0, l.s.P[i][i])
	}
	for j, q := range l.s.P[i] {
		for phase, e := range l.start(j) {
			if j != i && leave > 1e-12 {
				move(j, phase, q*leave*e)
			}
		}
	}
}

// dispatch calls yield for all batches that can start.
func (l *literal) dispatch(x scene, m int, p float64, yield func(scene, float64)) {
	if m == len(l.s.P) {
		yield(x, p)
		return
	}
	var waiting []int
	for r, at := range x.at {
		if at == m && !x.running[r] {
			waiting = append(waiting, r)
		}
	}
	if x.left[m] > 0 || len(waiting) < l.s.B[m] {
		l.dispatch(x, m+1, p, yield)
		return
	}
	rows := len(waiting)
	if l.s.Cap != nil {
		rows = min(rows, l.s.Cap[m])
	}
	var subsets [][]int
	var pick func(from int, have []int)
	pick = func(from int, have []int) {
		if len(have) == rows {
			subsets = append(subsets, slices.Clone(have))
			return
		}
		for i := from; i < len(waiting); i++ {
			pick(i+1, append(have, waiting[i]))
		}
	}
	pick(0, nil)
	for _, set := range subsets {
		y := x.clone()
		for _, r := range set {
			y.running[r] = true
		}
		y.left[m] = int(math.Round(l.s.Step[m].Of(rows) / l.s.Quantum))
		l.dispatch(y, m+1, p/float64(len(subsets)), yield)
	}
}

func (l *literal) id(x scene) int {
	key := fmt.Sprint(x)
	if i, ok := l.number[key]; ok {
		return i
	}
	l.number[key] = len(l.states)
	l.states = append(l.states, x)
	return len(l.states) - 1
}

// expand goes through all states from all requests waiting at model 0.
func (l *literal) expand(most int) (first []leap, ok bool) {
	var begin func(x scene, r int, p float64)
	begin = func(x scene, r int, p float64) {
		if r == l.s.N {
			l.dispatch(x, 0, p, func(x scene, p float64) { first = append(first, leap{l.id(x), p}) })
			return
		}
		for phase, e := range l.start(0) {
			if e > 0 {
				y := x.clone()
				y.phase[r] = phase
				begin(y, r+1, p*e)
			}
		}
	}
	begin(scene{make([]int, l.s.N), make([]int, l.s.N), make([]bool, l.s.N), make([]int, len(l.s.P))}, 0, 1)
	for i := 0; i < len(l.states); i++ {
		if len(l.states) > most {
			return nil, false
		}
		x := l.states[i].clone()
		step := math.MaxInt
		for _, t := range x.left {
			if t > 0 {
				step = min(step, t)
			}
		}
		var ended []int
		for m := range x.left {
			if x.left[m] == 0 {
				continue
			}
			if x.left[m] -= step; x.left[m] > 0 {
				continue
			}
			for r, at := range x.at {
				if at == m && x.running[r] {
					ended = append(ended, r)
				}
			}
		}
		var row []leap
		sum := 0.0
		l.route(x, ended, 1, 0, func(x scene, p, tokens float64) {
			sum += p * tokens
			l.dispatch(x, 0, p, func(x scene, p float64) { row = append(row, leap{l.id(x), p}) })
		})
		l.next, l.tokens, l.time = append(l.next, row), append(l.tokens, sum), append(l.time, float64(step))
	}
	return first, true
}

// longRun holds means over time: tokens per quantum, and requests waiting and
// running and batches running per model.
type longRun struct {
	tokens                float64
	waiting, rows, active []float64
}

// solve averages the law of the state over a long time, which the period of the
// chain cannot disturb: half the weight stays in each round.
func (l *literal) solve(first []leap) longRun {
	x, y := make([]float64, len(l.states)), make([]float64, len(l.states))
	for _, f := range first {
		x[f.to] += f.p
	}
	for range 100_000 {
		for i := range y {
			y[i] = x[i] / 2
		}
		for i, row := range l.next {
			for _, e := range row {
				y[e.to] += x[i] / 2 * e.p
			}
		}
		diff := 0.0
		for i := range y {
			diff += math.Abs(x[i] - y[i])
		}
		x, y = y, x
		if diff < 1e-14 {
			break
		}
	}
	m := len(l.s.P)
	out := longRun{0, make([]float64, m), make([]float64, m), make([]float64, m)}
	time := 0.0
	for i, s := range l.states {
		w := x[i] * l.time[i]
		time += w
		out.tokens += x[i] * l.tokens[i]
		for r, at := range s.at {
			if s.running[r] {
				out.rows[at] += w
			} else {
				out.waiting[at] += w
			}
		}
		for m, left := range s.left {
			if left > 0 {
				out.active[m] += w
			}
		}
	}
	out.tokens /= time
	for m := range m {
		out.waiting[m] /= time
		out.rows[m] /= time
		out.active[m] /= time
	}
	return out
}

// specs draws small systems in which every request can go everywhere.
func specs(t *rapid.T) *Spec {
	m := rapid.IntRange(2, 3).Draw(t, "models")
	s := &Spec{N: rapid.IntRange(1, 6-m).Draw(t, "N"), Quantum: 1}
	law := func(name string, n, least int) []float64 {
		w := rapid.SliceOfN(rapid.IntRange(least, 5), n, n).Draw(t, name)
		sum := 0
		for i, x := range w {
			w[i] = max(x, least)
			sum += w[i]
		}
		p := make([]float64, n)
		for i, x := range w {
			p[i] = float64(x) / float64(max(1, sum))
		}
		return p
	}
	spare := s.N - 1
	for range m {
		s.P = append(s.P, law("P", m, 1))
		s.K = append(s.K, law("K", m, 0))
		s.Step = append(s.Step, Latency{float64(rapid.IntRange(1, 4).Draw(t, "base")), float64(rapid.IntRange(0, 1).Draw(t, "per row"))})
		b := rapid.IntRange(0, spare).Draw(t, "B-1")
		spare -= b
		s.B = append(s.B, b+1)
		var f *Phases
		if rapid.IntRange(0, 3).Draw(t, "send") == 0 {
			f = Intervals(law("interval", 2, 1))
			f.Start = law("start", 2, 1)
		}
		s.Send = append(s.Send, f)
	}
	s.K[0][0]++
	if rapid.Bool().Draw(t, "capped") {
		s.Cap = rapid.SliceOfN(rapid.IntRange(1, s.N), m, m).Draw(t, "cap")
	}
	return s
}

// TestChainAgainstLiteral: lumping, phases, caps and thresholds change nothing,
// and requests are conserved: those that wait, as the oracle sees them, and those
// that run, which are the chain's steps by their time, are N.
func TestChainAgainstLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := specs(t)
		l := &literal{s: s, number: map[string]int{}}
		first, ok := l.expand(3000)
		if !ok {
			t.Skip("too large for the oracle")
		}
		want := l.solve(first)
		got, err := Chain(s)
		if err != nil {
			t.Fatal(err)
		}
		if got.Classes != 1 {
			t.Fatalf("%d classes where every request goes everywhere, want 1", got.Classes)
		}
		close := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("%s is %v, the oracle says %v (%+v)", what, got, want, s)
			}
		}
		close("tokens/s", got.Throughput, want.tokens*1000)
		requests := 0.0
		for m := range s.P {
			close("busy", got.Busy[m], want.active[m])
			flow := 0.0
			if s.Send[m] == nil && s.Step[m].PerRow == 0 {
				close("busy by mean batch", got.Busy[m], got.Steps[m]*s.Step[m].Base/1000/got.MeanBatch[m])
				close("running", got.Steps[m]*s.Step[m].Base/1000, want.rows[m])
			}
			requests += want.rows[m] + want.waiting[m]
			geometric := true
			for i := range s.P {
				flow += got.Steps[i] * s.P[i][m]
				geometric = geometric && s.Send[i] == nil
			}
			if geometric {
				close("flow into a model", flow, got.Steps[m])
			}
		}
		close("requests", requests, float64(s.N))
	})
}
