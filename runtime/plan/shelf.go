package plan

import (
	"cmp"
	"math"
	"slices"
)

// Shelf keeps tables, so that one which was made for a system like the one asked
// for need not be made again. Measured shares tremble: around one truth they come
// back to where they have been, and so does a system that changes to and fro.
//
// Alike are systems whose rows of [Tabulate] are as good for one another (see
// alike); of several tables the one that was made for the nearest is taken. What
// is found depends on the order of calls alone.
//
// Seed is that of the simulators, Most how many tables are kept: beyond it the one
// that was not used for longest goes.
type Shelf struct {
	Seed uint64
	Most int
	kept []kept // the one used last is the last
}

// kept is a table and what it was made for.
type kept struct {
	spec  Spec
	marks marks
	table Table
}

// Find looks for a table of at least maxN rows that was made for a system like s,
// and gives maxN rows of it. Their throughputs are of the system they were made
// for.
func (h *Shelf) Find(s *Spec, maxN int) (t Table, ok bool) {
	best, least := -1, 1.0
	asked := marksOf(s)
	for i := range h.kept {
		if k := &h.kept[i]; maxN <= len(k.table.Rows) && slices.Equal(s.Cap, k.spec.Cap) {
			if d := asked.apart(&k.marks, s, &k.spec, maxN); d <= least {
				best, least = i, d // of equals the one used later
			}
		}
	}
	if best < 0 || maxN < 1 || jumps(s) {
		return Table{}, false
	}
	k := h.kept[best]
	h.kept = append(slices.Delete(h.kept, best, best+1), k)
	return Table{Rows: k.table.Rows[:maxN:maxN]}, true
}

// jumps says whether a step of some model takes nearly a whole number of steps of
// the first: there the table is another one a percent further (§4.4), so none that
// is kept is as good. What is more, where models slow one another down the table in
// force has a part in what is measured: one from the wrong side of the jump would
// bring about the very figures that it is found by.
func jumps(s *Spec) bool {
	for m := 1; m < len(s.Step); m++ {
		for _, rows := range []int{1, s.N} {
			ratio := s.Step[m].Of(rows) / s.Step[0].Of(rows)
			if near := math.Round(ratio); near >= 1 && near <= lastJump && math.Abs(ratio-near) <= jumpWidth*near {
				return true
			}
		}
	}
	return false
}

// The ratios at which B* jumps: at those above it is robust (§4.4). Beyond the width
// nothing that is alike lies on the other side.
const (
	lastJump  = 3
	jumpWidth = 0.05
)

// Len is how many tables are kept.
func (h *Shelf) Len() int { return len(h.kept) }

// Tabulate makes a table and keeps it. Errors are those of [Tabulate].
func (h *Shelf) Tabulate(s *Spec, maxN int) (Table, error) {
	t, err := Tabulate(s, maxN, Options{Seed: h.Seed})
	if err != nil || h.Most < 1 {
		return t, err
	}
	if over := len(h.kept) + 1 - h.Most; over > 0 {
		h.kept = slices.Delete(h.kept, 0, over)
	}
	h.kept = append(h.kept, kept{spec: *s, marks: marksOf(s), table: t})
	return t, nil
}

// marks are figures of a spec by which it is told whether another is like it.
type marks struct {
	flow [][]float64 // [i][j]: share of all decode steps that are at i and send to j
	laws []moments   // by model; 0 for the geometric law
}

func marksOf(s *Spec) marks {
	n := len(s.P)
	m := marks{flow: make([][]float64, n), laws: make([]moments, n)}
	for i, row := range s.P {
		m.flow[i] = slices.Clone(row)
		if f := s.law(i); f != nil {
			m.laws[i] = f.moments()
			leave := 1 / m.laws[i].mean
			for j := range row {
				m.flow[i][j] *= leave / (1 - row[i])
			}
			m.flow[i][i] = 1 - leave
		}
	}
	for i, share := range visits(m.flow) {
		for j := range m.flow[i] {
			m.flow[i][j] *= share
		}
	}
	return m
}

// net is how many tokens a decode step commits in the long run from model 0 on.
func (s *Spec) net() (tokens float64) {
	for i, row := range marksOf(s).flow {
		for j, share := range row {
			tokens += share * s.committed(i, j)
		}
	}
	return tokens
}

// visits is the share of a request's steps that are at each model, in the long
// run from model 0 on. It squares the chain that stays where it is every other
// time, which has the same shares and no period.
func visits(p [][]float64) []float64 {
	q := make([][]float64, len(p))
	for i, row := range p {
		q[i] = make([]float64, len(p))
		for j, x := range row {
			q[i][j] = x / 2
		}
		q[i][i] += 0.5
	}
	for range 40 {
		next := make([][]float64, len(q))
		for i := range q {
			next[i] = make([]float64, len(q))
			sum := 0.0
			for j := range q {
				for k := range q {
					next[i][j] += q[i][k] * q[k][j]
				}
				sum += next[i][j]
			}
			for j := range q {
				next[i][j] /= sum
			}
		}
		q = next
	}
	return q[0]
}

// What stays within these bounds gives a table as good. A flow says how much a
// share weighs: what is sent on from a model that has few steps matters little,
// and is measured worst.
const (
	flowNear = 0.02
	stepNear = 0.02
	cv2Near  = 0.2 // measured over a thousand sends that of a law trembles by half of it
)

// apart is how far two systems lie from one another by that of their marks which
// lies furthest: up to 1 they are alike. Step times count at both ends, for one
// row and for n. K does not: whatever the thresholds, steps are shared out as the
// flows are, so K scales all throughputs alike.
func (m *marks) apart(o *marks, s, old *Spec, n int) float64 {
	if len(m.flow) != len(o.flow) {
		return math.Inf(1)
	}
	now, before := cmp.Or(s.Quantum, quantum), cmp.Or(old.Quantum, quantum)
	d := math.Abs(now-before) / (stepNear * before)
	for i := range m.flow {
		for j := range m.flow[i] {
			d = max(d, math.Abs(m.flow[i][j]-o.flow[i][j])/flowNear)
		}
		for _, rows := range []int{1, n} {
			now, before := s.Step[i].Of(rows), old.Step[i].Of(rows)
			d = max(d, math.Abs(now-before)/(stepNear*before))
		}
		x, y := m.laws[i], o.laws[i]
		if (x.mean == 0) != (y.mean == 0) {
			return math.Inf(1)
		}
		d = max(d, math.Abs(x.cv2-y.cv2)/cv2Near)
	}
	return d
}
