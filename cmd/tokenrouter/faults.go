package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// faults counts router faults by cause, in the order in which causes came.
type faults struct {
	causes []fault
	more   int // faults of causes beyond maxCauses
}

type fault struct {
	text string
	n    int
}

// Most causes that are kept, and shown.
const (
	maxCauses   = 100
	shownCauses = 5
)

func (f *faults) add(text string) {
	for i := range f.causes {
		if f.causes[i].text == text {
			f.causes[i].n++
			return
		}
	}
	if len(f.causes) == maxCauses {
		f.more++
		return
	}
	f.causes = append(f.causes, fault{text, 1})
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
			fmt.Fprintf(w, "tokenrouter: router fault, %d times: %s\n", c.n, c.text)
		} else {
			rest += c.n
		}
	}
	if rest > 0 {
		fmt.Fprintf(w, "tokenrouter: %d more router faults of other causes\n", rest)
	}
}
