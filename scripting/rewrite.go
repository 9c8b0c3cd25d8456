package scripting

import (
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// An instruction count bounds time and memory only if no single instruction can
// be arbitrarily expensive. Five kinds can: a concatenation doubles a string, a
// store at a far index fills the array up to it, a constructor that ends in
// "..." takes any number of values, # walks over the nil values at an array's
// end, and < compares strings byte by byte. The walker turns each into a call of
// a guard, a Go function that charges the cost, where it cannot see that the
// cost is small. Guards are locals of the chunk under names that no Lua text can
// spell, so a router can neither see nor replace them.
//
// Two more rewrites keep clear of instructions that gopher-lua 1.1.2 gets wrong:
// assignments of several values (parallel), and ... where one value is wanted:
// in b = ... with a local b, it wipes out the locals behind b.
const (
	guardConcat = "(concat)" // (values...) -> string
	guardStore  = "(store)"  // (table, key, value)
	guardPack   = "(pack)"   // (table) -> the same table, its length charged
	guardKey    = "(key)"    // (key) -> the same key of a constructor
	guardLen    = "(len)"    // (value) -> its length
	guardText   = "(text)"   // (operand) -> the same operand of <, its bytes charged
	guardOne    = "(one)"    // (value) -> the same value of ...
)

var guards = lib{
	{guardConcat, guardConcatFn},
	{guardStore, guardStoreFn},
	{guardPack, guardPackFn},
	{guardKey, guardKeyFn},
	{guardLen, guardLenFn},
	{guardText, guardTextFn},
	{guardOne, guardOneFn},
}

// freeIndex is the largest constant index that needs no guard.
const freeIndex = 64

// maxFields bounds a table constructor: beyond 511 batches of 50 the compiler's
// list instruction would store at wrong places.
const maxFields = 10_000

// bindGuards makes the guards, passed as the chunk's arguments, its first locals.
func bindGuards(chunk []ast.Stmt) []ast.Stmt {
	bind := &ast.LocalAssignStmt{Names: guards.names(), Exprs: []ast.Expr{&ast.Comma3Expr{}}}
	setLines(bind, 1, 1)
	setLines(bind.Exprs[0], 1, 1)
	return append([]ast.Stmt{bind}, chunk...)
}

func setLines(n ast.PositionHolder, line, last int) {
	n.SetLine(line)
	n.SetLastLine(last)
}

func ident(name string, at ast.PositionHolder) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	setLines(e, at.Line(), at.LastLine())
	return e
}

func guardCall(name string, at ast.PositionHolder, args ...ast.Expr) *ast.FuncCallExpr {
	args[len(args)-1] = single(args[len(args)-1])
	e := &ast.FuncCallExpr{Func: ident(name, at), Args: args, AdjustRet: true}
	setLines(e, at.Line(), at.LastLine())
	return e
}

// single cuts a list of values to its first, as parentheses do.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func manyValued(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	return ok && !call.AdjustRet || isRest(e)
}

// isRest says that an expression is ... without parentheses.
func isRest(e ast.Expr) bool {
	rest, ok := e.(*ast.Comma3Expr)
	return ok && !rest.AdjustRet
}

// concat turns a .. b .. c, which binds to the right, into one call.
func (w *walker) concat(e *ast.StringConcatOpExpr) ast.Expr {
	args := []ast.Expr{w.expr(e.Lhs)}
	rest := e.Rhs
	for {
		next, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		args = append(args, w.expr(next.Lhs))
		rest = next.Rhs
	}
	args = append(args, w.expr(rest))
	return guardCall(guardConcat, e, args...)
}

// compare charges one operand of <, <=, > and >=, unless it is seen that either
// is no long text: then the comparison ends soon, or is an error.
func (w *walker) compare(e *ast.RelationalOpExpr) ast.Expr {
	short := w.short(e.Lhs) || w.short(e.Rhs)
	e.Lhs, e.Rhs = w.expr(e.Lhs), w.expr(e.Rhs)
	if !short && e.Operator != "==" && e.Operator != "~=" {
		e.Lhs = guardCall(guardText, e.Lhs, e.Lhs)
	}
	return e
}

// short says that a value is a number, or a text that ends soon.
func (w *walker) short(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr, *ast.UnaryLenOpExpr:
		return true
	case *ast.StringExpr:
		return len(e.Value) <= freeIndex
	case *ast.AttrGetExpr: // a number of the row
		id, isName := e.Object.(*ast.IdentExpr)
		key, isField := e.Key.(*ast.StringExpr)
		if !isName || !isField {
			return false
		}
		s, local := w.resolve(id.Value)
		return local && s.vars[id.Value] == rowArg && slices.Contains(rowNumbers, key.Value)
	}
	return false
}

func (w *walker) table(e *ast.TableExpr) ast.Expr {
	if len(e.Fields) > maxFields {
		w.fail(e.Line(), "a table constructor may have %d fields, this one has %d", maxFields, len(e.Fields))
		return e
	}
	for i, f := range e.Fields {
		if f.Key != nil || i < len(e.Fields)-1 || !isRest(f.Value) {
			f.Value = w.expr(f.Value)
		}
		if f.Key == nil {
			continue
		}
		f.Key = w.expr(f.Key)
		if !cheapKey(f.Key) {
			f.Key = guardCall(guardKey, f.Key, f.Key)
		}
	}
	if n := len(e.Fields); n > 0 && e.Fields[n-1].Key == nil && manyValued(e.Fields[n-1].Value) {
		return guardCall(guardPack, e, e)
	}
	return e
}

func cheapKey(key ast.Expr) bool {
	switch key := key.(type) {
	case *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr:
		return true
	case *ast.NumberExpr:
		n, err := strconv.Atoi(key.Value)
		return err == nil && n <= freeIndex
	}
	return false
}

// assignment guards every target t[k] whose key is not a cheap constant, and
// takes assignments of several values apart.
func (w *walker) assignment(s *ast.AssignStmt) ast.Stmt {
	// A function that is assigned to a hook's name is that hook.
	var done ast.Expr
	if id, f := hookAssignment(s); f != nil {
		if _, local := w.resolve(id.Value); !local {
			w.function(f, hooks[id.Value])
			done = f
		}
	}
	guarded := false
	for i, lhs := range s.Lhs {
		switch lhs := lhs.(type) {
		case *ast.IdentExpr:
			w.assign(lhs.Value, lhs.Line(), isFunction(s, i))
		case *ast.AttrGetExpr:
			lhs.Object, lhs.Key = w.expr(lhs.Object), w.expr(lhs.Key)
			if key, ok := lhs.Key.(*ast.StringExpr); ok {
				w.store(lhs.Object, key.Value, lhs.Line())
			}
			guarded = guarded || !cheapKey(lhs.Key)
		}
	}
	switch {
	case done != nil:
	case len(s.Lhs) == 1 && len(s.Rhs) == 1:
		s.Rhs[0] = w.expr(s.Rhs[0])
	default:
		w.exprs(s.Rhs)
	}
	switch {
	case len(s.Lhs) > 1 || len(s.Rhs) > 1:
		return parallel(s)
	case guarded:
		return storeCall(s.Lhs[0].(*ast.AttrGetExpr), s.Rhs[0], s)
	}
	return s
}

// store checks a constant key that is assigned.
func (w *walker) store(obj ast.Expr, key string, line int) {
	id, ok := obj.(*ast.IdentExpr)
	if !ok {
		return
	}
	s, local := w.resolve(id.Value)
	if !local {
		return
	}
	switch k := s.vars[id.Value]; {
	case k == plain, k == rowArg && key == "state":
	case k == rowArg:
		w.fail(line, "%s.%s cannot be assigned; only %s.state can", id.Value, key, id.Value)
	default:
		w.fail(line, "%s.%s cannot be assigned; it is read-only", id.Value, key)
	}
}

func hookAssignment(s *ast.AssignStmt) (*ast.IdentExpr, *ast.FunctionExpr) {
	if len(s.Lhs) != 1 || len(s.Rhs) != 1 {
		return nil, nil
	}
	id, isName := s.Lhs[0].(*ast.IdentExpr)
	f, isFunc := s.Rhs[0].(*ast.FunctionExpr)
	if !isName || !isFunc || hooks[id.Value] == nil {
		return nil, nil
	}
	return id, f
}

func isFunction(s *ast.AssignStmt, i int) bool {
	if i >= len(s.Rhs) {
		return false
	}
	_, ok := s.Rhs[i].(*ast.FunctionExpr)
	return ok
}

func storeCall(target *ast.AttrGetExpr, value ast.Expr, at ast.PositionHolder) ast.Stmt {
	call := guardCall(guardStore, target, target.Object, target.Key, value)
	s := &ast.FuncCallStmt{Expr: call}
	setLines(s, at.Line(), at.LastLine())
	return s
}

// parallel takes a, t[k] = x, y apart: all operands are evaluated into locals of
// a block before the first store. Stores happen from the right, as Lua's do: of
// equal targets the leftmost wins. It is done for every such assignment, since
// gopher-lua 1.1.2 compiles many of them wrongly: g, t[1] = 7, 8 sets g to 1,
// and a, t[i] = 2, a reads the new a.
func parallel(s *ast.AssignStmt) ast.Stmt {
	operands := &ast.LocalAssignStmt{}
	values := &ast.LocalAssignStmt{Exprs: s.Rhs}
	setLines(operands, s.Line(), s.LastLine())
	setLines(values, s.Line(), s.LastLine())
	var stores []ast.Stmt
	for i, lhs := range s.Lhs {
		n := strconv.Itoa(i)
		value := ident("(v"+n+")", s)
		values.Names = append(values.Names, value.Value)
		t, ok := lhs.(*ast.AttrGetExpr)
		if !ok {
			set := &ast.AssignStmt{Lhs: []ast.Expr{lhs}, Rhs: []ast.Expr{value}}
			setLines(set, s.Line(), s.LastLine())
			stores = append(stores, set)
			continue
		}
		operands.Names = append(operands.Names, "(o"+n+")", "(k"+n+")")
		operands.Exprs = append(operands.Exprs, t.Object, t.Key)
		held := &ast.AttrGetExpr{Object: ident("(o"+n+")", t), Key: ident("(k"+n+")", t)}
		setLines(held, t.Line(), t.LastLine())
		stores = append(stores, storeCall(held, value, s))
	}
	slices.Reverse(stores)
	block := &ast.DoBlockStmt{Stmts: append([]ast.Stmt{operands, values}, stores...)}
	setLines(block, s.Line(), s.LastLine())
	return block
}
