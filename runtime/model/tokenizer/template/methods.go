package template

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// method finds what v.name(...) calls, nil where there is none.
func (s *state) method(v any, name string) function {
	var m func(c *call) any
	switch v.(type) {
	case string:
		m = stringMethods[name]
	case *dict:
		m = dictMethods[name]
	}
	if m == nil {
		return nil
	}
	return m
}

var dictMethods = map[string]func(c *call) any{
	"items": func(c *call) any { return pairs(c.s, c.in) },
	"keys": func(c *call) any {
		c.s.pay(len(c.in.(*dict).keys) * valueSize)
		return c.in.(*dict).keys
	},
	"values": func(c *call) any {
		d := c.in.(*dict)
		c.s.pay(len(d.keys) * valueSize)
		out := make([]any, len(d.keys))
		for i, k := range d.keys {
			out[i] = d.values[k]
		}
		return out
	},
	"get": func(c *call) any {
		v := c.s.item(c.in, c.needed(0, "key"))
		if _, missing := v.(undefined); missing {
			return c.arg(1, "default", nil)
		}
		return v
	},
}

var stringMethods = map[string]func(c *call) any{
	"strip":        func(c *call) any { return c.strip(strings.TrimFunc, strings.Trim) },
	"lstrip":       func(c *call) any { return c.strip(strings.TrimLeftFunc, strings.TrimLeft) },
	"rstrip":       func(c *call) any { return c.strip(strings.TrimRightFunc, strings.TrimRight) },
	"upper":        func(c *call) any { return c.change(strings.ToUpper) },
	"lower":        func(c *call) any { return c.change(strings.ToLower) },
	"capitalize":   func(c *call) any { return c.change(capitalize) },
	"title":        func(c *call) any { return c.change(title) },
	"startswith":   func(c *call) any { return c.affix(strings.HasPrefix) },
	"endswith":     func(c *call) any { return c.affix(strings.HasSuffix) },
	"removeprefix": func(c *call) any { return strings.TrimPrefix(c.self(), c.str(0, "prefix")) },
	"removesuffix": func(c *call) any { return strings.TrimSuffix(c.self(), c.str(0, "suffix")) },
	"replace":      func(c *call) any { return replace(c, c.self()) },
	"split":        func(c *call) any { return split(c, false) },
	"rsplit":       func(c *call) any { return split(c, true) },
	"splitlines":   splitLines,
	"join":         joinMethod,
	"find":         func(c *call) any { return c.find(strings.Index) },
	"rfind":        func(c *call) any { return c.find(strings.LastIndex) },
	"count":        func(c *call) any { return strings.Count(c.self(), c.str(0, "sub")) },
	"isdigit":      func(c *call) any { return c.all(unicode.IsDigit) },
	"isnumeric":    func(c *call) any { return c.all(unicode.IsNumber) },
	"isalpha":      func(c *call) any { return c.all(unicode.IsLetter) },
	"isspace":      func(c *call) any { return c.all(unicode.IsSpace) },
	"isalnum": func(c *call) any {
		return c.all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	},
}

// affix is startswith and endswith, which also take several.
func (c *call) affix(has func(string, string) bool) any {
	v := c.self()
	if list, ok := c.needed(0, "prefix").([]any); ok {
		for _, e := range list {
			c.s.step()
			if p, ok := e.(string); ok && has(v, p) {
				return true
			}
		}
		return false
	}
	return has(v, c.str(0, "prefix"))
}

// find gives a place in characters, -1 where there is none.
func (c *call) find(index func(string, string) int) any {
	v := c.self()
	at := index(v, c.str(0, "sub"))
	if at < 0 {
		return -1
	}
	c.s.pay(at)
	return utf8.RuneCountInString(v[:at])
}

func (c *call) all(is func(rune) bool) any {
	v := c.self()
	return v != "" && strings.IndexFunc(v, func(r rune) bool { return !is(r) }) < 0
}

// joinMethod is sep.join(list), with the parts of the filter turned round.
func joinMethod(c *call) any {
	return join(&call{s: c.s, name: c.name, in: c.needed(0, "iterable"), args: []any{c.in}})
}

// split is Python's: at runs of white space without a separator, and at most
// so often, from the left or from the right.
func split(c *call, right bool) any {
	v := c.self()
	sep := ""
	if c.arg(0, "sep", nil) != nil {
		if sep = c.str(0, "sep"); sep == "" {
			c.s.fail("%s: the separator is empty", c.name)
		}
	}
	most := c.num(1, "maxsplit", -1)
	if most < 0 {
		most = len(v) + 1
	}
	var parts []string
	if sep == "" {
		v = strings.TrimFunc(v, unicode.IsSpace)
	}
	for len(parts) < most && v != "" {
		from, to := cutAt(v, sep, right)
		if from < 0 {
			break
		}
		c.s.pay(2 * valueSize)
		if right {
			parts, v = append(parts, v[to:]), v[:from]
		} else {
			parts, v = append(parts, v[:from]), v[to:]
		}
		if sep == "" {
			v = strings.TrimFunc(v, unicode.IsSpace)
		}
	}
	if v != "" || sep != "" {
		parts = append(parts, v)
	}
	out := make([]any, len(parts))
	for i, p := range parts {
		if right {
			i = len(parts) - 1 - i
		}
		out[i] = p
	}
	return out
}

// cutAt finds the first or last separator in v.
func cutAt(v, sep string, right bool) (from, to int) {
	if sep != "" {
		at := strings.Index(v, sep)
		if right {
			at = strings.LastIndex(v, sep)
		}
		return at, at + len(sep)
	}
	if right {
		at := strings.LastIndexFunc(v, unicode.IsSpace)
		if at < 0 {
			return -1, -1
		}
		_, n := utf8.DecodeRuneInString(v[at:])
		return len(strings.TrimRightFunc(v[:at], unicode.IsSpace)), at + n
	}
	at := strings.IndexFunc(v, unicode.IsSpace)
	if at < 0 {
		return -1, -1
	}
	return at, len(v) - len(strings.TrimLeftFunc(v[at:], unicode.IsSpace))
}

func splitLines(c *call) any {
	v := c.self()
	keep := truth(c.arg(0, "keepends", false))
	var out []any
	for line := range strings.Lines(v) {
		c.s.pay(valueSize)
		if !keep {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		}
		out = append(out, line)
	}
	return out
}
