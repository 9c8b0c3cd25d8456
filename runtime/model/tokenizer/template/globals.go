package template

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// globals defines the variables of a rendering.
func (s *state) globals(v Vars) {
	s.out = &strings.Builder{}
	s.scope = &scope{}
	messages := make([]any, len(v.Messages))
	for i, m := range v.Messages {
		d := newDict(2)
		d.set("role", m.Role)
		d.set("content", m.Content)
		messages[i] = d
	}
	s.define("messages", messages)
	s.define("add_generation_prompt", !v.NoPrompt)
	s.define("bos_token", v.BOS)
	s.define("eos_token", v.EOS)
	if v.Thinking != nil {
		s.define("enable_thinking", *v.Thinking)
	}
	if !v.Date.IsZero() {
		s.define("strftime_now", function(func(c *call) any { return strftime(c, v.Date) }))
	}
	s.define("raise_exception", function(func(c *call) any {
		c.s.fail("%.300s", c.s.text(c.needed(0, "message")))
		return nil
	}))
	s.define("namespace", function(func(c *call) any {
		ns := &namespace{values: make(map[string]any, len(c.named))}
		maps.Copy(ns.values, c.named)
		return ns
	}))
	s.define("dict", function(func(c *call) any {
		d := newDict(len(c.named))
		for _, k := range slices.Sorted(maps.Keys(c.named)) {
			d.set(k, c.named[k])
		}
		return d
	}))
	s.define("range", function(rangeList))
}

func rangeList(c *call) any {
	from, to, step := 0, c.num(0, "stop", 0), 1
	if len(c.args) > 1 {
		from, to = to, c.num(1, "stop", 0)
	}
	if len(c.args) > 2 {
		step = c.num(2, "step", 1)
	}
	if step == 0 {
		c.s.fail("the step of range is 0")
	}
	n := math.Ceil((float64(to) - float64(from)) / float64(step))
	if n <= 0 {
		return []any(nil)
	}
	if n > float64(c.s.bytes) {
		panic(fault{ErrBudget})
	}
	c.s.payTimes(valueSize, int(n))
	out := make([]any, int(n))
	for i := range out {
		out[i] = from + i*step
	}
	return out
}

// contains is in: a part of a string, an element of a list, a key of a mapping.
func (s *state) contains(where, what any) bool {
	switch w := where.(type) {
	case string:
		v, ok := what.(string)
		if !ok {
			s.fail("%s cannot be in a string", kindOf(what))
		}
		s.pay(len(w))
		return strings.Contains(w, v)
	case []any:
		return slices.ContainsFunc(w, func(v any) bool { return s.equal(v, what, 0) })
	case *dict:
		_, ok := w.values[s.key(what)]
		return ok
	case *namespace:
		v, _ := what.(string)
		_, ok := w.values[v]
		return ok
	case undefined:
		return false
	}
	s.fail("nothing can be in %s", kindOf(where))
	return false
}

// key checks that a value can be the key of a mapping.
func (s *state) key(v any) any {
	switch v.(type) {
	case string, int, bool, float64, nil, undefined:
		return v
	}
	s.fail("%s cannot be a key", kindOf(v))
	return nil
}

// strftime knows the directives that published templates use.
func strftime(c *call, date time.Time) any {
	format := c.str(0, "format")
	c.s.pay(8 * len(format))
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		layout, ok := map[byte]string{
			'd': "02", 'b': "Jan", 'B': "January", 'm': "01", 'Y': "2006", 'y': "06", 'a': "Mon", 'A': "Monday",
			'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'Z': "MST", 'z': "-0700",
		}[format[i]]
		switch {
		case ok:
			b.WriteString(date.Format(layout))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			c.s.fail("strftime_now does not know %%%c", format[i])
		}
	}
	return b.String()
}
