package scripting

import (
	"fmt"
	"maps"
	"slices"

	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/scripting/near"
)

// kind says what a local variable is known to hold.
type kind uint8

const (
	plain   kind = iota
	rowArg       // r of route and send
	msgArg       // msg of receive
	heldArg      // req of receive
)

// hooks are the functions that the runtime calls, with what their arguments are.
var hooks = map[string][]kind{
	"route":   {rowArg},
	"send":    {rowArg, plain},
	"receive": {msgArg, heldArg},
}

var hookNames = []string{"route", "send", "receive"}

// maxNested bounds how deep blocks may lie in each other, as Lua does: a name is
// looked up through all of them.
const maxNested = 200

// maxErrors bounds how many errors of a file are told at once.
const maxErrors = 100

type scope struct {
	parent *scope
	vars   map[string]kind
}

type reference struct {
	name string
	line int
	near string // the visible local that may be meant, of a name that is none
}

// walker resolves names, checks what can be checked without running, and
// rewrites the operations whose cost an instruction count does not see
// (rewrite.go).
type walker struct {
	file      string
	scope     *scope
	depth     int             // of functions
	nested    int             // of blocks
	assigned  map[string]bool // globals assigned anywhere
	functions map[string]int  // global functions, with their line
	localFns  map[string]int  // local functions at the top level, with their line
	reads     []reference     // globals read
	heads     []headUse       // heads that the file names
	dynamic   bool            // the file touches _G: names cannot be checked
	errs      []*Error        // in the order they were found
}

func newWalker(file string) *walker {
	return &walker{
		file: file, assigned: map[string]bool{}, functions: map[string]int{}, localFns: map[string]int{},
	}
}

func (w *walker) fail(line int, format string, args ...any) {
	if len(w.errs) < maxErrors {
		w.errs = append(w.errs, &Error{File: w.file, Line: line, Msg: fmt.Sprintf(format, args...)})
	}
}

// program checks and rewrites a whole file; what is wrong is in w.errs.
func (w *walker) program(chunk []ast.Stmt) []ast.Stmt {
	w.push(1)
	chunk = w.stmts(chunk)
	w.pop()
	w.checkGlobals()
	w.checkHooks()
	w.checkHold()
	return bindGuards(chunk)
}

func (w *walker) checkGlobals() {
	if w.dynamic {
		return
	}
	for _, ref := range w.reads {
		if w.assigned[ref.name] || slices.Contains(globalNames, ref.name) {
			continue
		}
		if why, ok := absent[ref.name]; ok {
			w.fail(ref.line, "%s", why)
			continue
		}
		known := append(slices.Clone(globalNames), slices.Sorted(maps.Keys(w.assigned))...)
		if ref.near != "" {
			known = append([]string{ref.near}, known...)
		}
		w.fail(ref.line, "there is no global %q%s", ref.name, near.Hint(ref.name, known))
	}
}

func (w *walker) checkHooks() {
	called := map[string]bool{}
	for _, ref := range w.reads {
		called[ref.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.functions)) {
		if _, hook := hooks[name]; hook || called[name] {
			continue
		}
		if meant := near.Best(name, hookNames); meant != "" && !w.assigned[meant] {
			w.fail(w.functions[name], "function %q is never called and looks like a misspelt %q; rename it, or make it local", name, meant)
		}
	}
	if w.assigned["route"] || w.dynamic {
		return
	}
	if line, ok := w.localFns["route"]; ok {
		w.fail(line, "route is local, so the runtime cannot see it; write: function route(r)")
		return
	}
	w.fail(0, "there is no function route(r); a router must define one")
}

// checkHold tests that a file that takes tokens back holds some: without, every
// TRUNCATE would be a fault, in a branch that may be rare.
func (w *walker) checkHold() {
	line := 0
	for _, ref := range w.reads {
		switch {
		case ref.name == "hold":
			return
		case ref.name == "TRUNCATE" && line == 0:
			line = ref.line
		}
	}
	if line > 0 && !w.dynamic {
		w.fail(line, "TRUNCATE takes back tokens that were written, so the router must hold some: write hold(n) at the top of the file, n the most it takes back")
	}
}

func (w *walker) push(line int) {
	w.scope = &scope{parent: w.scope, vars: map[string]kind{}}
	if w.nested++; w.nested == maxNested+1 {
		w.fail(line, "blocks are nested deeper than %d levels", maxNested)
	}
}

func (w *walker) pop() {
	w.scope = w.scope.parent
	w.nested--
}

func (w *walker) declare(names ...string) {
	for _, n := range names {
		w.scope.vars[n] = plain
	}
}

func (w *walker) resolve(name string) (*scope, bool) {
	for s := w.scope; s != nil; s = s.parent {
		if _, ok := s.vars[name]; ok {
			return s, true
		}
	}
	return nil, false
}

// assign notes an assignment to a name.
func (w *walker) assign(name string, line int, fn bool) {
	if s, local := w.resolve(name); local {
		if s.vars[name] != plain {
			w.fail(line, "%s is what the runtime gave and cannot be assigned; use another name", name)
		}
		return
	}
	if slices.Contains(apiNames, name) {
		w.fail(line, "%s belongs to the interface of routers and cannot be assigned; use another name", name)
	}
	w.assigned[name] = true
	if fn {
		w.functions[name] = line
	}
}

func (w *walker) block(list []ast.Stmt) []ast.Stmt {
	if len(list) == 0 {
		return list
	}
	if _, chain := list[0].(*ast.IfStmt); chain && len(list) == 1 { // elseif: no deeper than if
		return w.stmts(list)
	}
	w.push(list[0].Line())
	defer w.pop()
	return w.stmts(list)
}

func (w *walker) stmts(list []ast.Stmt) []ast.Stmt {
	for i, s := range list {
		list[i] = w.stmt(s)
	}
	return list
}

func (w *walker) stmt(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		w.local(s)
	case *ast.AssignStmt:
		return w.assignment(s)
	case *ast.FuncCallStmt:
		s.Expr = w.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = w.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = w.expr(s.Condition)
		s.Stmts = w.block(s.Stmts)
	case *ast.RepeatStmt:
		w.push(s.Line())
		s.Stmts = w.stmts(s.Stmts)
		s.Condition = w.expr(s.Condition) // sees the body's locals
		w.pop()
	case *ast.IfStmt:
		s.Condition = w.expr(s.Condition)
		s.Then, s.Else = w.block(s.Then), w.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit = w.expr(s.Init), w.expr(s.Limit)
		if s.Step != nil {
			s.Step = w.expr(s.Step)
		}
		w.push(s.Line())
		w.declare(s.Name)
		s.Stmts = w.stmts(s.Stmts)
		w.pop()
	case *ast.GenericForStmt:
		w.exprs(s.Exprs)
		w.push(s.Line())
		w.declare(s.Names...)
		s.Stmts = w.stmts(s.Stmts)
		w.pop()
	case *ast.FuncDefStmt:
		w.define(s)
	case *ast.ReturnStmt:
		w.exprs(s.Exprs)
	}
	return s
}

func (w *walker) local(s *ast.LocalAssignStmt) {
	// A local function sees itself.
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			w.declare(s.Names[0])
			if w.depth == 0 {
				w.localFns[s.Names[0]] = f.Line()
			}
			w.function(f, nil)
			return
		}
	}
	w.exprs(s.Exprs)
	w.declare(s.Names...)
}

// define handles function a.b.c() and function a:b().
func (w *walker) define(s *ast.FuncDefStmt) {
	if s.Name.Func == nil {
		s.Name.Receiver = w.expr(s.Name.Receiver)
		w.function(s.Func, nil, "self")
		return
	}
	id, ok := s.Name.Func.(*ast.IdentExpr)
	if !ok {
		s.Name.Func = w.expr(s.Name.Func)
		w.function(s.Func, nil)
		return
	}
	_, local := w.resolve(id.Value)
	w.assign(id.Value, s.Func.Line(), true)
	if local {
		w.function(s.Func, nil)
		return
	}
	w.function(s.Func, hooks[id.Value])
}

func (w *walker) function(f *ast.FunctionExpr, args []kind, extra ...string) {
	w.push(f.Line())
	w.depth++
	w.declare(extra...)
	for i, name := range f.ParList.Names {
		w.scope.vars[name] = plain
		if i < len(args) {
			w.scope.vars[name] = args[i]
		}
	}
	f.Stmts = w.stmts(f.Stmts)
	w.depth--
	w.pop()
}

// exprs walks a list of values, the last of which may be many.
func (w *walker) exprs(list []ast.Expr) {
	for i, e := range list {
		if i < len(list)-1 || !isRest(e) {
			list[i] = w.expr(e)
		}
	}
}

func (w *walker) expr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.IdentExpr:
		w.read(e)
	case *ast.AttrGetExpr:
		e.Object, e.Key = w.expr(e.Object), w.expr(e.Key)
		if key, ok := e.Key.(*ast.StringExpr); ok {
			w.field(e.Object, key.Value, e.Line())
		}
	case *ast.TableExpr:
		return w.table(e)
	case *ast.Comma3Expr:
		return guardCall(guardOne, e, e)
	case *ast.FuncCallExpr:
		w.score(e)
		if e.Func != nil {
			e.Func = w.expr(e.Func)
		} else {
			e.Receiver = w.expr(e.Receiver)
			w.field(e.Receiver, e.Method, e.Line())
		}
		w.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		return w.compare(e)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return w.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = w.expr(e.Expr)
	case *ast.StringExpr:
		if len(e.Value) > MaxString {
			w.fail(e.Line(), "a text of %d bytes; a router's strings end at %d", len(e.Value), MaxString)
		}
	case *ast.UnaryNotOpExpr:
		e.Expr = w.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		return guardCall(guardLen, e, w.expr(e.Expr))
	case *ast.FunctionExpr:
		w.function(e, nil)
	}
	return e
}

func (w *walker) read(e *ast.IdentExpr) {
	if _, local := w.resolve(e.Value); local {
		return
	}
	switch {
	case e.Value == "_G":
		w.dynamic = true
	case e.Value == "hold" && w.depth > 0:
		w.fail(e.Line(), "hold() declares how many tokens are held back, so it belongs at the top of the file, not into a function")
	}
	ref := reference{name: e.Value, line: e.Line()}
	if !slices.Contains(globalNames, e.Value) {
		ref.near = w.nearLocal(e.Value)
	}
	w.reads = append(w.reads, ref)
}

// nearLocal is the visible local that a name is a slip of; of equals, the one of
// the innermost block.
func (w *walker) nearLocal(name string) string {
	var known []string
	for s := w.scope; s != nil; s = s.parent {
		known = append(known, slices.Sorted(maps.Keys(s.vars))...)
	}
	return near.Best(name, known)
}

// field checks a constant key of a value whose fields are known.
func (w *walker) field(obj ast.Expr, key string, line int) {
	id, ok := obj.(*ast.IdentExpr)
	if !ok {
		return
	}
	if s, local := w.resolve(id.Value); local {
		if names := fieldNames[s.vars[id.Value]]; names != nil && !slices.Contains(names, key) {
			w.fail(line, "%s has no field %q%s", id.Value, key, fieldHint(key, names))
		}
		return
	}
	names, ok := libNames[id.Value]
	if !ok || w.assigned[id.Value] || slices.Contains(names, key) {
		return
	}
	if why, ok := absent[id.Value+"."+key]; ok {
		w.fail(line, "%s", why)
		return
	}
	w.fail(line, "%s has no function %q%s", id.Value, key, near.Hint(key, names))
}
