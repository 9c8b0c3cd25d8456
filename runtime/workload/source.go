package workload

import "tokenrouter/runtime/event"

// Task is one request of a workload.
type Task struct {
	ID        string // unique within its source
	Question  string // the user's turn
	Answer    string // expected answer, for the eye where Check judges; meaningful only if HasAnswer
	HasAnswer bool
	Check     *Check // judges an answer; nil: it is Answer
	Form      string // an answer as an example of its form; empty: a number, or as the question says
	Family    string // that right answers are counted by; empty: none

	Prompt    []event.Token // ready tokens; Question is then for the eye only
	MaxTokens int           // most new tokens, 0: as the run says

	Conversation string // what the turns of one conversation share; empty: a task of its own
	Turn         int    // of the conversation, from 0
}

// Source hands out tasks one after the other; ok is false when there are no
// more. A Source is not safe for concurrent use.
type Source interface {
	Next() (task Task, ok bool)
}

// Follower is a Source whose tasks may have a next turn. Follow is asked when a
// task has ended well, with the new tokens that reached the client, and gives
// the turn that its client sends at once; ok is false where the conversation is
// over. The caller may not change output later, nor may Follow keep it.
type Follower interface {
	Source
	Follow(task Task, output []event.Token) (next Task, ok bool)
}

// List is a Source of given tasks.
type List struct{ tasks []Task }

// NewList returns a source that gives tasks in order and then ends.
func NewList(tasks []Task) *List { return &List{tasks: tasks} }

// Next implements [Source].
func (l *List) Next() (Task, bool) {
	if len(l.tasks) == 0 {
		return Task{}, false
	}
	t := l.tasks[0]
	l.tasks = l.tasks[1:]
	return t, true
}

// Len returns how many tasks are left.
func (l *List) Len() int { return len(l.tasks) }
