package template

import (
	"slices"
	"strings"
)

func dictsort(c *call) any {
	l := pairs(c.s, c.in)
	slices.SortStableFunc(l, func(a, b any) int { return c.order(a.([]any)[0], b.([]any)[0]) })
	return l
}

func sortList(c *call) any {
	l := slices.Clone(c.list())
	attr := c.arg(2, "attribute", nil)
	key := func(v any) any {
		if attr == nil {
			return v
		}
		return c.attributes([]any{v}, attr)[0]
	}
	slices.SortStableFunc(l, func(a, b any) int { return c.order(key(a), key(b)) })
	if truth(c.arg(0, "reverse", false)) {
		slices.Reverse(l)
	}
	return l
}

// order compares without regard to case, as Jinja's sort does.
func (c *call) order(a, b any) int {
	c.s.step()
	x, ok1 := a.(string)
	y, ok2 := b.(string)
	if ok1 && ok2 {
		c.s.pay(2 * (len(x) + len(y)))
		return strings.Compare(strings.ToLower(x), strings.ToLower(y))
	}
	return c.s.compare(a, b)
}

// best is the smallest (sign -1) or largest (1) element.
func (c *call) best(sign int) any {
	l := c.list()
	if len(l) == 0 {
		return undefined{c.name}
	}
	best := l[0]
	for _, v := range l[1:] {
		if c.order(v, best)*sign > 0 {
			best = v
		}
	}
	return best
}

// attributes gives one attribute, a path with dots, of each element.
func (c *call) attributes(l []any, attr any) []any {
	c.s.pay(len(l) * valueSize)
	out := make([]any, len(l))
	for i, v := range l {
		if path, ok := attr.(string); ok {
			for name := range strings.SplitSeq(path, ".") {
				c.s.step()
				v = c.s.item(v, name)
			}
		} else {
			v = c.s.item(v, attr)
		}
		out[i] = v
	}
	return out
}

func mapList(c *call) any {
	l := c.list()
	if attr, ok := c.named["attribute"]; ok {
		out := c.attributes(l, attr)
		if def, ok := c.named["default"]; ok {
			for i, v := range out {
				if _, missing := v.(undefined); missing {
					out[i] = def
				}
			}
		}
		return out
	}
	name := c.str(0, "filter")
	out := make([]any, len(l))
	for i, v := range l {
		out[i] = c.s.filter(name, v, c.args[1:], c.named)
	}
	return out
}

// pick keeps the elements, or those with an attribute, that pass a test.
func (c *call) pick(attr, want bool) any {
	args := c.args
	var name any
	if attr {
		if len(args) == 0 {
			c.s.fail("%s needs the name of an attribute", c.name)
		}
		name, args = args[0], args[1:]
	}
	test := ""
	if len(args) > 0 {
		t, ok := args[0].(string)
		if !ok {
			c.s.fail("%s needs the name of a test", c.name)
		}
		test, args = t, args[1:]
	}
	var out []any
	for _, v := range c.list() {
		what := v
		if attr {
			what = c.attributes([]any{v}, name)[0]
		}
		pass := truth(what)
		if test != "" {
			pass = c.s.test(test, what, args)
		}
		if pass == want {
			out = append(out, v)
		}
	}
	return out
}
