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
	Stateless string // who keeps no KV at all between two visits of a request: "", StatelessLarge, StatelessAll
	What      string // in a few words
}

// Who of a rung computes the whole text before a token anew each time.
const (
	StatelessLarge = "large"
	StatelessAll   = "all"
)

// Names of the rungs that others are compared with.
const (
	Sequential  = "sequential"
	Lockstep    = "lockstep"
	Resubmit    = "resubmit"
	Async       = "async"
	TokenRouter = "tokenrouter"
	LookAhead   = "lookahead"

	// Of official code, beyond those.
	Stateless = "stateless"
	Recompute = "recompute"
)

// Rungs are the rungs from below.
func Rungs() []Rung {
	return []Rung{
		{Name: Sequential, Policy: "eager", MaxActive: 1, What: "one request at a time, as research code does"},
		{Name: Lockstep, Policy: "lock-step", What: "all wait for the slowest: the official R2R loop"},
		{Name: Resubmit, Policy: "eager", Resubmit: true, What: "every switch is a new request, as for a client of two servers"},
		{Name: Async, Policy: "eager", What: "nobody waits: batches start at once"},
		{Name: TokenRouter, Policy: "table", What: "delayed batches, B* by the plan for as many as are active"},
		{Name: LookAhead, Policy: "look-ahead", What: "waits where that saves more than it costs, from moment to moment"},
	}
}

// Official are rungs below those of the ladder, that official code of some
// algorithms stands on.
func Official() []Rung {
	return []Rung{
		{Name: Stateless, Policy: "eager", MaxActive: 1, Stateless: StatelessAll, What: "one request at a time, each visit sends the whole text: the official Co-LLM client"},
		{Name: Recompute, Policy: "lock-step", Stateless: StatelessLarge, What: "all wait for the slowest, and the large model computes the whole text for each token: the official CITER loop"},
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
