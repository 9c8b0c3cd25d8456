package workload

import (
	"fmt"
	"strconv"
)

// measure is a pair of units, the large one so many of the small one.
type measure struct {
	large, small string
	factor       int
	most         int // large ones named in a question
}

var measures = [...]measure{
	{"h", "min", 60, 9},
	{"min", "s", 60, 9},
	{"m", "cm", 100, 8},
	{"weeks", "days", 7, 12},
	{"days", "h", 24, 9},
	{"dozen", "apples", 12, 12},
}

// mostBack is the most large units that an answer is reckoned back to: the
// multiples up to it can be learnt by heart.
const mostBack = 12

// amount is a problem about one quantity in two units.
type amount struct {
	telling
	measure
	owner, other string
	total        int // in small units
}

func tellUnits(r *splitMix) Problem {
	who := twoNames(r)
	a := amount{measure: measures[r.below(len(measures))], owner: who[0], other: who[1]}
	want, back := r.between(3, 6), r.below(3) == 0
	if back {
		want -= 2
	}
	a.begin(r)
	for changes := 0; changes == 0 || a.done < want; {
		before := a.done
		a.step(r, want-a.done)
		if a.done > before {
			changes++
		}
	}
	if q := a.total / a.factor; back && q >= 1 && q <= mostBack {
		return a.inBoth(q)
	}
	if r.below(2) == 0 {
		a.ask(" How many %s does %s have now?", a.small, a.owner)
	} else {
		a.ask(" How many %s is that?", a.small)
	}
	return a.problem(strconv.Itoa(a.total))
}

func (a *amount) begin(r *splitMix) {
	k, b := r.between(2, a.most), r.between(2, a.factor-1)
	a.ask("%s has %s.", a.owner, a.both(r, k, b))
	a.total = k*a.factor + b
	a.think("Start with %d*%d=%d, %d+%d=%d.\n", k, a.factor, k*a.factor, k*a.factor, b, a.total)
	a.done = 2
}

// both names an amount in both units.
func (a *amount) both(r *splitMix, k, b int) string {
	if r.below(2) == 0 {
		return fmt.Sprintf("%d %s and %d %s", k, a.large, b, a.small)
	}
	return fmt.Sprintf("%d %s %d %s", k, a.large, b, a.small)
}

// step tries one sentence of at most room equations, or of one.
func (a *amount) step(r *splitMix, room int) {
	k, b, op := 0, 0, byte('+')
	if r.below(2) == 0 {
		op = '-'
	}
	switch kind := r.below(6); {
	case kind < 2 || room < 2:
		b = r.between(2, a.factor-1)
	case kind < 5 || room < 3:
		k = r.between(2, max(2, a.most/2))
	default:
		k, b = r.between(2, max(2, a.most/2)), r.between(2, a.factor-1)
	}
	size := k*a.factor + b
	result := reckon(a.total, op, size)
	if result > maxNumber || result < 2 {
		return
	}
	what := fmt.Sprintf("%d %s", k, a.large)
	switch {
	case k == 0:
		what = fmt.Sprintf("%d %s", b, a.small)
	case b > 0:
		what = a.both(r, k, b)
	}
	a.verb(r, op, what)
	if k > 0 {
		a.think("%d*%d=%d, ", k, a.factor, k*a.factor)
		a.done++
	}
	if k > 0 && b > 0 {
		a.think("%d+%d=%d, ", k*a.factor, b, size)
		a.done++
	}
	a.think("%d%c%d=%d.\n", a.total, op, size, result)
	a.total = result
	a.done++
}

// verb tells that what is won or lost, and begins the line of the thought.
func (a *amount) verb(r *splitMix, op byte, what string) {
	way := r.below(2)
	switch {
	case op == '+' && way == 0:
		a.ask(" %s finds %s more.", a.owner, what)
		a.think("Finds %s: ", what)
	case op == '+':
		a.ask(" %s gives %s %s.", a.other, a.owner, what)
		a.think("%s gives %s: ", a.other, what)
	case way == 0:
		a.ask(" %s loses %s.", a.owner, what)
		a.think("Loses %s: ", what)
	default:
		a.ask(" %s gives %s to %s.", a.owner, what, a.other)
		a.think("Gives %s: ", what)
	}
}

// inBoth asks for the total in both units, q of them large.
func (a *amount) inBoth(q int) Problem {
	a.ask(" How many %s and %s does %s have now?", a.large, a.small, a.owner)
	whole := q * a.factor
	a.think("%d*%d=%d, %d-%d=%d.\n", q, a.factor, whole, a.total, whole, a.total-whole)
	a.done += 2
	a.form = fmt.Sprintf("7 %s 5 %s", a.large, a.small)
	return a.problem(fmt.Sprintf("%d %s %d %s", q, a.large, a.total-whole, a.small))
}
