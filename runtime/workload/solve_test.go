package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// solve answers a question of a family from its words alone, by other means than
// the thoughts: it is the oracle of the families.
func solve(question, family string) string {
	switch family {
	case "ledger":
		return solveLedger(question)
	case "units":
		return solveUnits(question)
	case "calendar":
		return solveCalendar(question)
	case "sort":
		return solveSort(question)
	case "count":
		return solveCount(question)
	}
	return "no oracle for " + family
}

var digitsInText = regexp.MustCompile(`\d+`)

func numbersIn(s string) (out []int) {
	for _, d := range digitsInText.FindAllString(s, -1) {
		n, _ := strconv.Atoi(d)
		out = append(out, n)
	}
	return out
}

func solveLedger(q string) string {
	have := map[string]int{}
	told, asked, _ := strings.Cut(q, "How many")
	for _, s := range strings.Split(strings.ReplaceAll(told, " and ", ". "), ". ") {
		w := strings.Fields(strings.Trim(s, ". "))
		if len(w) == 0 {
			continue
		}
		n := append(numbersIn(s), 0)[0]
		switch w[1] {
		case "has", "finds", "buys":
			have[w[0]] += n
		case "loses", "sells":
			have[w[0]] -= n
		case "doubles":
			have[w[0]] *= 2
		case "gives":
			if w[2] == "half" {
				n = have[w[0]] / 2
			}
			to := w[len(w)-1]
			if len(w) == 4 { // gives Leo 12
				to = w[2]
			}
			have[w[0]] -= n
			have[to] += n
		}
	}
	for name, n := range have {
		if strings.Contains(asked, " "+name+" ") {
			return strconv.Itoa(n)
		}
	}
	return "nobody is asked for"
}

var quantity = regexp.MustCompile(`(\d+) (h|min|s|m|cm|weeks|days|dozen|apples)\b`)

func solveUnits(q string) string {
	told, asked, _ := strings.Cut(q, " How many ")
	units := strings.FieldsFunc(asked, func(r rune) bool { return r == ' ' || r == '?' })
	small := units[0]
	if units[1] == "and" {
		small = units[2]
	}
	in := map[string]map[string]int{
		"min": {"h": 60, "min": 1}, "s": {"min": 60, "s": 1}, "cm": {"m": 100, "cm": 1},
		"days": {"weeks": 7, "days": 1}, "h": {"days": 24, "h": 1}, "apples": {"dozen": 12, "apples": 1},
	}[small]
	owner, total := strings.Fields(told)[0], 0
	for _, s := range strings.Split(strings.TrimSuffix(told, "."), ". ") {
		n := 0
		for _, m := range quantity.FindAllStringSubmatch(s, -1) {
			k, _ := strconv.Atoi(m[1])
			n += k * in[m[2]]
		}
		if w := strings.Fields(s); w[1] == "loses" || w[0] == owner && w[1] == "gives" {
			n = -n
		}
		total += n
	}
	if units[1] == "and" {
		f := in[units[0]]
		return fmt.Sprintf("%d %s %d %s", total/f, units[0], total%f, small)
	}
	return strconv.Itoa(total)
}

// solveCalendar lets package time reckon.
func solveCalendar(q string) string {
	n := numbersIn(q)
	if strings.HasPrefix(q, "It is ") && q[6] >= 'A' { // a weekday
		day := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
		for !strings.HasPrefix(day.Weekday().String(), q[6:9]) {
			day = day.AddDate(0, 0, 1)
		}
		days := n[0]
		switch {
		case strings.Contains(q, "before"):
			days = -n[0]
		case strings.Contains(q, "after"):
			days = n[0] + n[1]
		case strings.Contains(q, "friends"):
			days = n[0] * n[1]
		}
		return day.AddDate(0, 0, days).Format("Mon")
	}
	at := func(i int) time.Time { return time.Date(2024, 1, 1, n[i], n[i+1], 0, 0, time.UTC) }
	if strings.Contains(q, "How many min") {
		return strconv.Itoa(int(at(2).Sub(at(0)).Minutes()))
	}
	now := at(0)
	for _, m := range quantity.FindAllStringSubmatch(q, -1) {
		k, _ := strconv.Atoi(m[1])
		now = now.Add(time.Duration(k) * map[string]time.Duration{"h": time.Hour, "min": time.Minute}[m[2]])
	}
	return now.Format("15:04")
}

func solveSort(q string) string {
	if list, named := strings.CutPrefix(q, "Sort the names: "); named {
		parts := strings.Split(strings.TrimSuffix(list, "."), ", ")
		slices.SortFunc(parts, func(a, b string) int { return numbersIn(a)[0] - numbersIn(b)[0] })
		for i, p := range parts {
			parts[i], _, _ = strings.Cut(p, " ")
		}
		return strings.Join(parts, " ")
	}
	list, rank, ranked := strings.Cut(q, "What is number ")
	n := numbersIn(list)
	slices.Sort(n)
	if strings.Contains(list, "most to least") {
		slices.Reverse(n)
	}
	if ranked {
		return strconv.Itoa(n[numbersIn(rank)[0]-1])
	}
	return strings.Trim(fmt.Sprint(n), "[]")
}

func solveCount(q string) string {
	n := numbersIn(q)
	var holds func(int) bool
	switch limit := n[len(n)-1]; {
	case strings.Contains(q, "more than"):
		n, holds = n[:len(n)-1], func(v int) bool { return v > limit }
	case strings.Contains(q, "less than"):
		n, holds = n[:len(n)-1], func(v int) bool { return v < limit }
	case strings.Contains(q, "even"):
		holds = func(v int) bool { return v&1 == 0 }
	default:
		holds = func(v int) bool { return v&1 == 1 }
	}
	count, sum := 0, 0
	for _, v := range n {
		if holds(v) {
			count, sum = count+1, sum+v
		}
	}
	if strings.Contains(strings.ToLower(q), "add those") {
		return strconv.Itoa(sum)
	}
	return strconv.Itoa(count)
}
