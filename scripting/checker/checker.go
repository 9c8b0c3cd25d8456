package checker

import (
	"fmt"
	"io"
	"os"

	"tokenrouter/runtime/workload"
	"tokenrouter/scripting"
)

// Checker is a loaded file. It belongs to one goroutine.
type Checker struct{ vm *scripting.CheckVM }

// Read loads a file, whose text ends at [scripting.MaxText]. Lines of print() go to
// print, which may be nil.
func Read(path string, print func(line string)) (*Checker, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, scripting.MaxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return New(path, string(text), print)
}

// New loads the text of a file.
func New(path, text string, print func(line string)) (*Checker, error) {
	vm, err := scripting.NewCheckVM(path, text, print)
	if err != nil {
		return nil, err
	}
	return &Checker{vm}, nil
}

// Check implements [workload.Checker].
func (c *Checker) Check(task workload.Task, output string) (right bool, fault string) {
	found, _, _ := task.Judge(output)
	right, err := c.vm.Check(&scripting.CheckTask{
		ID: task.ID, Question: task.Question, Answer: task.Answer, HasAnswer: task.HasAnswer || task.Answer != "",
		Family: task.Family, Found: found,
	}, output)
	if err != nil {
		return false, err.Error()
	}
	return right, ""
}

// Close frees the file's state.
func (c *Checker) Close() { c.vm.Close() }
