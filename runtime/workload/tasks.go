package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxLine is the longest line ReadTasks takes, in bytes.
const MaxLine = 1 << 20

// ReadTasks reads tasks from JSONL: one object {"id", "question", "answer"}
// a line, where id is a string or a number and answer (a string or a number)
// may be missing or null. Blank lines and further fields are skipped. The
// name of the file is for errors, which read "name:line: ...".
func ReadTasks(r io.Reader, name string) ([]Task, error) {
	in := bufio.NewScanner(r)
	// One byte more than MaxLine for the scanner's own end-of-line.
	in.Buffer(make([]byte, 0, 64<<10), MaxLine+1)
	var tasks []Task
	lineOf := map[string]int{}
	line := 0
	for in.Scan() {
		line++
		text := in.Bytes()
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF")) // byte order mark of some editors
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		task, err := parseTask(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if earlier, twice := lineOf[task.ID]; twice {
			return nil, fmt.Errorf("%s:%d: id %q was used in line %d already; give each task its own", name, line, task.ID, earlier)
		}
		lineOf[task.ID] = line
		tasks = append(tasks, task)
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: line is longer than %d bytes; a task is one line of JSON", name, line+1, MaxLine)
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", name, line+1, err)
	case len(tasks) == 0:
		return nil, fmt.Errorf(`%s holds no task; write one {"id": ..., "question": ..., "answer": ...} a line`, name)
	}
	return tasks, nil
}

func parseTask(line []byte) (Task, error) {
	if !utf8.Valid(line) {
		return Task{}, errors.New("line is not valid UTF-8; save the file as UTF-8")
	}
	var fields struct {
		ID       json.RawMessage `json:"id"`
		Question *string         `json:"question"`
		Answer   json.RawMessage `json:"answer"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" {
			return Task{}, fmt.Errorf(`line is no task: it is not a JSON object but %s; write {"id": ..., "question": ...}`, wrong.Value)
		} else if ok {
			return Task{}, fmt.Errorf("%q is not a string but %s", wrong.Field, wrong.Value)
		}
		return Task{}, fmt.Errorf("line is no task: %w", err)
	}
	id, ok, err := stringOrNumber("id", fields.ID)
	switch {
	case err != nil:
		return Task{}, err
	case !ok || id == "":
		return Task{}, errors.New(`task has no "id"; give it a string or a number`)
	case fields.Question == nil || *fields.Question == "":
		return Task{}, fmt.Errorf(`task %q has no "question"`, id)
	}
	answer, hasAnswer, err := stringOrNumber("answer", fields.Answer)
	if err != nil {
		return Task{}, err
	}
	return Task{ID: id, Question: *fields.Question, Answer: answer, HasAnswer: hasAnswer}, nil
}

// stringOrNumber reads a field that may be either; a number keeps the digits
// it was written with. ok is false if the field is missing or null.
func stringOrNumber(field string, raw json.RawMessage) (s string, ok bool, err error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", false, nil
	case raw[0] == '"':
		err = json.Unmarshal(raw, &s)
		return s, err == nil, err
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw), true, nil
	}
	return "", false, fmt.Errorf("%q is %s; it must be a string or a number", field, kind(raw[0]))
}

func kind(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	default:
		return "true or false"
	}
}
