package workload

import (
	"fmt"
	"strconv"
)

var weekdays = [...]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// tellCalendar asks for a weekday, a time of day or the length of a time.
func tellCalendar(r *splitMix) Problem {
	switch kind := r.below(6); {
	case kind < 3:
		return tellWeekday(r)
	case kind < 5:
		return tellClock(r)
	}
	return tellSpan(r)
}

// tellWeekday asks for the day after or before so many days: whole weeks are
// taken off, and the thought walks the rest.
func tellWeekday(r *splitMix) Problem {
	t := telling{form: "Fri"}
	today, days, who := r.below(len(weekdays)), 0, twoNames(r)
	way, walk := r.below(4), 1
	t.ask("It is %s. ", weekdays[today])
	switch way {
	case 0:
		days = r.between(8, 89)
		t.ask("What day is it in %d days?", days)
	case 1:
		days, walk = r.between(8, 89), -1
		t.ask("What day was it %d days before?", days)
	case 2:
		a, b := r.between(5, 45), r.between(5, 44)
		days = a + b
		t.ask("%s is here in %d days, %s %d days after %s. What day is that?", who[0], a, who[1], b, who[0])
		t.equation(a, '+', b, ".\n")
	default:
		k, b := r.between(3, 9), r.between(3, 9)
		days = k * b
		t.ask("%d friends have the box %d days each. What day is it then?", k, b)
		t.equation(k, '*', b, ".\n")
	}
	weeks := days / 7
	t.equation(weeks, '*', 7, ", ")
	rest := t.equation(days, '-', weeks*7, ".\n")
	day := weekdays[today]
	for i := range rest + 1 {
		if i > 0 {
			t.think(", ")
		}
		day = weekdays[(today+walk*i+7)%7]
		t.think("%d %s", i, day)
	}
	t.think(".\n")
	return t.problem(day)
}

// equation thinks one equation and returns what it gives.
func (t *telling) equation(a int, op byte, b int, end string) int {
	result := reckon(a, op, b)
	t.think("%d%c%d=%d%s", a, op, b, result, end)
	t.done++
	return result
}

var deeds = [...]string{"sells apples", "buys cards", "opens boxes", "fills bags"}

// tellClock asks for the time after two or three things that take theirs.
func tellClock(r *splitMix) Problem {
	t := telling{form: "09:45"}
	hour, minute, who := r.between(6, 18), r.between(0, 59), twoNames(r)
	t.ask("It is %s.", clock(hour, minute))
	t.think("Start with %s.\n", clock(hour, minute))
	steps := r.between(2, 3)
	long := r.below(2) // which of two takes hours
	for i := range steps {
		h, m := 0, r.between(11, 40)
		if steps == 2 {
			m = r.between(11, 59)
		}
		if steps == 2 && i == long {
			h = r.between(1, 2)
		}
		took := fmt.Sprintf("%d min", m)
		if h > 0 {
			took = fmt.Sprintf("%d h %d min", h, m)
		}
		t.ask(" %s %s for %s.", who[i%2], deeds[r.below(len(deeds))], took)
		t.think("%s: ", took)
		if h > 0 {
			hour = t.equation(hour, '+', h, ", ")
		}
		if minute = t.equation(minute, '+', m, ", "); minute >= 60 {
			minute = t.equation(minute, '-', 60, ", ")
			hour = t.equation(hour, '+', 1, ", ")
		}
		t.think("%s.\n", clock(hour, minute))
	}
	if r.below(2) == 0 {
		t.ask(" What time is it now?")
	} else {
		t.ask(" How late is it?")
	}
	return t.problem(clock(hour, minute))
}

func clock(hour, minute int) string { return fmt.Sprintf("%02d:%02d", hour, minute) }

// tellSpan asks how long it is from one time of day to another.
func tellSpan(r *splitMix) Problem {
	var t telling
	from, until, who := r.between(6, 18), 0, names[r.below(len(names))]
	until = from + r.between(1, 5)
	m, n := r.between(1, 59), r.between(1, 59)
	deed := deeds[r.below(len(deeds))]
	if r.below(2) == 0 {
		t.ask("%s %s from %s to %s. How many min is that?", who, deed, clock(from, m), clock(until, n))
	} else {
		t.ask("It is %s. %s %s until %s. How many min is that?", clock(from, m), who, deed, clock(until, n))
	}
	hours := t.equation(until, '-', from, ", ")
	all := t.equation(hours, '*', 60, ".\n")
	all = t.equation(all, '+', n, ", ")
	return t.after(t.equation(all, '-', m, ".\n"))
}

// after is the problem whose answer is a number.
func (t *telling) after(n int) Problem { return t.problem(strconv.Itoa(n)) }
