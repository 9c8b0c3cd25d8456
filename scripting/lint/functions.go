package lint

import "github.com/yuin/gopher-lua/ast"

func (r *reader) define(s *ast.FuncDefStmt) {
	id, ok := s.Name.Func.(*ast.IdentExpr)
	if s.Name.Func == nil || !ok {
		if s.Name.Func != nil {
			r.expr(s.Name.Func)
		} else {
			r.expr(s.Name.Receiver)
		}
		r.function(s.Func, "", []string{"self"}).hot = true // in a table: who calls it is not seen
		return
	}
	if sym := r.local(id.Value); sym != nil {
		sym.writes++
		sym.fn = r.function(s.Func, "", nil)
		return
	}
	sym := r.globalSymbol(id.Value, s.Func.Line())
	sym.fn = r.function(s.Func, hookOf(id.Value), nil)
	sym.writes++
	r.moduleWrite(sym, s.Func.Line())
}

// function reads a function. One that lies in another is a part of it.
func (r *reader) function(f *ast.FunctionExpr, hook string, extra []string) *fn {
	outer := r.fn
	if r.depth == 0 {
		r.fn = &fn{hook: hook, body: f}
		r.fns = append(r.fns, r.fn)
	}
	mine := r.fn
	r.depth++
	r.scope = &scope{r.scope, map[string]*symbol{}}
	for _, name := range extra {
		r.declare(name, f.Line(), argument)
	}
	for i, name := range f.ParList.Names {
		s := r.declare(name, f.Line(), argument)
		s.value.what = argumentOf(hook, i, name)
	}
	r.block(f.Stmts)
	r.scope = r.scope.parent
	r.depth--
	r.fn = outer
	return mine
}

// argumentOf says what a parameter is: by its place in a hook, in other functions
// by the name that everybody uses.
func argumentOf(hook string, i int, name string) what {
	switch {
	case (hook == "route" || hook == "send") && i == 0, hook == "" && name == "r":
		return rowValue
	case hook == "send" && i == 1:
		return roleName
	case hook == "receive" && i == 0, hook == "" && name == "msg":
		return messageValue
	case hook == "receive" && i == 1:
		return heldValue
	}
	return unknown
}

// heat marks what hooks reach.
func (r *reader) heat() {
	var todo []*fn
	for _, f := range r.fns {
		if f.hook != "" || f.hot {
			f.hot = true
			todo = append(todo, f)
		}
	}
	for len(todo) > 0 {
		f := todo[0]
		todo = todo[1:]
		for _, s := range f.uses {
			if s.fn != nil && !s.fn.hot {
				s.fn.hot = true
				todo = append(todo, s.fn)
			}
		}
	}
}
