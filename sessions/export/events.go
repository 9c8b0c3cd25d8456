package export

import (
	"bufio"
	"io"
	"math"
	"strconv"
)

// traceWriter writes the events of a Chrome JSON trace. Times are given in ns
// and written in microseconds.
type traceWriter struct {
	w    *bufio.Writer
	b    []byte
	n    int
	err  error
	args bool // an argument of the open event was written
}

func newTraceWriter(w io.Writer, session string) *traceWriter {
	t := &traceWriter{w: bufio.NewWriterSize(w, 64<<10)}
	t.b = append(t.b, `{"displayTimeUnit":"ms","otherData":{"session":`...)
	t.b = appendString(t.b, session)
	t.b = append(t.b, `},"traceEvents":[`...)
	t.flush()
	return t
}

func (t *traceWriter) close() error {
	t.b = append(t.b, "\n]}\n"...)
	t.flush()
	if t.err == nil {
		t.err = t.w.Flush()
	}
	return t.err
}

func (t *traceWriter) flush() {
	if t.err == nil {
		_, t.err = t.w.Write(t.b)
	}
	t.b = t.b[:0]
}

// begin opens an event; end closes it. Between them come fields and, behind
// arg, arguments.
func (t *traceWriter) begin(ph byte, pid, tid int, name string) {
	if t.n > 0 {
		t.b = append(t.b, ',')
	}
	t.n++
	t.args = false
	t.b = append(t.b, '\n', '{', '"', 'p', 'h', '"', ':', '"', ph, '"')
	t.field("pid", int64(pid))
	t.field("tid", int64(tid))
	t.b = append(t.b, `,"name":`...)
	t.b = appendString(t.b, name)
}

func (t *traceWriter) end() {
	if t.args {
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, '}')
	t.flush()
}

func (t *traceWriter) key(name string) {
	t.b = append(t.b, ',', '"')
	t.b = append(t.b, name...)
	t.b = append(t.b, '"', ':')
}

func (t *traceWriter) field(name string, v int64) {
	t.key(name)
	t.b = strconv.AppendInt(t.b, v, 10)
}

func (t *traceWriter) text(name, v string) {
	t.key(name)
	t.b = appendString(t.b, v)
}

func (t *traceWriter) micros(name string, ns int64) {
	t.key(name)
	t.b = appendMicros(t.b, ns)
}

func (t *traceWriter) arg(name string) {
	if t.args {
		t.b = append(t.b, ',', '"')
	} else {
		t.b = append(t.b, `,"args":{"`...)
		t.args = true
	}
	t.b = append(t.b, name...)
	t.b = append(t.b, '"', ':')
}

func (t *traceWriter) argInt(name string, v int64) {
	t.arg(name)
	t.b = strconv.AppendInt(t.b, v, 10)
}

func (t *traceWriter) argText(name, v string) {
	t.arg(name)
	t.b = appendString(t.b, v)
}

func (t *traceWriter) argMicros(name string, ns int64) {
	t.arg(name)
	t.b = appendMicros(t.b, ns)
}

// process names a process and gives its place on screen.
func (t *traceWriter) process(pid, place int, name string) {
	t.begin('M', pid, 0, "process_name")
	t.argText("name", name)
	t.end()
	t.begin('M', pid, 0, "process_sort_index")
	t.argInt("sort_index", int64(place))
	t.end()
}

// track names a track of a process; tracks stand in the order of their numbers.
func (t *traceWriter) track(pid, tid int, name string) {
	t.begin('M', pid, tid, "thread_name")
	t.argText("name", name)
	t.end()
	t.begin('M', pid, tid, "thread_sort_index")
	t.argInt("sort_index", int64(tid))
	t.end()
}

// micros is a time as a reader that counts in floating point sees it.
func micros(ns int64) float64 { return float64(ns) / 1000 }

// slice opens a complete event from start to end, and returns where it ends for
// a reader that adds start and duration in floating point. A duration that
// rounding would carry beyond limit, into the next slice or out of the one
// around it, is a nanosecond shorter.
func (t *traceWriter) slice(pid, tid int, cat, name string, start, end int64, limit float64) float64 {
	dur := end - start
	for dur > 0 && micros(start)+micros(dur) > limit {
		dur--
	}
	t.begin('X', pid, tid, name)
	t.text("cat", cat)
	t.micros("ts", start)
	t.micros("dur", dur)
	return micros(start) + micros(dur)
}

// counter writes one value of a counter; unit names what it counts. Nothing
// counted here is negative: such values stand for unknown.
func (t *traceWriter) counter(pid int, name, unit string, at int64, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return
	}
	t.begin('C', pid, 0, name)
	t.micros("ts", at)
	t.arg(unit)
	t.b = strconv.AppendFloat(t.b, v, 'f', -1, 64)
	t.end()
}

// instant opens an instant event; scope is g (global), p (process), t (track).
func (t *traceWriter) instant(pid, tid int, cat, name string, scope string, at int64) {
	t.begin('i', pid, tid, name)
	t.text("cat", cat)
	t.text("s", scope)
	t.micros("ts", at)
}

// batchCat is the category of batches and of the arrows between them.
const batchCat = "batch"

// flow writes one end of an arrow between batches: s where it starts, f where it
// ends. Some readers tie it to the slice around it, others to the slice with
// the same time, track and category, so at is where that slice begins.
func (t *traceWriter) flow(ph byte, pid int, id uint64, at int64) {
	t.begin(ph, pid, pid, "hand-off")
	t.text("cat", batchCat)
	t.field("id", int64(id))
	t.micros("ts", at)
	if ph == 'f' {
		t.text("bp", "e")
	}
	t.end()
}
