package scripting

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// sorter sorts the first n values of a table in place. The order of equal
// values is the same on every machine, since the algorithm is.
type sorter struct {
	l    *lua.LState
	t    *lua.LTable
	n    int
	less *lua.LFunction
}

func (s *sorter) sort() { sort.Sort(s) }

// Len, Less and Swap implement sort.Interface.
func (s *sorter) Len() int { return s.n }

func (s *sorter) Less(i, j int) bool {
	a, b := s.t.RawGetInt(i+1), s.t.RawGetInt(j+1)
	if s.less == nil {
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

func (s *sorter) Swap(i, j int) {
	a, b := s.t.RawGetInt(i+1), s.t.RawGetInt(j+1)
	s.t.RawSetInt(i+1, b)
	s.t.RawSetInt(j+1, a)
}
