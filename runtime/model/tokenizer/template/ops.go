package template

import (
	"math"
	"strings"

	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

func (s *state) sign(v any, negative bool) any {
	f, i, whole, ok := number(v)
	switch {
	case !ok:
		s.fail("%s has no sign", kindOf(v))
	case whole && negative:
		return -i
	case whole:
		return i
	case negative:
		return -f
	}
	return f
}

func (s *state) binary(n *nodes.BinaryExpression) any {
	left := s.eval(n.Left)
	op := n.Operator.Token
	switch op.Type {
	case tokens.And:
		if !truth(left) {
			return left
		}
		return s.eval(n.Right)
	case tokens.Or:
		if truth(left) {
			return left
		}
		return s.eval(n.Right)
	}
	right := s.eval(n.Right)
	switch op.Type {
	case tokens.Tilde:
		return s.text(left) + s.text(right)
	case tokens.Equals:
		return s.equal(left, right, 0)
	case tokens.Ne:
		return !s.equal(left, right, 0)
	case tokens.LowerThan, tokens.LowerThanOrEqual, tokens.GreaterThan, tokens.GreaterThanOrEqual:
		c := s.compare(left, right)
		switch op.Type {
		case tokens.LowerThan:
			return c < 0
		case tokens.LowerThanOrEqual:
			return c <= 0
		case tokens.GreaterThan:
			return c > 0
		}
		return c >= 0
	case tokens.Addition:
		if v, ok := s.join(left, right); ok {
			return v
		}
	}
	return s.arithmetic(op, left, right)
}

// join is + on strings and lists.
func (s *state) join(left, right any) (any, bool) {
	switch l := left.(type) {
	case string:
		if r, ok := right.(string); ok {
			s.pay(len(l) + len(r))
			return l + r, true
		}
	case []any:
		if r, ok := right.([]any); ok {
			s.pay((len(l) + len(r)) * valueSize)
			return append(append(make([]any, 0, len(l)+len(r)), l...), r...), true
		}
	}
	return nil, false
}

func (s *state) compare(left, right any) int {
	if l, ok := left.(string); ok {
		if r, ok := right.(string); ok {
			s.pay(min(len(l), len(r)))
			return strings.Compare(l, r)
		}
	}
	l, _, _, ok1 := number(left)
	r, _, _, ok2 := number(right)
	if !ok1 || !ok2 {
		s.fail("%s and %s have no order", kindOf(left), kindOf(right))
	}
	switch {
	case l < r:
		return -1
	case l > r:
		return 1
	}
	return 0
}

func (s *state) arithmetic(op *tokens.Token, left, right any) any {
	l, li, lw, ok1 := number(left)
	r, ri, rw, ok2 := number(right)
	if op.Type == tokens.Multiply && ok1 != ok2 && (lw || rw) {
		if ok1 {
			return s.repeat(right, li)
		}
		return s.repeat(left, ri)
	}
	if !ok1 || !ok2 {
		s.fail("%s %s %s is not defined", kindOf(left), op.Val, kindOf(right))
	}
	whole := lw && rw
	switch op.Type {
	case tokens.Addition:
		if whole {
			return li + ri
		}
		return l + r
	case tokens.Subtraction:
		if whole {
			return li - ri
		}
		return l - r
	case tokens.Multiply:
		if whole {
			return li * ri
		}
		return l * r
	case tokens.Power:
		p := math.Pow(l, r)
		if whole && ri >= 0 && math.Abs(p) < 1<<53 {
			return int(p)
		}
		return p
	}
	if r == 0 {
		s.fail("division by zero")
	}
	switch op.Type {
	case tokens.Division:
		return l / r
	case tokens.FloorDivision:
		if f := math.Floor(l / r); !whole {
			return f
		}
		q := li / ri
		if li%ri != 0 && (li < 0) != (ri < 0) {
			q--
		}
		return q
	case tokens.Modulo:
		if !whole {
			return l - r*math.Floor(l/r)
		}
		m := li % ri
		if m != 0 && (m < 0) != (ri < 0) {
			m += ri
		}
		return m
	}
	s.fail("the operator %s is not known", op.Val)
	return nil
}

// repeat is * on a string or a list.
func (s *state) repeat(v any, n int) any {
	n = max(n, 0)
	switch v := v.(type) {
	case string:
		s.payTimes(len(v), n)
		return strings.Repeat(v, n)
	case []any:
		s.payTimes(len(v)*valueSize, n)
		out := make([]any, 0, len(v)*n)
		for range n {
			out = append(out, v...)
		}
		return out
	}
	s.fail("%s cannot be multiplied", kindOf(v))
	return nil
}

// payTimes is pay of a product that may overflow.
func (s *state) payTimes(size, n int) {
	if size > 0 && n > s.bytes/size {
		panic(fault{ErrBudget})
	}
	s.pay(size * n)
}
