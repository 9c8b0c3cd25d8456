package workload

// Task is one request of a workload.
type Task struct {
	ID        string // unique within its source
	Question  string // the user's turn
	Answer    string // expected answer; meaningful only if HasAnswer
	HasAnswer bool
}

// Source hands out tasks one after the other; ok is false when there are no
// more. A Source is not safe for concurrent use.
type Source interface {
	Next() (task Task, ok bool)
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
