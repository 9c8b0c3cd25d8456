package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// entry is a member of a list, with a name or without.
type entry struct {
	name  string
	value int
}

func (e entry) String() string {
	if e.name == "" {
		return strconv.Itoa(e.value)
	}
	return fmt.Sprintf("%s %d", e.name, e.value)
}

// entries draws n different numbers.
func entries(r *splitMix, n, lo, hi int, named bool) []entry {
	list := make([]entry, 0, n)
	first := r.below(len(names))
	for len(list) < n {
		v := r.between(lo, hi)
		if slices.ContainsFunc(list, func(e entry) bool { return e.value == v }) {
			continue
		}
		e := entry{value: v}
		if named {
			e.name = names[(first+3*len(list))%len(names)] // 3 and 8 have no common factor
		}
		list = append(list, e)
	}
	return list
}

// join writes a list, the names of it set apart by commas.
func join(list []entry) string {
	between := " "
	if list[0].name != "" {
		between = ", "
	}
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = e.String()
	}
	return strings.Join(words, between)
}

// tellSort asks for a list in order, or for one place of it: each line of the
// thought has what is left and picks the next.
func tellSort(r *splitMix) Problem {
	var t telling
	kind := r.below(6)
	var list []entry
	switch {
	case kind == 5:
		list = entries(r, r.between(3, 4), 1, 99, true)
	case r.below(3) == 0:
		list = entries(r, r.between(3, 4), 1, maxNumber, false)
	default:
		list = entries(r, r.between(3, 5), 1, 99, false)
	}
	n, down := len(list), false
	t.form = "3 14 27"
	switch kind {
	case 0:
		t.ask("Sort %s.", join(list))
	case 1:
		t.ask("What is the order of %s?", join(list))
	case 2:
		down = true
		t.ask("Sort %s, most to least.", join(list))
	case 3:
		n = r.between(2, len(list)-1)
		t.ask("Sort %s. What is number %d?", join(list), n)
	case 4:
		n = r.between(2, len(list)-1)
		down = true
		t.ask("Sort %s, most to least. What is number %d?", join(list), n)
	default:
		t.ask("Sort the names: %s.", join(list))
		t.form = "Leo Mia Ana"
	}
	var order []string
	for range n {
		next := slices.MinFunc(list, func(a, b entry) int {
			if down {
				a, b = b, a
			}
			return a.value - b.value
		})
		t.think("%s: %s.\n", join(list), next)
		t.done++
		list = slices.DeleteFunc(list, func(e entry) bool { return e == next })
		if next.name != "" {
			order = append(order, next.name)
		} else {
			order = append(order, next.String())
		}
	}
	if kind == 3 || kind == 4 {
		t.form = ""
		order = order[n-1:]
	}
	return t.problem(strings.Join(order, " "))
}

// condition is what members of a list are asked for.
type condition struct {
	words string
	holds func(v int) bool
}

func drawCondition(r *splitMix) condition {
	limit := r.between(20, 80)
	switch r.below(4) {
	case 0:
		return condition{fmt.Sprintf("more than %d", limit), func(v int) bool { return v > limit }}
	case 1:
		return condition{fmt.Sprintf("less than %d", limit), func(v int) bool { return v < limit }}
	case 2:
		return condition{"even", func(v int) bool { return v%2 == 0 }}
	}
	return condition{"odd", func(v int) bool { return v%2 == 1 }}
}

// tellCount asks how many members of a list satisfy a condition, or what these
// add up to: the thought walks the list.
func tellCount(r *splitMix) Problem {
	var t telling
	sum := r.below(2) == 0
	c := drawCondition(r)
	list := entries(r, r.between(4, 7), 1, 99, false)
	if sum && len(list) > 6 {
		list = list[:6]
	}
	switch way := r.below(2); {
	case sum && way == 0:
		t.ask("Add those of %s that are %s.", join(list), c.words)
	case sum:
		t.ask("Of %s add those that are %s.", join(list), c.words)
	case way == 0:
		t.ask("How many of %s are %s?", join(list), c.words)
	default:
		t.ask("Count those of %s that are %s.", join(list), c.words)
	}
	total := 0
	for _, e := range list {
		t.done++
		if !c.holds(e.value) {
			t.think("%s no.\n", e)
			continue
		}
		more := 1
		if sum {
			more = e.value
		}
		t.think("%s yes: %d+%d=%d.\n", e, total, more, total+more)
		total += more
	}
	return t.after(total)
}
