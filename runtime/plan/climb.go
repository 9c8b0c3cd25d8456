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
	var out [][]int
	b := ones(len(q.spec.P))
	var fill func(m, spare int) bool
	fill = func(m, spare int) bool {
		if m == len(b) {
			out = append(out, slices.Clone(b))
			return len(out) <= most
		}
		for b[m] = 1; b[m] <= min(q.most(m), 1+spare); b[m]++ {
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

// climb goes from several starts to a vector none of whose neighbours is better,
// first in long steps, then in shorter ones.
func (q *search) climb() error {
	best, err := q.value(ones(len(q.spec.P)))
	if err != nil {
		return err
	}
	for _, part := range []float64{.25, .5, .75} {
		b := ones(len(q.spec.P))
		for m := range b {
			b[m] = 1 + int(part*float64(q.most(m)-1))
		}
		q.fit(b)
		p, err := q.value(b)
		if err != nil {
			return err
		}
		if beats(p, best) {
			best = p
		}
	}
	for step := max(1, q.n/8); step > 0; step /= 2 {
		if best, err = q.ascend(best, step); err != nil {
			return err
		}
	}
	return nil
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

// ascend moves to a better neighbour while there is one: an entry up or else
// down by step, or one up and another down.
func (q *search) ascend(best Point, step int) (Point, error) {
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
