package scripting

import lua "github.com/yuin/gopher-lua"

// sorter sorts a copy of a table's values, so that a comparator that changes
// the table disturbs nothing. The order of equal values is the same on every
// machine, since the algorithm is.
type sorter struct {
	l      *lua.LState
	values []lua.LValue
	less   *lua.LFunction
}

// Len, Less and Swap implement sort.Interface.
func (s sorter) Len() int { return len(s.values) }

func (s sorter) Less(i, j int) bool {
	a, b := s.values[i], s.values[j]
	if s.less == nil {
		if text, ok := a.(lua.LString); ok {
			charge(s.l, len(text)/costLook)
		}
		return s.l.LessThan(a, b)
	}
	s.l.Push(s.less)
	s.l.Push(a)
	s.l.Push(b)
	s.l.Call(2, 1)
	v := s.l.Get(-1)
	s.l.Pop(1)
	return lua.LVAsBool(v)
}

func (s sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }
