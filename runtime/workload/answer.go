package workload

import "strings"

const (
	endOfThought = "</think>"
	endOfTurn    = "<|im_end|>"
)

// Extract returns the answer in a model's text: what stands between the end
// of the thought and the end mark, trimmed. The end mark may be missing,
// since special tokens add no text; ok is false if the thought never ends or
// nothing follows it.
func Extract(text string) (answer string, ok bool) {
	text, _, _ = strings.Cut(text, endOfTurn)
	i := strings.LastIndex(text, endOfThought)
	if i < 0 {
		return "", false
	}
	answer = strings.TrimSpace(text[i+len(endOfThought):])
	return answer, answer != ""
}

// Correct reports whether an extracted answer is the wanted one. Both are
// trimmed and then compared literally: "7" is neither "07" nor "7.".
func Correct(got, want string) bool {
	return strings.TrimSpace(got) == strings.TrimSpace(want)
}

// Judge takes the answer out of a model's text and says whether it is right:
// by the task's Check, or else as [Extract] and [Correct] do. checked is false for
// a task without an answer.
func (t *Task) Judge(output string) (answer string, right, checked bool) {
	if t.Check != nil {
		answer, found := t.Check.Find(output)
		return answer, found && t.HasAnswer && t.Check.accepts(answer), t.HasAnswer
	}
	answer, found := Extract(output)
	return answer, found && t.HasAnswer && Correct(answer, t.Answer), t.HasAnswer
}

// Checker judges the text of a finished task from outside, instead of the task's
// own answer. A fault is one line that names file, line and cause; right is then
// false. It is called by one goroutine.
type Checker func(task Task, output string) (right bool, fault string)
