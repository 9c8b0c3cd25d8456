package template

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A value is nil (None), undefined, bool, int, float64, string, []any, *dict,
// *namespace, *loop, or function. Lists and dicts are never changed, so none
// can hold itself.
type (
	undefined struct{ name string }
	function  func(c *call) any

	dict struct {
		keys   []any // in the order of insertion
		values map[any]any
	}

	namespace struct{ values map[string]any }

	// call is the arguments of a function, filter, test or method; in is what
	// the last three stand behind.
	call struct {
		s     *state
		name  string
		in    any
		args  []any
		named map[string]any
	}
)

func newDict(n int) *dict { return &dict{values: make(map[any]any, n)} }

// set is for a dict under construction.
func (d *dict) set(key, value any) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// arg gives an argument by place or name, or the default.
func (c *call) arg(at int, name string, def any) any {
	if at < len(c.args) {
		return c.args[at]
	}
	if v, ok := c.named[name]; ok {
		return v
	}
	return def
}

// needed is arg without a default.
func (c *call) needed(at int, name string) any {
	v := c.arg(at, name, undefined{})
	if _, ok := v.(undefined); ok {
		c.s.fail("%s needs an argument %s", c.name, name)
	}
	return v
}

func (c *call) str(at int, name string) string {
	v, ok := c.needed(at, name).(string)
	if !ok {
		c.s.fail("%s: %s is no string", c.name, name)
	}
	c.s.pay(len(v))
	return v
}

func (c *call) num(at int, name string, def int) int {
	switch v := c.arg(at, name, def).(type) {
	case int:
		return v
	case bool:
		return btoi(v)
	}
	c.s.fail("%s: %s is no whole number", c.name, name)
	return 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// kindOf names a value's type for an error.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "none"
	case undefined:
		return "undefined"
	case bool:
		return "a boolean"
	case int, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case *dict:
		return "a mapping"
	case function:
		return "a function"
	}
	return "an object"
}

// text is what a value prints as, in Python's form.
func (s *state) text(v any) string {
	if str, ok := v.(string); ok {
		s.pay(len(str))
		return str
	}
	if _, ok := v.(undefined); ok {
		return ""
	}
	var b strings.Builder
	s.repr(&b, v, 0)
	return b.String()
}

func (s *state) repr(b *strings.Builder, v any, depth int) {
	if depth > maxNesting {
		s.fail("a value is nested more than %d deep", maxNesting)
	}
	from := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int:
		b.WriteString(strconv.Itoa(v))
	case float64:
		b.WriteString(floatText(v))
	case string:
		quote(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			s.repr(b, e, depth+1)
		}
		b.WriteByte(']')
		from = b.Len() - 2 - len(v)
	case *dict:
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			s.repr(b, k, depth+1)
			b.WriteString(": ")
			s.repr(b, v.values[k], depth+1)
		}
		b.WriteByte('}')
		from = b.Len() - 2 - 2*len(v.keys)
	case undefined:
		b.WriteString("Undefined")
	default:
		b.WriteString("<" + kindOf(v) + ">")
	}
	s.pay(b.Len() - max(from, 0) + 1)
}

// quote writes a string as Python's repr does, for printable text.
func quote(b *strings.Builder, v string) {
	q := byte('\'')
	if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
		q = '"'
	}
	b.WriteByte(q)
	for i := 0; i < len(v); i++ {
		switch c := v[i]; c {
		case q, '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(q)
}

// floatText is Python's str of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64))[:btoi(f < 0)] + "inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	t := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(t, ".") {
		t += ".0"
	}
	return t
}

// number gives a value as a number, Python's booleans included.
func number(v any) (f float64, whole int, isInt, ok bool) {
	switch v := v.(type) {
	case int:
		return float64(v), v, true, true
	case bool:
		return float64(btoi(v)), btoi(v), true, true
	case float64:
		return v, 0, false, true
	}
	return 0, 0, false, false
}

func (s *state) equal(a, b any, depth int) bool {
	s.step()
	if depth > maxNesting {
		s.fail("a value is nested more than %d deep", maxNesting)
	}
	if fa, ia, wholeA, ok := number(a); ok {
		fb, ib, wholeB, ok := number(b)
		return ok && (wholeA && wholeB && ia == ib || (!wholeA || !wholeB) && fa == fb)
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		b, ok := b.(string)
		if !ok || len(a) != len(b) {
			return false
		}
		s.pay(len(a))
		return a == b
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return s.equal(x, y, depth+1) })
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for _, k := range a.keys {
			v, ok := b.values[k]
			if !ok || !s.equal(a.values[k], v, depth+1) {
				return false
			}
		}
		return true
	case *namespace:
		b, ok := b.(*namespace)
		return ok && a == b
	case *loop:
		b, ok := b.(*loop)
		return ok && a == b
	}
	return false
}

// items are what a loop over a value gives.
func (s *state) items(v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case []any:
		return v
	case *dict:
		return v.keys
	case string:
		s.pay(len(v) * valueSize)
		out := make([]any, 0, utf8.RuneCountInString(v))
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	}
	s.fail("%s cannot be looped over", kindOf(v))
	return nil
}
