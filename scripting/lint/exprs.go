package lint

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/scripting/api"
)

// interfaceNames are the globals beside Lua's own.
var interfaceNames = api.Names(api.Globals())

func (r *reader) exprs(list ...ast.Expr) {
	for _, e := range list {
		r.expr(e)
	}
}

func (r *reader) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		r.name(e)
	case *ast.AttrGetExpr:
		r.expr(e.Object)
		r.expr(e.Key)
		r.field(e.Object, e.Key, e.Line())
	case *ast.TableExpr:
		r.table(e)
	case *ast.FuncCallExpr:
		r.call(e)
	case *ast.LogicalOpExpr:
		r.exprs(e.Lhs, e.Rhs)
	case *ast.RelationalOpExpr:
		r.exprs(e.Lhs, e.Rhs)
		r.comparisons = append(r.comparisons, comparison{op: e.Operator, lhs: e.Lhs, rhs: e.Rhs, l: r.value(e.Lhs), r: r.value(e.Rhs), line: e.Line()})
	case *ast.ArithmeticOpExpr:
		r.exprs(e.Lhs, e.Rhs)
		r.arithmetic = append(r.arithmetic, comparison{op: e.Operator, lhs: e.Lhs, rhs: e.Rhs, l: r.value(e.Lhs), r: r.value(e.Rhs), line: e.Line()})
	case *ast.StringConcatOpExpr:
		r.exprs(e.Lhs, e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		r.expr(e.Expr)
	case *ast.FunctionExpr:
		if f := r.function(e, "", nil); r.depth == 0 {
			f.hot = true // without a name: who calls it is not seen
		}
	}
}

func (r *reader) name(e *ast.IdentExpr) {
	if s := r.local(e.Value); s != nil {
		s.reads++
		r.fn.uses = append(r.fn.uses, s)
		return
	}
	if e.Value == "_G" {
		r.usesG = true
	}
	if slices.Contains(interfaceNames, e.Value) {
		r.names = append(r.names, fieldUse{e.Value, e.Line(), r.fn})
	}
	s := r.globalSymbol(e.Value, 0)
	s.reads++
	r.fn.uses = append(r.fn.uses, s)
}

// field notes what is read of r, r.state and r.fields.
func (r *reader) field(obj, key ast.Expr, line int) {
	name, plain := key.(*ast.StringExpr)
	if !plain {
		return
	}
	use := fieldUse{name.Value, line, r.fn}
	switch r.value(obj).what {
	case rowValue:
		r.rowReads = append(r.rowReads, use)
	case stateTable:
		r.stateReads = append(r.stateReads, use)
	case fieldsTable:
		r.fieldReads = append(r.fieldReads, use)
	}
}

// table notes budget = ... and fields = { ... } of what send gives.
func (r *reader) table(e *ast.TableExpr) {
	for _, f := range e.Fields {
		if f.Key != nil {
			r.expr(f.Key)
		}
		r.expr(f.Value)
		key, ok := f.Key.(*ast.StringExpr)
		switch {
		case !ok:
		case key.Value == "budget":
			r.budgets = append(r.budgets, comparison{rhs: f.Value, r: r.value(f.Value), line: f.Value.Line(), fraction: r.fraction(f.Value)})
		case key.Value == "fields":
			r.sent(f.Value)
		}
	}
}

func (r *reader) sent(e ast.Expr) {
	t, ok := e.(*ast.TableExpr)
	if !ok {
		r.anyFields = true
		return
	}
	for _, f := range t.Fields {
		if key, ok := f.Key.(*ast.StringExpr); ok {
			r.fieldsSent = append(r.fieldsSent, fieldUse{key.Value, t.Line(), r.fn})
		} else {
			r.anyFields = r.anyFields || f.Key != nil
		}
	}
}

func (r *reader) call(e *ast.FuncCallExpr) {
	use := callUse{call: e, in: r.fn}
	switch {
	case e.Func == nil:
		r.expr(e.Receiver)
		r.field(e.Receiver, &ast.StringExpr{Value: e.Method}, e.Line())
	default:
		r.expr(e.Func)
		use.fun = r.called(e.Func)
	}
	if v := r.value(e); v.what == knobValue {
		use.knob = v.knob
	}
	for i, a := range e.Args {
		r.expr(a)
		v := r.value(a)
		use.fraction = use.fraction || i == 0 && r.fraction(a)
		use.args = append(use.args, v)
		switch {
		case v.what == stateTable && use.fun != "pairs" && use.fun != "next" && use.fun != "type":
			r.anyState = true // what is called may write into it
		case i == 0 && (use.fun == "table.insert" || use.fun == "table.remove" || use.fun == "table.sort" || use.fun == "rawset"):
			if s := r.root(a); s != nil {
				r.moduleWrite(s, e.Line())
			}
		case i == 0 && (use.fun == "pairs" || use.fun == "next"):
			if s := r.root(a); s != nil && s.module {
				r.walked = append(r.walked, moduleUse{s, e.Line(), r.fn})
			}
		}
	}
	r.calls = append(r.calls, use)
}

// called is the name of a global function, or of one of a library.
func (r *reader) called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.IdentExpr:
		if r.local(f.Value) == nil {
			return f.Value
		}
	case *ast.AttrGetExpr:
		lib, isName := f.Object.(*ast.IdentExpr)
		key, isText := f.Key.(*ast.StringExpr)
		if isName && isText && r.local(lib.Value) == nil {
			return lib.Value + "." + key.Value
		}
	}
	return ""
}

// value says which known thing an expression is.
func (r *reader) value(e ast.Expr) value {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if s := r.local(e.Value); s != nil {
			return s.value
		}
	case *ast.AttrGetExpr:
		key, ok := e.Key.(*ast.StringExpr)
		if !ok || !isIdent(e.Object) {
			return value{}
		}
		return fieldValue(r.value(e.Object).what, key.Value)
	case *ast.FuncCallExpr:
		if v := r.value(e.Func); v.what == knobFn {
			return value{what: knobValue, knob: v.knob}
		}
		if e.Func == nil && isIdent(e.Receiver) { // r:random()
			return fieldValue(r.value(e.Receiver).what, e.Method)
		}
		if get, ok := e.Func.(*ast.AttrGetExpr); ok { // r.random()
			return r.value(get)
		}
	case *ast.LogicalOpExpr: // r.state or {}
		if v := r.value(e.Lhs); e.Operator == "or" && (v.what == stateTable || v.what == fieldsTable) {
			return v
		}
	}
	return value{}
}

// isIdent says that an expression is a name: what has known fields has one.
func isIdent(e ast.Expr) bool {
	_, ok := e.(*ast.IdentExpr)
	return ok
}

func fieldValue(of what, name string) value {
	switch {
	case (of == rowValue || of == messageValue) && name == "state":
		return value{what: stateTable}
	case (of == rowValue || of == messageValue) && name == "fields":
		return value{what: fieldsTable}
	case (of == rowValue || of == heldValue) && name == "model", of == messageValue && name == "from":
		return value{what: roleName}
	case of == messageValue && name == "status":
		return value{what: statusName}
	case of == rowValue:
		return value{what: rowField, name: name}
	}
	return value{}
}

// deepest is how far into an expression fraction looks: it is asked about every
// argument, those of calls in calls too.
const deepest = 8

// fraction says that a number stands between whole ones as a slider does.
func (r *reader) fraction(e ast.Expr) bool { return r.fractionIn(e, deepest) }

func (r *reader) fractionIn(e ast.Expr, deep int) bool {
	if deep == 0 {
		return false
	}
	switch e := e.(type) {
	case *ast.ArithmeticOpExpr:
		return e.Operator != "%" && (r.fractionIn(e.Lhs, deep-1) || r.fractionIn(e.Rhs, deep-1))
	case *ast.FuncCallExpr:
		if name := r.called(e.Func); name == "math.max" || name == "math.min" {
			return slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return r.fractionIn(a, deep-1) })
		}
	}
	return r.value(e).what == knobValue
}
