package ladder

import (
	"fmt"
	"slices"
	"strings"
)

// Rung is one way to run a cluster.
type Rung struct {
	Name      string
	Policy    string // form of the threshold policy
	MaxActive int    // requests admitted at a time, 0 for no bound
	Resubmit  bool   // every switch is a new request for the subserver it goes to
	What      string // in a few words
}

// Names of the rungs that others are compared with.
const (
	Lockstep    = "lockstep"
	Async       = "async"
	TokenRouter = "tokenrouter"
)

// Rungs are the rungs from below.
func Rungs() []Rung {
	return []Rung{
		{Name: "sequential", Policy: "eager", MaxActive: 1, What: "one request at a time, as research code does"},
		{Name: Lockstep, Policy: "lock-step", What: "all wait for the slowest: the official R2R loop"},
		{Name: "resubmit", Policy: "eager", Resubmit: true, What: "every switch is a new request, as for a client of two servers"},
		{Name: Async, Policy: "eager", What: "nobody waits: batches start at once"},
		{Name: TokenRouter, Policy: "table", What: "delayed batches, B* by the plan for as many as are active"},
		{Name: "lookahead", Policy: "look-ahead", What: "waits where that saves more than it costs, from moment to moment"},
	}
}

// ParseRungs reads a list of names; the rungs come in the order of the ladder.
// Empty is all of them.
func ParseRungs(list string) ([]Rung, error) {
	all := Rungs()
	if strings.TrimSpace(list) == "" {
		return all, nil
	}
	want := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(all, func(r Rung) bool { return r.Name == name }) {
			return nil, fmt.Errorf("there is no rung %q; known are %s", name, Names(all))
		}
		if want[name] {
			return nil, fmt.Errorf("the rung %q is named twice", name)
		}
		want[name] = true
	}
	return slices.DeleteFunc(all, func(r Rung) bool { return !want[r.Name] }), nil
}

// Names lists rungs with commas.
func Names(rungs []Rung) string {
	names := make([]string, len(rungs))
	for i := range rungs {
		names[i] = rungs[i].Name
	}
	return strings.Join(names, ", ")
}
