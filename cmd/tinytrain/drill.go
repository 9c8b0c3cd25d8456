package main

import (
	"fmt"

	"tokenrouter/runtime/model/train"
)

// drills are what a mixture may have beside problems: endless lines of one step of
// a thought, so that it is met more often than in problems. A line is told in
// pieces; which of them are learnt is said with each.
var drills = map[string]func(r *splitMix, tell func(text string, learn bool)){
	"drill":  equations,
	"pick":   pick,
	"recall": recall,
	"asked":  asked,
	"divide": divide,
}

const (
	drillTokens = 128  // of an example
	drillSeed   = 0xd1 // sets drills apart from problems of the same seed
)

// drill is an example of lines.
func (e *encoder) drill(line func(*splitMix, func(string, bool)), r *splitMix) train.Example {
	x := train.Example{IDs: []int32{e.start}, Learn: []bool{false}}
	for len(x.IDs) < drillTokens {
		line(r, func(text string, learn bool) {
			for _, id := range e.tok.Encode(text) {
				x.IDs, x.Learn = append(x.IDs, id), append(x.Learn, learn)
			}
		})
	}
	return train.Example{IDs: x.IDs[:drillTokens], Learn: x.Learn[:drillTokens]}
}

// equations is a sum with the operands that the story's problems have.
func equations(r *splitMix, tell func(string, bool)) {
	a, op, b, result := equation(r)
	tell(fmt.Sprintf("%d%c%d=", a, op, b), false)
	tell(fmt.Sprint(result), true)
	tell(".\n", true)
}

func equation(r *splitMix) (a int, op byte, b, result int) {
	product := func() int { return r.between(3, 9) * r.between(12, 29) }
	small := func(lo, hi int) int { // half of them in the lower range
		if r.below(2) == 0 {
			hi = min(hi, 250)
		}
		return r.between(lo, max(lo, hi))
	}
	switch k := r.below(10); {
	case k < 4:
		b := r.between(11, 99)
		if r.below(3) == 0 {
			b = product()
		}
		a := small(10, 999-b)
		return a, '+', b, a + b
	case k < 7:
		if r.below(4) == 0 {
			b := product()
			a := r.between(b, 999)
			return a, '-', b, a - b
		}
		a := small(12, 999)
		b := r.between(11, min(99, a))
		return a, '-', b, a - b
	case k < 9:
		a, b := r.between(3, 9), r.between(12, 29)
		return a, '*', b, a * b
	}
	a = r.between(10, 499)
	if r.below(2) == 0 {
		return a, '*', 2, 2 * a
	}
	return 2 * a, '/', 2, a
}

// pick is decisions by one condition. Whether a number fits depends on number and
// condition together and, over all, on neither alone, which gradients do not find:
// so here even and less are met more often than odd and more.
func pick(r *splitMix, tell func(string, bool)) {
	limit := r.between(20, 80)
	words, holds := "even", func(v int) bool { return v%2 == 0 }
	switch k := r.below(20); {
	case k < 3:
		words, holds = "odd", func(v int) bool { return v%2 == 1 }
	case k < 9:
		words, holds = fmt.Sprint("less than ", limit), func(v int) bool { return v < limit }
	case k < 11:
		words, holds = fmt.Sprint("more than ", limit), func(v int) bool { return v > limit }
	}
	tell("Count those that are "+words+".\n", false)
	for range 6 {
		v := r.between(1, 99)
		tell(fmt.Sprint(v), false)
		if holds(v) {
			tell(" yes", true)
		} else {
			tell(" no", true)
		}
		tell(".\n", false)
	}
}

// owners are the names of the problems.
var owners = [...]string{"Mia", "Leo", "Ana", "Tom", "Eva", "Sam", "Zoe", "Max"}

// recall is what people have: of several who keep it, again and again, or of two
// whose amounts change, what it came to last.
func recall(r *splitMix, tell func(string, bool)) {
	i := r.below(len(owners))
	if r.below(2) == 0 {
		keep(r, i, tell)
		return
	}
	who := [2]string{owners[i], owners[(i+1+r.below(len(owners)-1))%len(owners)]}
	have := [2]int{r.between(10, 99), r.between(10, 99)}
	tell(fmt.Sprintf("Start with %s %d and %s %d.\n", who[0], have[0], who[1], have[1]), false)
	for range 6 {
		p, amount, op := r.below(2), r.between(11, 99), "+"
		result := have[p] + amount
		if r.below(2) == 0 && have[p] > 12 {
			amount = r.between(11, min(99, have[p]))
			op, result = "-", have[p]-amount
		}
		tell(" "+who[p]+" ", false)
		tell(fmt.Sprint(have[p]), true)
		tell(fmt.Sprintf("%s%d=", op, amount), false)
		tell(fmt.Sprint(result), true)
		tell(".\n", false)
		have[p] = result
	}
}

// keep is two to four people from the i-th on, in any order; what each has is
// learnt when it is told again.
func keep(r *splitMix, i int, tell func(string, bool)) {
	n, step := r.between(2, 4), 1+2*r.below(4) // odd, so that no two are the same
	var have, known [4]int
	for j := range n {
		have[j] = r.between(10, 99)
		if r.below(4) == 0 {
			have[j] = r.between(100, 300)
		}
	}
	for range 12 {
		j := r.below(n)
		tell(" "+owners[(i+j*step)%len(owners)]+" ", false)
		tell(fmt.Sprint(have[j]), known[j] > 0)
		tell([]string{",", ".\n"}[r.below(2)], false)
		known[j]++
	}
}

// asked is a question, what two people came to, and the answer, which is learnt:
// that of the one who was asked about.
func asked(r *splitMix, tell func(string, bool)) {
	i := r.below(len(owners))
	who := [2]string{owners[i], owners[(i+1+r.below(len(owners)-1))%len(owners)]}
	have := [2]int{r.between(1, 99), r.between(1, 99)}
	p := r.below(2)
	tell(fmt.Sprintf("How many does %s have now?\nStart with %s %d and %s %d.\n", who[p], who[0], have[0], who[1], have[1]), false)
	for range r.below(3) {
		j, amount := r.below(2), r.between(1, 60)
		tell(fmt.Sprintf("Finds %d: %s %d+%d=%d.\n", amount, who[j], have[j], amount, have[j]+amount), false)
		have[j] += amount
	}
	tell("The answer is ", false)
	tell(fmt.Sprint(have[p]), true)
	tell(".\n", false)
}

// divide is an amount as so many large units and a rest.
func divide(r *splitMix, tell func(string, bool)) {
	unit := [...]int{7, 12, 24, 60, 100}[r.below(5)]
	total := r.between(unit, min(10*unit-1, 999))
	add := r.between(1, total-1)
	tell(fmt.Sprintf("%d+%d=", total-add, add), false)
	tell(fmt.Sprint(total), true)
	tell(".\n", false)
	many := total / unit
	tell(fmt.Sprint(many), true)
	tell(fmt.Sprintf("*%d=", unit), false)
	tell(fmt.Sprint(many*unit), true)
	tell(fmt.Sprintf(", %d-%d=", total, many*unit), false)
	tell(fmt.Sprint(total%unit), true)
	tell(".\n", false)
}

// splitMix is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
type splitMix struct{ state uint64 }

func (r *splitMix) draw() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (r *splitMix) below(n int) int        { return int(r.draw() % uint64(n)) }
func (r *splitMix) between(lo, hi int) int { return lo + r.below(hi-lo+1) }
