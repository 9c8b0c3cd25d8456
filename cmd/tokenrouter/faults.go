package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
)

// faults counts router faults by cause, in the order in which causes came.
type faults struct {
	causes []fault
	more   int // faults of causes beyond maxCauses
}

type fault struct {
	text string // of the first one
	kind string // text without its numbers
	n    int
	vary bool // the others' numbers are not all those of text
}

// Most causes that are kept, and shown.
const (
	maxCauses   = 100
	shownCauses = 5
)

// faultPlace is what a fault's text begins with, faultNumbers is what differs in it from
// one request to the next: faults of one place that differ in numbers have one cause.
var (
	faultPlace   = regexp.MustCompile(`^\S+\.lua:(\d+: )?`)
	faultNumbers = regexp.MustCompile(`\d+(\.\d+)?`)
)

func (f *faults) add(text string) {
	at := faultPlace.FindString(text)
	kind := at + faultNumbers.ReplaceAllString(text[len(at):], "N")
	for i := range f.causes {
		if f.causes[i].kind == kind {
			f.causes[i].n++
			f.causes[i].vary = f.causes[i].vary || f.causes[i].text != text
			return
		}
	}
	if len(f.causes) == maxCauses {
		f.more++
		return
	}
	f.causes = append(f.causes, fault{text: text, kind: kind, n: 1})
}

// print names the most frequent causes.
func (f *faults) print(w io.Writer) {
	if len(f.causes) == 0 {
		return
	}
	all := slices.Clone(f.causes)
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(b.n, a.n) })
	rest := f.more
	for i, c := range all {
		if i < shownCauses {
			such := ""
			if c.vary {
				such = ", such as"
			}
			fmt.Fprintf(w, "tokenrouter: router fault, %s%s: %s\n", counted(c.n, "time"), such, c.text)
		} else {
			rest += c.n
		}
	}
	if rest > 0 {
		fmt.Fprintf(w, "tokenrouter: %d more router %s of other causes\n", rest, plural(rest, "fault"))
	}
}
