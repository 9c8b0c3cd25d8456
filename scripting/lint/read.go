package lint

import (
	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/scripting/api"
)

// symbol is a name that the file declares or assigns.
type symbol struct {
	name   string
	line   int
	sort   sortOf
	module bool // declared at the top of the file, or a global

	value  value // what it is known to hold
	fn     *fn   // the function that it names
	reads  int
	writes int // assignments behind its declaration
}

type sortOf uint8

const (
	variable sortOf = iota
	function        // declared as one
	argument
	loop
	global
)

// fn is a function at the top level of the file, with those that lie in it. The
// file's own top level is one as well.
type fn struct {
	hook string // route, send, receive
	body *ast.FunctionExpr
	uses []*symbol
	hot  bool // a hook may come here
}

// knob is a param() that a local names.
type knob struct {
	name string // "" if it does not stand in the file
	line int
}

// what says which known thing an expression is.
type what uint8

const (
	unknown what = iota
	rowValue
	messageValue
	heldValue
	stateTable
	fieldsTable
	rowField   // r.entropy
	roleName   // r.model, msg.from, dest
	statusName // msg.status
	knobFn     // threshold
	knobValue  // threshold()
)

type value struct {
	what what
	name string // of a field
	knob *knob
}

// Facts of the file, by kind; each knows the line and the function it is in.
type (
	fieldUse struct { // r.NAME, or a key of r.state or r.fields
		name string
		line int
		in   *fn
	}
	comparison struct {
		op       string
		lhs, rhs ast.Expr
		l, r     value
		line     int
		fraction bool // of a budget: it stands where a slider does
	}
	moduleUse struct { // a module variable that is written, or gone through by pairs
		s    *symbol
		line int
		in   *fn
	}
	callUse struct {
		fun  string // the global called; of math.floor, math
		call *ast.FuncCallExpr
		args []value
		in   *fn

		knob     *knob // that the call reads
		fraction bool  // the first argument stands where a slider does
	}
)

// facts is what was read.
type facts struct {
	symbols []*symbol
	globals map[string]*symbol
	fns     []*fn

	rowReads                []fieldUse
	stateReads, stateWrites []fieldUse
	fieldReads, fieldsSent  []fieldUse
	anyState, anyFields     bool // written under keys that are not seen
	comparisons             []comparison
	arithmetic              []comparison
	written, walked         []moduleUse
	calls                   []callUse
	budgets                 []comparison // rhs is what stands behind budget =
	names                   []fieldUse   // globals of the interface, read
	usesG                   bool
	stateLost               []fieldUse // writes in send and receive
}

// read goes through a file once.
func read(chunk []ast.Stmt) *facts {
	r := &reader{facts: &facts{globals: map[string]*symbol{}}}
	r.top = &fn{}
	r.fn = r.top
	r.block(chunk)
	r.heat()
	return r.facts
}

type scope struct {
	parent *scope
	vars   map[string]*symbol
}

type reader struct {
	*facts
	scope *scope
	top   *fn
	fn    *fn
	depth int // of functions
}

func (r *reader) block(list []ast.Stmt) {
	r.scope = &scope{r.scope, map[string]*symbol{}}
	for _, s := range list {
		r.stmt(s)
	}
	r.scope = r.scope.parent
}

func (r *reader) declare(name string, line int, sort sortOf) *symbol {
	s := &symbol{name: name, line: line, sort: sort, module: r.depth == 0}
	r.scope.vars[name] = s
	r.symbols = append(r.symbols, s)
	return s
}

func (r *reader) local(name string) *symbol {
	for s := r.scope; s != nil; s = s.parent {
		if v := s.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

// globalSymbol is the global of that name, which the file assigns at a line.
func (r *reader) globalSymbol(name string, line int) *symbol {
	s := r.globals[name]
	if s == nil {
		s = &symbol{name: name, sort: global, module: true}
		r.globals[name] = s
	}
	if s.line == 0 {
		s.line = line
	}
	return s
}

func (r *reader) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		r.localAssign(s)
	case *ast.AssignStmt:
		r.assign(s)
	case *ast.FuncCallStmt:
		r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		r.block(append(s.Stmts[:len(s.Stmts):len(s.Stmts)], &ast.FuncCallStmt{Expr: s.Condition}))
	case *ast.IfStmt:
		r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.exprs(s.Init, s.Limit, s.Step)
		r.loop(s.Stmts, s.Line(), s.Name)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs...)
		r.loop(s.Stmts, s.Line(), s.Names...)
	case *ast.FuncDefStmt:
		r.define(s)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs...)
	}
}

func (r *reader) loop(body []ast.Stmt, line int, names ...string) {
	r.scope = &scope{r.scope, map[string]*symbol{}}
	for _, n := range names {
		r.declare(n, line, loop)
	}
	r.block(body)
	r.scope = r.scope.parent
}

func (r *reader) localAssign(s *ast.LocalAssignStmt) {
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok { // sees itself
			sym := r.declare(s.Names[0], s.Line(), function)
			sym.fn = r.function(f, "", nil)
			return
		}
	}
	r.exprs(s.Exprs...)
	for i, name := range s.Names {
		var v value
		var f *fn
		if i < len(s.Exprs) {
			v = r.value(s.Exprs[i])
			if k := knobOf(s.Exprs[i]); k != nil {
				v = value{what: knobFn, knob: k}
			}
		}
		sym := r.declare(name, s.Line(), variable)
		sym.value, sym.fn = v, f
	}
}

// knobOf is the knob that param(...) declares.
func knobOf(e ast.Expr) *knob {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || !isName(call.Func, "param") {
		return nil
	}
	k := &knob{line: call.Line()}
	if len(call.Args) > 0 {
		if name, ok := call.Args[0].(*ast.StringExpr); ok {
			k.name = name.Value
		}
	}
	return k
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.IdentExpr)
	return ok && id.Value == name
}

func (r *reader) assign(s *ast.AssignStmt) {
	if id, f, ok := hookFunction(s); ok && r.local(id) == nil {
		sym := r.globalSymbol(id, s.Line())
		sym.fn = r.function(f, hookOf(id), nil)
		return
	}
	r.exprs(s.Rhs...)
	for i, lhs := range s.Lhs {
		var rhs ast.Expr
		if i < len(s.Rhs) {
			rhs = s.Rhs[i]
		}
		switch lhs := lhs.(type) {
		case *ast.IdentExpr:
			sym := r.local(lhs.Value)
			if sym == nil {
				sym = r.globalSymbol(lhs.Value, lhs.Line())
			}
			sym.writes++
			sym.value = value{}
			r.moduleWrite(sym, lhs.Line())
			r.named(lhs.Value, rhs)
		case *ast.AttrGetExpr:
			r.store(lhs, rhs)
		}
	}
}

// named notes route = decide.
func (r *reader) named(name string, rhs ast.Expr) {
	if id, ok := rhs.(*ast.IdentExpr); ok && hookOf(name) != "" && r.local(name) == nil {
		if s := r.local(id.Value); s != nil && s.fn != nil {
			s.fn.hook = name
		}
	}
}

// hookFunction is name = function(...) ... end.
func hookFunction(s *ast.AssignStmt) (string, *ast.FunctionExpr, bool) {
	if len(s.Lhs) != 1 || len(s.Rhs) != 1 {
		return "", nil, false
	}
	id, isID := s.Lhs[0].(*ast.IdentExpr)
	f, isFn := s.Rhs[0].(*ast.FunctionExpr)
	if !isID || !isFn {
		return "", nil, false
	}
	return id.Value, f, true
}

func hookOf(name string) string {
	for _, h := range api.Hooks() {
		if h.Name == name {
			return name
		}
	}
	return ""
}

func (r *reader) moduleWrite(s *symbol, line int) {
	if s.module && r.fn != r.top {
		r.written = append(r.written, moduleUse{s, line, r.fn})
	}
}

// store notes t.k = v and t[k] = v.
func (r *reader) store(t *ast.AttrGetExpr, rhs ast.Expr) {
	r.expr(t.Object)
	r.expr(t.Key)
	key, plain := t.Key.(*ast.StringExpr)
	switch v := r.value(t.Object); {
	case v.what == stateTable && plain:
		use := fieldUse{key.Value, t.Line(), r.fn}
		r.stateWrites = append(r.stateWrites, use)
		if h := r.fn.hook; h == "send" || h == "receive" {
			r.stateLost = append(r.stateLost, use)
		}
	case v.what == stateTable:
		r.anyState = true
	case v.what == rowValue && plain && key.Value == "state":
		r.wholeState(rhs)
	}
	if s := r.root(t.Object); s != nil {
		r.moduleWrite(s, t.Line())
	}
}

// wholeState notes r.state = { ... }.
func (r *reader) wholeState(rhs ast.Expr) {
	switch rhs := rhs.(type) {
	case *ast.NilExpr:
	case *ast.TableExpr:
		for _, f := range rhs.Fields {
			if key, ok := f.Key.(*ast.StringExpr); ok {
				r.stateWrites = append(r.stateWrites, fieldUse{key.Value, rhs.Line(), r.fn})
			} else if f.Key != nil {
				r.anyState = true
			}
		}
	default:
		r.anyState = true
	}
}

// root is the variable that t in t.a[b].c names.
func (r *reader) root(e ast.Expr) *symbol {
	for {
		switch x := e.(type) {
		case *ast.AttrGetExpr:
			e = x.Object
		case *ast.IdentExpr:
			if s := r.local(x.Value); s != nil {
				return s
			}
			return r.globals[x.Value]
		default:
			return nil
		}
	}
}
