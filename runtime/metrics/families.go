package metrics

import (
	"maps"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// FamilySummary is the answers to one family of problems.
type FamilySummary struct {
	Family         string
	Correct, Total int     // checked answers
	Lo, Hi         float64 // 95 %, Wilson
}

func (a *answers) count(right bool) {
	a.checked++
	if right {
		a.right++
	}
}

// families counts answers by what kind of problem they are to.
type families struct {
	of     map[event.ReqID]string // open requests that have one
	counts map[string]*answers
}

func newFamilies() families {
	return families{of: map[event.ReqID]string{}, counts: map[string]*answers{}}
}

func (f *families) asked(h *tape.Request) {
	if h.Family != "" {
		f.of[h.Req] = h.Family
	}
}

// ended takes the end of a request, and its answer where that counts.
func (f *families) ended(h *tape.Result, counts bool) {
	family, known := f.of[h.Req]
	delete(f.of, h.Req)
	if !known || !counts {
		return
	}
	if f.counts[family] == nil {
		f.counts[family] = &answers{}
	}
	f.counts[family].count(h.Correct)
}

// summaries are the families by name.
func (f *families) summaries() (out []FamilySummary) {
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		a := f.counts[name]
		s := FamilySummary{Family: name, Correct: a.right, Total: a.checked}
		s.Lo, s.Hi = Wilson(s.Correct, s.Total)
		out = append(out, s)
	}
	return out
}
