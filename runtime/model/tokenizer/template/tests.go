package template

import "unicode"

// tests are v is name(args).
var tests map[string]func(s *state, v any, args []any) bool

func init() { // here, because check looks into it
	compare := func(ok func(c int) bool) func(*state, any, []any) bool {
		return func(s *state, v any, args []any) bool { return ok(s.compare(v, one(s, args))) }
	}
	equal := func(s *state, v any, args []any) bool { return s.equal(v, one(s, args), 0) }
	notEqual := func(s *state, v any, args []any) bool { return !s.equal(v, one(s, args), 0) }
	in := func(s *state, v any, args []any) bool { return s.contains(one(s, args), v) }
	lt, le := compare(func(c int) bool { return c < 0 }), compare(func(c int) bool { return c <= 0 })
	gt, ge := compare(func(c int) bool { return c > 0 }), compare(func(c int) bool { return c >= 0 })
	tests = map[string]func(s *state, v any, args []any) bool{
		"defined":   func(_ *state, v any, _ []any) bool { _, is := v.(undefined); return !is },
		"undefined": func(_ *state, v any, _ []any) bool { _, is := v.(undefined); return is },
		"none":      func(_ *state, v any, _ []any) bool { return v == nil },
		"boolean":   func(_ *state, v any, _ []any) bool { _, is := v.(bool); return is },
		"true":      func(_ *state, v any, _ []any) bool { return v == true },
		"false":     func(_ *state, v any, _ []any) bool { return v == false },
		"string":    func(_ *state, v any, _ []any) bool { _, is := v.(string); return is },
		"integer":   func(_ *state, v any, _ []any) bool { _, is := v.(int); return is },
		"float":     func(_ *state, v any, _ []any) bool { _, is := v.(float64); return is },
		"number":    func(_ *state, v any, _ []any) bool { _, _, _, is := number(v); return is },
		"mapping":   func(_ *state, v any, _ []any) bool { _, is := v.(*dict); return is },
		"callable":  func(_ *state, v any, _ []any) bool { _, is := v.(function); return is },
		"iterable":  iterable,
		"sequence":  iterable,
		"odd":       func(s *state, v any, _ []any) bool { return s.whole(v)%2 != 0 },
		"even":      func(s *state, v any, _ []any) bool { return s.whole(v)%2 == 0 },
		"divisibleby": func(s *state, v any, args []any) bool {
			n := s.whole(one(s, args))
			if n == 0 {
				s.fail("division by zero")
			}
			return s.whole(v)%n == 0
		},
		"upper":       func(s *state, v any, _ []any) bool { return s.cased(v, unicode.IsUpper, unicode.IsLower) },
		"lower":       func(s *state, v any, _ []any) bool { return s.cased(v, unicode.IsLower, unicode.IsUpper) },
		"eq":          equal,
		"==":          equal,
		"equalto":     equal,
		"sameas":      equal,
		"ne":          notEqual,
		"!=":          notEqual,
		"in":          in,
		"lt":          lt,
		"<":           lt,
		"lessthan":    lt,
		"le":          le,
		"<=":          le,
		"gt":          gt,
		">":           gt,
		"greaterthan": gt,
		"ge":          ge,
		">=":          ge,
	}
}

func (s *state) test(name string, v any, args []any) bool {
	s.step()
	t, ok := tests[name]
	if !ok {
		s.fail("the test %.40q is not known", name)
	}
	return t(s, v, args)
}

func one(s *state, args []any) any {
	if len(args) == 0 {
		s.fail("the test needs an argument")
	}
	return args[0]
}

func (s *state) whole(v any) int {
	_, i, whole, ok := number(v)
	if !ok || !whole {
		s.fail("%s is no whole number", kindOf(v))
	}
	return i
}

func iterable(_ *state, v any, _ []any) bool {
	switch v.(type) {
	case string, []any, *dict, undefined:
		return true
	}
	return false
}

func (s *state) cased(v any, want, not func(rune) bool) bool {
	str, ok := v.(string)
	if !ok {
		return false
	}
	s.pay(len(str))
	found := false
	for _, r := range str {
		if not(r) {
			return false
		}
		found = found || want(r)
	}
	return found
}
