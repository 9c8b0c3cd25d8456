package live

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/workload"
)

// A task is judged by its own rules, and its record says by which.
func TestBookJudgesByRules(t *testing.T) {
	five := 5.0
	c, err := workload.NewCheck(workload.Rules{Number: &five, Extract: "number"})
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(Config{Concurrency: 3, Source: workload.NewList([]workload.Task{
		{ID: "a", Question: "q", Answer: c.Want(), HasAnswer: true, Check: c, Family: "units"},
		{ID: "b", Question: "q", Answer: c.Want(), HasAnswer: true, Check: c},
		{ID: "c", Question: "q"},
	})})
	l.fill()
	if r := l.requests[0]; r.Family != "units" || r.Check != `{"number":5,"extract":"number"}` || r.Answer != "5" {
		t.Errorf("request %+v", r)
	}
	if r := l.requests[2]; r.Family != "" || r.Check != "" {
		t.Errorf("request %+v", r)
	}
	for i, text := range []string{"of 6 it is 5.0", "5 of 6", "</think>5"} {
		id := event.ReqID(i + 1)
		l.emit(id, text)
		l.finish(id, len(text), event.ReasonStop)
	}
	for i, want := range []string{"5.0 true true", "6 false true", "5 false false"} {
		r := l.results[i]
		wantEqual(t, "answer", fmt.Sprint(r.Answer, " ", r.Correct, " ", r.Checked), want)
	}
}

// A checker judges instead, tasks without an answer too. Its faults are wrong
// answers, and each is told once.
func TestBookAsksTheChecker(t *testing.T) {
	var asked []string
	l := newLedger(Config{
		Concurrency: 40, Source: workload.NewList(append([]workload.Task{{ID: "bare", Question: "q"}}, tasks(30)...)),
		Check: func(task workload.Task, text string) (bool, string) {
			asked = append(asked, task.ID)
			if rest, faulty := strings.CutPrefix(text, "fault "); faulty {
				return true, rest
			}
			return text == "yes", ""
		},
	})
	l.fill()
	end := func(id event.ReqID, text string, reason event.Reason) {
		l.emit(id, text)
		l.finish(id, len(text), reason)
	}
	end(1, "yes", event.ReasonStop)
	end(2, "</think>7", event.ReasonLength)
	end(3, "fault x.lua:1: no", event.ReasonStop)
	end(4, "fault x.lua:1: no", event.ReasonStop)
	end(5, "yes", event.ReasonAborted)
	for i := event.ReqID(6); i < 31; i++ {
		end(i, fmt.Sprintf("fault x.lua:%d: no", i), event.ReasonStop)
	}
	for i, want := range []string{"true true", "false true", "false true", "false true", "false false"} {
		wantEqual(t, "correct and checked", fmt.Sprint(l.results[i].Correct, l.results[i].Checked), want)
	}
	wantEqual(t, "asked", len(asked), 29) // not for the aborted one
	wantEqual(t, "told", len(l.messages), maxSaid)
	wantEqual(t, "first", l.messages[0].Text, "the answer of task 1 counts as wrong: x.lua:1: no")
}
