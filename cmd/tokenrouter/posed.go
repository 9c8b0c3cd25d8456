package main

import (
	"fmt"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/workload"
)

// posed is the requests of a workload as models from disk are asked them. The
// embedded models were trained to answer with a bare number behind a thought; who
// was not has to be told, or no answer could be compared with the one wanted.
type posed struct {
	workload.Source
	how    string // behind each question whose answer has no other form
	silent bool   // nothing marks the end of a thought, so no answer can be found behind it
}

// howToAnswer goes with the problems of a workload.
const howToAnswer = " Answer with the number alone, without any words."

func (a *posed) put(t workload.Task, ok bool) (workload.Task, bool) {
	switch {
	case a.how != "" && t.Form != "":
		t.Question += fmt.Sprintf(" Answer in the form %s alone, without any other words.", t.Form)
	default:
		t.Question += a.how
	}
	if a.silent && t.Check.NeedsThought() {
		t.Answer, t.HasAnswer = "", false
	}
	return t, ok
}

// Next implements workload.Source.
func (a *posed) Next() (workload.Task, bool) { return a.put(a.Source.Next()) }

// Follow implements workload.Follower; without one inside there are no next turns.
func (a *posed) Follow(t workload.Task, output []event.Token) (workload.Task, bool) {
	f, ok := a.Source.(workload.Follower)
	if !ok {
		return workload.Task{}, false
	}
	return a.put(f.Follow(t, output))
}
