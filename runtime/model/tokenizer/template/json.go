package template

import (
	"strconv"
	"strings"
)

// toJSON is json.dumps with ensure_ascii off, as transformers calls it.
func toJSON(c *call) any {
	indent := -1
	if c.arg(0, "indent", nil) != nil {
		indent = c.num(0, "indent", 0)
	}
	j := jsonWriter{s: c.s, indent: indent}
	j.write(c.in, 0)
	return j.b.String()
}

type jsonWriter struct {
	s      *state
	b      strings.Builder
	indent int // -1: all on one line
}

func (j *jsonWriter) write(v any, depth int) {
	if depth > maxNesting {
		j.s.fail("a value is nested more than %d deep", maxNesting)
	}
	j.s.step()
	switch v := v.(type) {
	case nil:
		j.put("null")
	case bool:
		j.put(strconv.FormatBool(v))
	case int:
		j.put(strconv.Itoa(v))
	case float64:
		j.put(floatText(v))
	case string:
		j.text(v)
	case []any:
		j.list('[', ']', len(v), depth, func(i int) { j.write(v[i], depth+1) })
	case *dict:
		j.list('{', '}', len(v.keys), depth, func(i int) {
			k := v.keys[i]
			if str, ok := k.(string); ok {
				j.text(str)
			} else {
				j.put(`"`)
				j.write(k, depth+1)
				j.put(`"`)
			}
			j.put(": ")
			j.write(v.values[k], depth+1)
		})
	default:
		j.s.fail("%s cannot be written as JSON", kindOf(v))
	}
}

func (j *jsonWriter) put(s string) {
	j.s.pay(len(s))
	j.b.WriteString(s)
}

func (j *jsonWriter) list(open, end byte, n, depth int, element func(i int)) {
	j.b.WriteByte(open)
	for i := range n {
		if i > 0 {
			j.put(",")
		}
		switch {
		case j.indent >= 0:
			j.line(depth + 1)
		case i > 0:
			j.put(" ")
		}
		element(i)
	}
	if n > 0 && j.indent >= 0 {
		j.line(depth)
	}
	j.b.WriteByte(end)
}

func (j *jsonWriter) line(depth int) {
	j.s.payTimes(max(j.indent, 1), depth+1)
	j.b.WriteByte('\n')
	j.b.WriteString(strings.Repeat(" ", j.indent*depth))
}

// text writes a string as json.dumps does with ensure_ascii off.
func (j *jsonWriter) text(v string) {
	j.s.pay(6*len(v) + 2)
	j.b.WriteByte('"')
	for i := range len(v) {
		switch c := v[i]; c {
		case '"', '\\':
			j.b.WriteByte('\\')
			j.b.WriteByte(c)
		case '\n':
			j.b.WriteString(`\n`)
		case '\r':
			j.b.WriteString(`\r`)
		case '\t':
			j.b.WriteString(`\t`)
		case '\b':
			j.b.WriteString(`\b`)
		case '\f':
			j.b.WriteString(`\f`)
		default:
			if c < ' ' {
				j.b.WriteString(`\u00`)
				j.b.WriteByte("01"[c>>4])
				j.b.WriteByte("0123456789abcdef"[c&15])
			} else {
				j.b.WriteByte(c)
			}
		}
	}
	j.b.WriteByte('"')
}
