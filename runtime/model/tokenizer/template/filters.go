package template

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filters are v | name(args).
var filters map[string]func(c *call) any

func init() { // here, because map and select call other filters by name
	filters = map[string]func(c *call) any{
		"trim":       func(c *call) any { return c.strip(strings.TrimFunc, strings.Trim) },
		"upper":      func(c *call) any { return c.change(strings.ToUpper) },
		"lower":      func(c *call) any { return c.change(strings.ToLower) },
		"capitalize": func(c *call) any { return c.change(capitalize) },
		"title":      func(c *call) any { return c.change(title) },
		"string":     func(c *call) any { return c.s.text(c.in) },
		"safe":       func(c *call) any { return c.in },
		"length":     length,
		"count":      length,
		"default":    orDefault,
		"d":          orDefault,
		"first":      func(c *call) any { return c.end(0) },
		"last":       func(c *call) any { return c.end(-1) },
		"list":       func(c *call) any { return slices.Clone(c.list()) },
		"reverse":    reverse,
		"unique":     unique,
		"join":       join,
		"replace":    func(c *call) any { return replace(c, c.s.text(c.in)) },
		"indent":     indent,
		"int":        toInt,
		"float":      toFloat,
		"abs":        abs,
		"sum":        sum,
		"items":      func(c *call) any { return pairs(c.s, c.in) },
		"dictsort":   dictsort,
		"sort":       sortList,
		"min":        func(c *call) any { return c.best(-1) },
		"max":        func(c *call) any { return c.best(1) },
		"map":        mapList,
		"select":     func(c *call) any { return c.pick(false, true) },
		"reject":     func(c *call) any { return c.pick(false, false) },
		"selectattr": func(c *call) any { return c.pick(true, true) },
		"rejectattr": func(c *call) any { return c.pick(true, false) },
		"tojson":     toJSON,
	}
}

func (s *state) filter(name string, in any, args []any, named map[string]any) any {
	s.step()
	f, ok := filters[name]
	if !ok {
		s.fail("the filter %.40q is not known", name)
	}
	return f(&call{s: s, name: name, in: in, args: args, named: named})
}

// self is what a filter or method of strings stands behind.
func (c *call) self() string {
	if v, ok := c.in.(string); ok {
		c.s.pay(len(v))
		return v
	}
	return c.s.text(c.in)
}

// list is what a filter of lists stands behind. It pays for a copy.
func (c *call) list() []any {
	l := c.s.items(c.in)
	c.s.pay(len(l) * valueSize)
	return l
}

func (c *call) change(f func(string) string) any {
	v := c.self()
	c.s.pay(2 * len(v)) // case changes may lengthen
	return f(v)
}

// strip cuts white space, or the characters of the argument.
func (c *call) strip(blank func(string, func(rune) bool) string, set func(string, string) string) any {
	v := c.self()
	if c.arg(0, "chars", nil) == nil {
		return blank(v, unicode.IsSpace)
	}
	chars := c.str(0, "chars")
	c.s.payTimes(len(chars)+1, len(v))
	return set(v, chars)
}

func capitalize(v string) string {
	_, n := utf8.DecodeRuneInString(v)
	return strings.ToUpper(v[:n]) + strings.ToLower(v[n:])
}

func title(v string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		before := inWord
		inWord = unicode.IsLetter(r)
		if before {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, v)
}

func length(c *call) any {
	switch v := c.in.(type) {
	case string:
		c.s.pay(len(v))
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case *dict:
		return len(v.keys)
	case undefined:
		return 0
	}
	c.s.fail("%s has no length", kindOf(c.in))
	return nil
}

func orDefault(c *call) any {
	_, missing := c.in.(undefined)
	if missing || truth(c.arg(1, "boolean", false)) && !truth(c.in) {
		return c.arg(0, "default_value", "")
	}
	return c.in
}

func (c *call) end(at int) any {
	l := c.list()
	if len(l) == 0 {
		return undefined{c.name}
	}
	return l[(at+len(l))%len(l)]
}

func reverse(c *call) any {
	if v, ok := c.in.(string); ok {
		c.s.pay(5 * len(v))
		r := []rune(v)
		slices.Reverse(r)
		return string(r)
	}
	l := slices.Clone(c.list())
	slices.Reverse(l)
	return l
}

func unique(c *call) any {
	var out []any
	for _, v := range c.list() {
		if !slices.ContainsFunc(out, func(have any) bool { return c.s.equal(have, v, 0) }) {
			out = append(out, v)
		}
	}
	return out
}

func join(c *call) any {
	sep := ""
	if c.arg(0, "d", nil) != nil {
		sep = c.str(0, "d")
	}
	l := c.list()
	if attr := c.arg(1, "attribute", nil); attr != nil {
		l = c.attributes(l, attr)
	}
	c.s.payTimes(len(sep), len(l))
	parts := make([]string, len(l))
	for i, v := range l {
		parts[i] = c.s.text(v)
		c.s.pay(len(parts[i]))
	}
	return strings.Join(parts, sep)
}

// replace is the filter and the method of that name.
func replace(c *call, v string) any {
	old, with := c.str(0, "old"), c.str(1, "new")
	n := -1
	if c.arg(2, "count", nil) != nil {
		n = c.num(2, "count", -1)
	}
	c.s.pay(len(v))
	found := strings.Count(v, old)
	if n >= 0 {
		found = min(found, n)
	}
	c.s.payTimes(len(with), found)
	c.s.pay(len(v))
	return strings.Replace(v, old, with, n)
}

func indent(c *call) any {
	v := c.self()
	pad, ok := c.arg(0, "width", 4).(string)
	if !ok {
		n := max(c.num(0, "width", 4), 0)
		c.s.pay(n)
		pad = strings.Repeat(" ", n)
	}
	first, blank := truth(c.arg(1, "first", false)), truth(c.arg(2, "blank", false))
	lines := strings.Split(v, "\n")
	c.s.payTimes(len(pad)+valueSize, len(lines))
	c.s.pay(len(v))
	for i, l := range lines {
		if i == 0 && first || i > 0 && (l != "" || blank) {
			lines[i] = pad + l
		}
	}
	return strings.Join(lines, "\n")
}

func toInt(c *call) any {
	switch v := c.in.(type) {
	case string:
		c.s.pay(len(v))
		if i, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && math.Abs(f) < 1<<62 {
			return int(f)
		}
	case float64:
		if math.Abs(v) < 1<<62 {
			return int(v)
		}
	case int:
		return v
	case bool:
		return btoi(v)
	}
	return c.arg(0, "default", 0)
}

func toFloat(c *call) any {
	if v, ok := c.in.(string); ok {
		c.s.pay(len(v))
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f
		}
	} else if f, _, _, ok := number(c.in); ok {
		return f
	}
	return c.arg(0, "default", 0.0)
}

func abs(c *call) any {
	f, i, whole, ok := number(c.in)
	switch {
	case !ok:
		c.s.fail("%s has no absolute value", kindOf(c.in))
	case whole:
		return max(i, -i)
	}
	return math.Abs(f)
}

func sum(c *call) any {
	l := c.list()
	if attr := c.arg(0, "attribute", nil); attr != nil {
		l = c.attributes(l, attr)
	}
	total, whole := 0.0, true
	for _, v := range l {
		f, _, isInt, ok := number(v)
		if !ok {
			c.s.fail("%s cannot be summed", kindOf(v))
		}
		total += f
		whole = whole && isInt
	}
	if whole {
		return int(total)
	}
	return total
}

// pairs are the keys and values of a mapping, as lists of two.
func pairs(s *state, v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case *dict:
		s.pay(len(v.keys) * 4 * valueSize)
		out := make([]any, len(v.keys))
		for i, k := range v.keys {
			out[i] = []any{k, v.values[k]}
		}
		return out
	case *namespace:
		s.pay(len(v.values) * 4 * valueSize)
		var out []any
		for _, k := range slices.Sorted(maps.Keys(v.values)) {
			out = append(out, []any{k, v.values[k]})
		}
		return out
	}
	s.fail("%s is no mapping", kindOf(v))
	return nil
}
