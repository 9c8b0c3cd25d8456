package plan

import "slices"

// most is the largest threshold of model m that can be searched.
func (q *search) most(m int) int {
	if m == 0 && !q.FreeB0 {
		return 1
	}
	return min(q.n, q.stage.cap[m])
}

// vectors lists the feasible vectors, nil if there are more than most.
func (q *search) vectors(most int) [][]int {
	return q.grid(func(b int) int { return b + 1 }, most)
}

// grid lists the feasible vectors of the thresholds 1, next(1), next(next(1)),
// ...; nil if there are more than most.
func (q *search) grid(next func(int) int, most int) [][]int {
	var out [][]int
	b := ones(len(q.spec.P))
	var fill func(m, spare int) bool
	fill = func(m, spare int) bool {
		if m == len(b) {
			out = append(out, slices.Clone(b))
			return len(out) <= most
		}
		for b[m] = 1; b[m] <= min(q.most(m), 1+spare); b[m] = next(b[m]) {
			if !fill(m+1, spare-(b[m]-1)) {
				return false
			}
		}
		return true
	}
	if !fill(0, q.n-1) {
		return nil
	}
	return out
}

// How a climb sets out.
const (
	scoutEvents = 1500
	surveyed    = 200 // vectors of the coarse grid at most
	hilltops    = 4   // that are climbed briefly
	climbed     = 3   // of them, that are looked at closely
)

// climb looks for the best vector where not all of them are looked at. With more
// than one threshold to choose the throughput has several hills: one model may
// wait for many or another may, and in between is worse. So a scout surveys and
// climbs them with short runs; those that may be the highest, and what is known to
// be good, are looked at closely, and the climb goes on from there in short steps.
func (q *search) climb() error {
	scout := q.scout()
	if err := scout.survey(); err != nil {
		return err
	}
	tops, err := scout.tops()
	if err != nil {
		return err
	}
	var from [][]int
	for _, top := range tops[:min(climbed, len(tops))] {
		if top.Throughput >= tops[0].Throughput*(1-scout.blur(tops[0], top)) {
			from = append(from, top.B)
		}
	}
	if q.Near != nil {
		b := slices.Clone(q.Near)
		q.fit(b)
		from = append(from, b)
	}
	for _, b := range from {
		p, err := q.value(b)
		if err != nil {
			return err
		}
		if _, err = q.ascend(p, 2); err != nil {
			return err
		}
	}
	return nil
}

// scout is a search of the same system by short runs. It is q if its own are
// short, and under a bound, where vectors from all over may be asked for.
func (q *search) scout() *search {
	if q.MaxP99 > 0 || q.method == ByFluid || (q.method == ByCountSim && q.Events <= refineEvents) {
		return q
	}
	return q.brief(scoutEvents)
}

// brief is a search of the same system by the count simulator, with that many
// events per vector.
func (q *search) brief(events int) *search {
	v := *q
	v.method, v.Events = ByCountSim, events
	v.forget()
	return &v
}

// survey looks at vectors all over: the rule of [Explain], one threshold alone
// at 1, 2, 3, 4, 6, 8, 12, ... and the largest it can have, and a coarse grid of
// all of them.
func (q *search) survey() error {
	var out [][]int
	for ratio := 2; len(out) == 0; ratio *= 2 {
		out = q.grid(func(b int) int { return b * ratio }, surveyed)
	}
	with := func(m, k int) {
		b := ones(len(q.spec.P))
		b[m] = k
		q.fit(b)
		out = append(out, b)
	}
	if k := Explain(q.with(nil)); k > 0 {
		with(1, k)
	}
	for m := range q.spec.P {
		for k := 2; k < q.most(m); k *= 2 {
			with(m, k+k/2)
		}
		with(m, q.most(m))
	}
	return q.each(out)
}

// tops climbs from the best places seen and gives where that ends, the best
// first.
func (q *search) tops() ([]Point, error) {
	var out []Point
	for _, p := range q.distinct(hilltops, 2) {
		top, err := q.ascend(p, max(1, q.n/8))
		if err != nil {
			return nil, err
		}
		out = append(out, top)
	}
	slices.SortFunc(out, order)
	return slices.CompactFunc(out, func(x, y Point) bool { return slices.Equal(x.B, y.B) }), nil
}

// distinct are up to most of the points seen, the best of alike ones, the best
// first.
func (q *search) distinct(most int, ratio float64) (out []Point) {
	for _, p := range q.ranked() {
		if len(out) < most && !slices.ContainsFunc(out, func(o Point) bool { return alike(o.B, p.B, ratio) }) {
			out = append(out, p)
		}
	}
	return out
}

// alike says that no threshold is more than ratio times as large in one as in
// the other.
func alike(x, y []int, ratio float64) bool {
	for m := range x {
		if float64(max(x[m], y[m])) > ratio*float64(min(x[m], y[m])) {
			return false
		}
	}
	return true
}

// fit lowers b to what is feasible, as the core does: by the largest entry, of
// equal ones the last.
func (q *search) fit(b []int) {
	for m := range b {
		b[m] = max(1, min(b[m], q.most(m)))
	}
	for !Feasible(b, q.n) {
		top := 0
		for m := range b {
			if b[m] >= b[top] {
				top = m
			}
		}
		b[top]--
	}
}

// ascend climbs from a point in steps that get shorter.
func (q *search) ascend(from Point, step int) (best Point, err error) {
	for best = from; step > 0; step /= 2 {
		if best, err = q.stride(best, step); err != nil {
			break
		}
	}
	return best, err
}

// stride moves to a better neighbour while there is one: an entry up or else
// down by step, or one up and another down.
func (q *search) stride(best Point, step int) (Point, error) {
	try := func(from []int, up, down int) (bool, error) {
		b := slices.Clone(from)
		if up >= 0 {
			b[up] += step
		}
		if down >= 0 {
			b[down] -= step
		}
		for m := range b {
			if b[m] < 1 || b[m] > q.most(m) {
				return false, nil
			}
		}
		if !Feasible(b, q.n) {
			return false, nil
		}
		p, err := q.value(b)
		if err != nil || !beats(p, best) {
			return false, err
		}
		best = p
		return true, nil
	}
	for {
		from, moved := best.B, false
		for i := range from {
			for _, to := range [][2]int{{i, -1}, {-1, i}} {
				better, err := try(from, to[0], to[1])
				if err != nil {
					return best, err
				}
				if better {
					moved = true
					break
				}
			}
		}
		for i := range from {
			for j := range from {
				if moved || i == j || (min(i, j) == 0 && !q.FreeB0) {
					continue
				}
				better, err := try(from, i, j)
				if err != nil {
					return best, err
				}
				moved = moved || better
			}
		}
		if !moved {
			return best, nil
		}
	}
}
