package workload

import "strconv"

// ledger is a problem about two people who give each other things: each line of
// the thought names whose amount it changes, so that names matter.
type ledger struct {
	telling
	who  [2]string
	have [2]int
	want int
}

func tellLedger(r *splitMix) Problem {
	l := ledger{who: twoNames(r), want: r.between(3, 6)}
	l.have = [2]int{r.between(12, 99), r.between(12, 99)}
	item := pick(r, items[:])
	if r.below(2) == 0 {
		l.ask("%s has %d %s. %s has %d.", l.who[0], l.have[0], item, l.who[1], l.have[1])
	} else {
		l.ask("%s has %d %s and %s has %d.", l.who[0], l.have[0], item, l.who[1], l.have[1])
	}
	l.think("Start with %s %d and %s %d.\n", l.who[0], l.have[0], l.who[1], l.have[1])
	l.give(r, r.below(2)) // without it the other one would not matter
	for l.done < l.want {
		l.step(r, r.below(2))
	}
	asked := r.below(2)
	switch r.below(3) {
	case 0:
		l.ask(" How many %s does %s have now?", item, l.who[asked])
	case 1:
		l.ask(" How many %s has %s now?", item, l.who[asked])
	default:
		l.ask(" How many does %s have now?", l.who[asked])
	}
	return l.problem(strconv.Itoa(l.have[asked]))
}

// step tries one sentence about person i. It may add none, when the numbers drawn
// do not fit.
func (l *ledger) step(r *splitMix, i int) {
	switch kind := r.below(12); {
	case kind < 5:
		l.give(r, i)
	case kind < 6:
		l.giveHalf(i)
	case kind < 9:
		l.gain(r, i)
	case kind < 11:
		l.lose(r, i)
	default:
		l.double(i)
	}
}

func (l *ledger) give(r *splitMix, i int) {
	if l.want-l.done < 2 || l.have[i] < 12 {
		return
	}
	a := r.between(11, min(60, l.have[i]))
	if l.have[1-i]+a > maxNumber {
		return
	}
	if r.below(2) == 0 {
		l.ask(" %s gives %s %d.", l.who[i], l.who[1-i], a)
	} else {
		l.ask(" %s gives %d to %s.", l.who[i], a, l.who[1-i])
	}
	l.think("Gives %d: ", a)
	l.change(i, '-', a, ", ")
	l.change(1-i, '+', a, ".\n")
}

func (l *ledger) giveHalf(i int) {
	half := l.have[i] / 2
	if l.want-l.done < 2 || l.have[i]%2 != 0 || half < 6 || l.have[1-i]+half > maxNumber {
		return
	}
	l.ask(" %s gives half to %s.", l.who[i], l.who[1-i])
	l.think("Gives half: ")
	l.change(i, '/', 2, ", ")
	l.change(1-i, '+', half, ".\n")
}

func (l *ledger) gain(r *splitMix, i int) {
	a := r.between(11, 60)
	if l.have[i]+a > maxNumber {
		return
	}
	if r.below(2) == 0 {
		l.ask(" %s finds %d more.", l.who[i], a)
		l.think("Finds %d: ", a)
	} else {
		l.ask(" %s buys %d more.", l.who[i], a)
		l.think("Buys %d: ", a)
	}
	l.change(i, '+', a, ".\n")
}

func (l *ledger) lose(r *splitMix, i int) {
	if l.have[i] < 12 {
		return
	}
	a := r.between(11, min(60, l.have[i]))
	if r.below(2) == 0 {
		l.ask(" %s loses %d.", l.who[i], a)
		l.think("Loses %d: ", a)
	} else {
		l.ask(" %s sells %d.", l.who[i], a)
		l.think("Sells %d: ", a)
	}
	l.change(i, '-', a, ".\n")
}

func (l *ledger) double(i int) {
	if l.have[i] == 0 || 2*l.have[i] > maxNumber {
		return
	}
	l.ask(" %s doubles the pile.", l.who[i])
	l.think("Doubles: ")
	l.change(i, '*', 2, ".\n")
}

// change tells what person i has after one operation.
func (l *ledger) change(i int, op byte, a int, end string) {
	was := l.have[i]
	l.have[i] = reckon(was, op, a)
	l.think("%s %d%c%d=%d%s", l.who[i], was, op, a, l.have[i], end)
	l.done++
}

func reckon(a int, op byte, b int) int {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	}
	return a / b
}

func pick(r *splitMix, of []string) string { return of[r.below(len(of))] }

func twoNames(r *splitMix) [2]string {
	i := r.below(len(names))
	return [2]string{names[i], names[(i+1+r.below(len(names)-1))%len(names)]}
}
