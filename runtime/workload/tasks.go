package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLine is the longest line ReadTasks takes, in bytes.
const MaxLine = 1 << 20

// maxFamily is the longest name of a family, in bytes: it is a row of tables.
const maxFamily = 64

// ReadTasks reads tasks from JSONL: one object a line, with
//
//	id          string or number, each once
//	question    string
//	family      string that right answers are counted by; may be missing
//	extract     where in a text the answer stands; see [Rules]
//
// and one of the following, or none where nothing is checked:
//
//	answer      string or number, compared literally
//	answers     list of these, any of which is right
//	regex       RE2 that has to match
//	number      number, from which the answer is "tolerance" away at most
//
// A line with extract alone is for all lines behind it that say nothing of it.
// A field that is null is missing. Blank lines and further fields are skipped. The
// name of the file is for errors, which read "name:line: ...".
func ReadTasks(r io.Reader, name string) ([]Task, error) {
	in := bufio.NewScanner(r)
	// One byte more than MaxLine for the scanner's own end-of-line.
	in.Buffer(make([]byte, 0, 64<<10), MaxLine+1)
	var tasks []Task
	lineOf := map[string]int{}
	line, extract := 0, ""
	for in.Scan() {
		line++
		text := in.Bytes()
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF")) // byte order mark of some editors
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		fields, err := parseFields(text)
		if err == nil && fields.onlyExtract() {
			if _, err = NewCheck(Rules{Extract: *fields.Extract}); err == nil {
				extract = *fields.Extract
				continue
			}
		}
		var task Task
		if err == nil {
			task, err = fields.task(extract)
		}
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

// taskFields is a line of a tasks file.
type taskFields struct {
	ID        json.RawMessage   `json:"id"`
	Question  *string           `json:"question"`
	Family    *string           `json:"family"`
	Extract   *string           `json:"extract"`
	Answer    json.RawMessage   `json:"answer"`
	Answers   []json.RawMessage `json:"answers"`
	Regex     *string           `json:"regex"`
	Number    *float64          `json:"number"`
	Tolerance *float64          `json:"tolerance"`
}

func parseFields(line []byte) (f taskFields, err error) {
	if !utf8.Valid(line) {
		return f, errors.New("line is not valid UTF-8; save the file as UTF-8")
	}
	err = json.Unmarshal(line, &f)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err == nil:
		return f, nil
	case !ok:
		return f, fmt.Errorf("line is no task: %w", err)
	case wrong.Field == "":
		return f, fmt.Errorf(`line is no task: it is not a JSON object but %s; write {"id": ..., "question": ...}`, wrong.Value)
	}
	what := "a string"
	switch wrong.Field {
	case "answers":
		what = "a list"
	case "number", "tolerance":
		what = "a number of common size"
	}
	return f, fmt.Errorf("%q is not %s but %s", wrong.Field, what, wrong.Value)
}

func (f *taskFields) onlyExtract() bool {
	return f.Extract != nil && f.ID == nil && f.Question == nil && f.Family == nil &&
		f.Answer == nil && f.Answers == nil && f.Regex == nil && f.Number == nil && f.Tolerance == nil
}

// task is the line's, its answer where extract says unless it says it itself.
func (f *taskFields) task(extract string) (t Task, err error) {
	id, ok, err := stringOrNumber("id", f.ID)
	switch {
	case err != nil:
		return Task{}, err
	case !ok || id == "":
		return Task{}, errors.New(`task has no "id"; give it a string or a number`)
	case f.Question == nil || *f.Question == "":
		return Task{}, fmt.Errorf(`task %q has no "question"`, id)
	}
	t = Task{ID: id, Question: *f.Question}
	if f.Family != nil {
		if t.Family = *f.Family; len(t.Family) > maxFamily || strings.ContainsFunc(t.Family, unicode.IsControl) {
			return Task{}, fmt.Errorf(`task %q has the "family" %.40q; give one line of at most %d bytes`, id, t.Family, maxFamily)
		}
	}
	if t.Answer, t.HasAnswer, err = stringOrNumber("answer", f.Answer); err != nil {
		return Task{}, err
	}
	rules := Rules{Extract: extract, Number: f.Number}
	if f.Extract != nil {
		rules.Extract = *f.Extract
	}
	if err := f.rules(&rules); err != nil {
		return Task{}, err
	}
	if t.HasAnswer {
		if rules.Answers != nil || rules.Regex != "" || rules.Number != nil || f.Tolerance != nil {
			return Task{}, fmt.Errorf(`task %q has "answer" beside "answers", "regex" or "number"; give one of them`, id)
		}
		if rules.Extract == "" {
			return t, nil
		}
		rules.Answers = []string{t.Answer}
	}
	c, err := NewCheck(rules)
	if err != nil {
		return Task{}, fmt.Errorf("task %q: %w", id, err)
	}
	if c.Checks() || rules.Extract != "" {
		t.Check, t.Answer, t.HasAnswer = c, c.Want(), c.Checks()
	}
	return t, nil
}

func (f *taskFields) rules(r *Rules) (err error) {
	if f.Tolerance != nil {
		r.Tolerance = *f.Tolerance
	}
	if f.Regex != nil {
		if r.Regex = *f.Regex; r.Regex == "" {
			return errors.New(`"regex" is empty; write one, or leave it out`)
		}
	}
	if f.Answers == nil {
		return nil
	}
	r.Answers = []string{}
	for i, raw := range f.Answers {
		a, ok, err := stringOrNumber(fmt.Sprintf("answers[%d]", i), raw)
		if err == nil && !ok {
			err = fmt.Errorf(`"answers[%d]" is null; leave it out`, i)
		}
		if err != nil {
			return err
		}
		r.Answers = append(r.Answers, a)
	}
	return nil
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
