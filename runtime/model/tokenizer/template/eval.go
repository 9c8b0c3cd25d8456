package template

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/nodes"
)

// eval gives the value of an expression.
func (s *state) eval(n nodes.Node) any {
	s.step()
	switch n := n.(type) {
	case *nodes.String:
		return n.Val
	case *nodes.Integer:
		return n.Val
	case *nodes.Float:
		return n.Val
	case *nodes.Bool:
		return n.Val
	case *nodes.None:
		return nil
	case *nodes.Name:
		if n.Name.Val == "none" {
			return nil
		}
		return s.lookup(n.Name.Val)
	case *nodes.List:
		return s.evalList(n.Val)
	case *nodes.Tuple:
		return s.evalList(n.Val)
	case *nodes.Dict:
		return s.evalDict(n)
	case *nodes.Negation:
		return !truth(s.eval(n.Term))
	case *nodes.UnaryExpression:
		return s.sign(s.eval(n.Term), n.Negative)
	case *nodes.BinaryExpression:
		return s.binary(n)
	case *nodes.GetAttribute:
		return s.getAttribute(n)
	case *nodes.GetItem:
		if n.Arg == nil {
			s.fail("an index is missing")
		}
		return s.item(s.eval(n.Node), s.eval(n.Arg))
	case *nodes.GetSlice:
		return s.slice(n)
	case *nodes.Call:
		return s.call(n)
	case *nodes.FilteredExpression:
		v := s.eval(n.Expression)
		for _, f := range n.Filters {
			v = s.filter(f.Name, v, s.evalList(f.Args), s.evalNamed(f.Kwargs))
		}
		return v
	case *nodes.TestExpression:
		return s.test(n.Test.Name, s.eval(n.Expression), s.evalList(n.Test.Args))
	}
	s.fail("%T is not known", n)
	return nil
}

func (s *state) evalList(list []nodes.Expression) []any {
	if len(list) == 0 {
		return nil
	}
	s.pay(len(list) * valueSize)
	out := make([]any, len(list))
	for i, n := range list {
		out[i] = s.eval(n)
	}
	return out
}

func (s *state) evalNamed(named map[string]nodes.Expression) map[string]any {
	if len(named) == 0 {
		return nil
	}
	out := make(map[string]any, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		out[name] = s.eval(named[name])
	}
	return out
}

func (s *state) evalDict(n *nodes.Dict) any {
	s.pay(len(n.Pairs) * 4 * valueSize)
	d := newDict(len(n.Pairs))
	for _, p := range n.Pairs {
		key := s.eval(p.Key)
		switch key.(type) {
		case string, int, bool, float64, nil:
		default:
			s.fail("%s cannot be a key", kindOf(key))
		}
		d.set(key, s.eval(p.Value))
	}
	return d
}

func (s *state) getAttribute(n *nodes.GetAttribute) any {
	v := s.eval(n.Node)
	if n.Attribute == "" {
		return s.item(v, n.Index)
	}
	return s.attribute(v, n.Attribute)
}

// attribute is v.name, and v["name"] where v has no items.
func (s *state) attribute(v any, name string) any {
	switch v := v.(type) {
	case undefined:
		s.fail("%s is undefined, so it has no %s", v.name, name)
	case *dict:
		if got, ok := v.values[name]; ok {
			return got
		}
	case *namespace:
		if got, ok := v.values[name]; ok {
			return got
		}
	case *loop:
		return v.attribute(name)
	}
	return undefined{name}
}

func (s *state) item(v, key any) any {
	name, isName := key.(string)
	switch v := v.(type) {
	case *dict:
		if got, ok := v.values[s.key(key)]; ok {
			return got
		}
		return undefined{s.short(key)}
	case []any:
		if i, ok := key.(int); ok {
			if i < 0 {
				i += len(v)
			}
			if i >= 0 && i < len(v) {
				return v[i]
			}
			return undefined{s.short(key)}
		}
	case string:
		if i, ok := key.(int); ok {
			s.pay(len(v))
			if i < 0 {
				i += utf8.RuneCountInString(v)
			}
			for _, r := range v {
				if i == 0 {
					return string(r)
				}
				i--
			}
			return undefined{s.short(key)}
		}
	}
	if isName {
		return s.attribute(v, name)
	}
	if u, ok := v.(undefined); ok {
		s.fail("%s is undefined, so it has no items", u.name)
	}
	return undefined{s.short(key)}
}

// short names a key for an error.
func (s *state) short(key any) string {
	if str, ok := key.(string); ok {
		return str[:min(len(str), 40)]
	}
	return s.text(key)
}

func (s *state) slice(n *nodes.GetSlice) any {
	v := s.eval(n.Node)
	bound := func(n nodes.Node) (int, bool) {
		if n == nil {
			return 0, false
		}
		switch i := s.eval(n).(type) {
		case int:
			return i, true
		case nil:
			return 0, false
		default:
			s.fail("%s cannot be the bound of a slice", kindOf(i))
		}
		return 0, false
	}
	start, hasStart := bound(n.Start)
	end, hasEnd := bound(n.End)
	step, hasStep := bound(n.Step)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		s.fail("the step of a slice is 0")
	}
	switch v := v.(type) {
	case string:
		s.pay(5 * len(v))
		runes := []rune(v)
		return string(cut(runes, start, hasStart, end, hasEnd, step))
	case []any:
		s.pay(len(v) * valueSize)
		return cut(v, start, hasStart, end, hasEnd, step)
	}
	s.fail("%s has no slices", kindOf(v))
	return nil
}

// cut is Python's v[start:end:step].
func cut[T any](v []T, start int, hasStart bool, end int, hasEnd bool, step int) []T {
	low, high := 0, len(v) // of both bounds
	if step < 0 {
		low, high = -1, len(v)-1
	}
	place := func(i int, has bool, def int) int {
		if !has {
			return def
		}
		if i < 0 {
			i += len(v)
		}
		return min(max(i, low), high)
	}
	var out []T
	if step > 0 {
		from, to := place(start, hasStart, 0), place(end, hasEnd, len(v))
		for i := from; i < to; i += min(step, len(v)) {
			out = append(out, v[i])
		}
		return out
	}
	from, to := place(start, hasStart, len(v)-1), place(end, hasEnd, -1)
	for i := from; i > to; i += max(step, -len(v)) {
		out = append(out, v[i])
	}
	return out
}

func (s *state) call(n *nodes.Call) any {
	name, isName := n.Func.(*nodes.Name)
	if isName && name.Name.Val == ifName {
		// Only the branch that is taken is evaluated.
		if truth(s.eval(n.Args[0])) {
			return s.eval(n.Args[1])
		}
		if len(n.Args) < 3 {
			return undefined{"the other case"}
		}
		return s.eval(n.Args[2])
	}
	c := &call{s: s}
	var f function
	if m, ok := n.Func.(*nodes.GetAttribute); ok && m.Attribute != "" {
		c.in, c.name = s.eval(m.Node), m.Attribute
		if f = s.method(c.in, m.Attribute); f == nil {
			f, _ = s.attribute(c.in, m.Attribute).(function)
		}
	} else {
		if isName {
			c.name = name.Name.Val
		} else {
			c.name = "the function"
		}
		f, _ = s.eval(n.Func).(function)
	}
	if f == nil {
		if c.in != nil {
			s.fail("%s has no method %s", kindOf(c.in), c.name)
		}
		s.fail("%s is no function", c.name)
	}
	c.args, c.named = s.evalList(n.Args), s.evalNamed(n.Kwargs)
	return f(c)
}
