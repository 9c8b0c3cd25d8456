package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxTrace is the most arrivals that [ReadTrace] takes: 64 MiB in memory.
const MaxTrace = 1 << 22

// maxTraceTokens is the longest prompt or output a trace may name.
const maxTraceTokens = 1 << 20

// Trace is the arrivals of a file, and the lengths of their requests where the
// file has them.
type Trace struct {
	name    string
	scale   float64
	rows    []traceRow
	lengths bool
	next    int
}

type traceRow struct {
	at             time.Duration
	prompt, output int32 // tokens
}

// Next implements [Arrivals].
func (t *Trace) Next() (time.Duration, bool) {
	if t.next == len(t.rows) {
		return 0, false
	}
	at := t.rows[t.next].at
	t.next++
	return t.scaled(at), true
}

func (t *Trace) scaled(at time.Duration) time.Duration {
	if t.scale == 1 {
		return at
	}
	return time.Duration(min(float64(at)/t.scale, float64(farthest)))
}

// Rate implements [Arrivals]: of all that the file holds.
func (t *Trace) Rate() float64 {
	if last := t.scaled(t.rows[len(t.rows)-1].at); last > 0 {
		return float64(len(t.rows)) / last.Seconds()
	}
	return 0
}

func (t *Trace) String() string {
	if t.scale != 1 {
		return fmt.Sprintf("trace:%s,scale=%g", t.name, t.scale)
	}
	return "trace:" + t.name
}

// Len is how many arrivals the trace holds.
func (t *Trace) Len() int { return len(t.rows) }

// HasLengths tells whether the file says how long prompts and outputs are; then
// [NewTraceTasks] gives the requests that belong to the arrivals.
func (t *Trace) HasLengths() bool { return t.lengths }

// The names that published traces give to the columns, in lower case: Azure LLM
// inference (TIMESTAMP, ContextTokens, GeneratedTokens), BurstGPT (Timestamp,
// Request tokens, Response tokens), Mooncake and Qwen-Bailian (timestamp,
// input_length, output_length), and plain ones.
var traceColumns = [...][]string{
	columnTime:   {"offset", "timestamp", "time", "arrival"},
	columnPrompt: {"prompt", "contexttokens", "request tokens", "input_length", "prompt_tokens"},
	columnOutput: {"output", "generatedtokens", "response tokens", "output_length", "output_tokens"},
}

const (
	columnTime = iota
	columnPrompt
	columnOutput
	columnCount
)

// ReadTrace reads a trace of arrivals as CSV or JSONL, whichever its first line
// is. A line is an arrival: the time in seconds since the start of the run, and
// if there are such columns the tokens of its prompt and of its output. CSV
// names the columns in its first line; without such a line they are time, prompt
// and output. Names are those of published traces (Azure, BurstGPT, Mooncake);
// other columns are skipped. Mooncake's times are milliseconds: read them with
// scale=1000 (see [ParseArrivals]). A time may be a date with a time of day, as in the
// Azure traces; it then counts from the first one of the file. A length of 0, a
// request that failed, counts as 1.
//
// Times may not fall. The name of the file is for errors, which read
// "name:line: ...".
func ReadTrace(r io.Reader, name string) (*Trace, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), MaxLine+1)
	t := &traceReader{trace: Trace{name: name, scale: 1}}
	line := 0
	for in.Scan() {
		line++
		text := in.Bytes()
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := t.line(text); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: line is longer than %d bytes; an arrival is one line", name, line+1, MaxLine)
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", name, line+1, err)
	case len(t.trace.rows) == 0:
		return nil, fmt.Errorf("%s holds no arrival; write one time in seconds a line", name)
	}
	t.trace.rows = slices.Clip(t.trace.rows)
	return &t.trace, nil
}

// traceReader knows after the first line what the others look like.
type traceReader struct {
	trace  Trace
	read   func(t *traceReader, text []byte) ([columnCount]string, error)
	column [columnCount]int // of CSV; -1 where there is none
	width  int              // columns of CSV
	dates  bool
	zero   time.Time // the first date
}

func (t *traceReader) line(text []byte) error {
	if t.read == nil {
		header, err := t.first(text)
		if err != nil || header {
			return err
		}
	}
	fields, err := t.read(t, text)
	if err != nil {
		return err
	}
	return t.add(fields)
}

// first finds out what the file is, and whether its first line says so.
func (t *traceReader) first(text []byte) (header bool, err error) {
	if text[0] == '{' {
		t.read = (*traceReader).json
		return false, nil
	}
	t.read = (*traceReader).csv
	cells := split(text)
	t.width = len(cells)
	if c := cells[0]; c != "" && strings.ContainsAny(c[:1], "0123456789+-.") {
		if t.width > columnCount {
			return false, fmt.Errorf("the first line names no columns and has %d; name them in a first line, such as offset,prompt,output", t.width)
		}
		for kind := range t.column {
			if t.column[kind] = kind; kind >= t.width {
				t.column[kind] = -1
			}
		}
	} else {
		header = true
		for kind := range t.column {
			t.column[kind] = slices.IndexFunc(cells, func(c string) bool {
				return slices.Contains(traceColumns[kind], strings.ToLower(c))
			})
		}
		if t.column[columnTime] < 0 {
			return false, fmt.Errorf("no column is a time; one has to be named %s", strings.Join(traceColumns[columnTime], ", "))
		}
	}
	if (t.column[columnPrompt] < 0) != (t.column[columnOutput] < 0) {
		return false, errors.New("prompt and output lengths come together or not at all; give both columns or neither")
	}
	return header, nil
}

func split(text []byte) []string {
	cells := strings.Split(string(text), ",")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.Trim(strings.TrimSpace(c), `"`))
	}
	return cells
}

func (t *traceReader) csv(text []byte) (fields [columnCount]string, err error) {
	cells := split(text)
	if len(cells) != t.width {
		return fields, fmt.Errorf("line has %d columns, the first one has %d", len(cells), t.width)
	}
	for kind, at := range t.column {
		if at >= 0 {
			fields[kind] = cells[at]
			if cells[at] == "" {
				return fields, fmt.Errorf("column %d is empty", at+1)
			}
		}
	}
	return fields, nil
}

func (t *traceReader) json(text []byte) (fields [columnCount]string, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fields, fmt.Errorf(`line is no arrival: %w; write {"offset": seconds} or {"offset": ..., "prompt": tokens, "output": tokens}`, err)
	}
	for kind, names := range traceColumns {
		for _, name := range names {
			if raw, ok := object[name]; ok && string(raw) != "null" {
				fields[kind] = strings.Trim(string(raw), `"`)
				break
			}
		}
	}
	switch {
	case fields[columnTime] == "":
		return fields, fmt.Errorf("arrival has no time; give it a field %s", strings.Join(traceColumns[columnTime], ", "))
	case (fields[columnPrompt] == "") != (fields[columnOutput] == ""):
		return fields, errors.New("prompt and output lengths come together or not at all; give both fields or neither")
	}
	return fields, nil
}

func (t *traceReader) add(fields [columnCount]string) error {
	rows := t.trace.rows
	at, err := t.time(fields[columnTime])
	if err != nil {
		return err
	}
	has := fields[columnPrompt] != ""
	switch {
	case len(rows) == MaxTrace:
		return fmt.Errorf("a trace holds at most %d arrivals; cut it into parts", MaxTrace)
	case len(rows) > 0 && at < rows[len(rows)-1].at:
		return fmt.Errorf("arrival at %s comes before the one above it at %s; sort the file by time", at, rows[len(rows)-1].at)
	case len(rows) > 0 && has != t.trace.lengths:
		return errors.New("some arrivals have lengths and some have none; give them to all or to none")
	}
	row := traceRow{at: at}
	if has {
		if row.prompt, err = length("prompt", fields[columnPrompt]); err != nil {
			return err
		}
		if row.output, err = length("output", fields[columnOutput]); err != nil {
			return err
		}
	}
	t.trace.lengths = has
	t.trace.rows = append(rows, row)
	return nil
}

// longest is the last moment of a trace; times beyond it are dates in disguise.
const longest = 366 * 24 * time.Hour

// time reads a number of seconds, or a date with the time of day.
func (t *traceReader) time(text string) (time.Duration, error) {
	first := len(t.trace.rows) == 0
	seconds, err := strconv.ParseFloat(text, 64)
	if err == nil && (first || !t.dates) {
		if !(seconds >= 0 && seconds <= longest.Seconds()) {
			return 0, fmt.Errorf("time %s is outside 0 to %.0f seconds; times count from the start of the run, so subtract the first", text, longest.Seconds())
		}
		return time.Duration(math.Round(seconds * float64(time.Second))), nil
	}
	date, ok := parseDate(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("time %q is neither a number of seconds nor a date such as 2023-11-16 18:15:46.68", text)
	case first:
		t.dates, t.zero = true, date
	case !t.dates || err == nil:
		return 0, fmt.Errorf("time %q is of another form than those before; use seconds or dates, not both", text)
	}
	if since := date.Sub(t.zero); since <= longest {
		return since, nil
	}
	return 0, fmt.Errorf("time %q is more than a year behind the first one", text)
}

func parseDate(text string) (time.Time, bool) {
	// A fraction of seconds is taken though no layout names it.
	for _, layout := range [...]string{time.DateTime, time.DateTime + "Z07:00", time.RFC3339, "2006-01-02T15:04:05"} {
		if date, err := time.Parse(layout, text); err == nil {
			return date, true
		}
	}
	return time.Time{}, false
}

func length(what, text string) (int32, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f > maxTraceTokens {
		return 0, fmt.Errorf("%s %s is not a number of tokens from 0 to %d", what, text, maxTraceTokens)
	}
	return max(1, int32(f)), nil
}
