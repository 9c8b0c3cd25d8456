package lint

import "github.com/yuin/gopher-lua/ast"

// endings finds statements that are never reached.
func (l *linter) endings() {
	for _, f := range l.fns {
		if !hasLabel(f.body.Stmts) {
			l.dead(f.body.Stmts)
		}
	}
}

func (l *linter) dead(list []ast.Stmt) {
	for i, s := range list {
		for _, inner := range blocks(s) {
			l.dead(inner)
		}
		if i+1 < len(list) && !passes(s) {
			l.report(Warning, "unreachable", list[i+1].Line(), "take it out, or put a condition before the return", "nothing comes here: every way before returns")
			return
		}
	}
}

// blocks are the statements that lie in a statement, those of functions in its
// expressions left out.
func blocks(s ast.Stmt) [][]ast.Stmt {
	switch s := s.(type) {
	case *ast.DoBlockStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.WhileStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.RepeatStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.IfStmt:
		return [][]ast.Stmt{s.Then, s.Else}
	case *ast.NumberForStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.GenericForStmt:
		return [][]ast.Stmt{s.Stmts}
	}
	return nil
}

// hasLabel says that a jump makes the order of statements another.
func hasLabel(list []ast.Stmt) bool {
	for _, s := range list {
		if _, ok := s.(*ast.LabelStmt); ok {
			return true
		}
		for _, inner := range blocks(s) {
			if hasLabel(inner) {
				return true
			}
		}
	}
	return false
}

// passes says that what stands behind a statement may be reached.
func passes(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt, *ast.BreakStmt, *ast.GotoStmt:
		return false
	case *ast.DoBlockStmt:
		return runsOut(s.Stmts)
	case *ast.IfStmt:
		return runsOut(s.Then) || runsOut(s.Else)
	case *ast.WhileStmt:
		_, always := s.Condition.(*ast.TrueExpr)
		return !always || breaks(s.Stmts)
	case *ast.RepeatStmt:
		return runsOut(s.Stmts) || breaks(s.Stmts)
	case *ast.FuncCallStmt:
		call, ok := s.Expr.(*ast.FuncCallExpr)
		return !ok || !isName(call.Func, "error")
	}
	return true
}

// runsOut says that the end of a block may be reached.
func runsOut(list []ast.Stmt) bool {
	for _, s := range list {
		if !passes(s) {
			return false
		}
	}
	return true
}

// breaks says that a loop's body may leave it by break.
func breaks(list []ast.Stmt) bool {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.BreakStmt:
			return true
		case *ast.DoBlockStmt:
			if breaks(s.Stmts) {
				return true
			}
		case *ast.IfStmt:
			if breaks(s.Then) || breaks(s.Else) {
				return true
			}
		}
	}
	return false
}

// returns are the return statements of a function, without those of functions in
// it.
func returns(list []ast.Stmt) (out []*ast.ReturnStmt) {
	for _, s := range list {
		if r, ok := s.(*ast.ReturnStmt); ok {
			out = append(out, r)
		}
		for _, inner := range blocks(s) {
			out = append(out, returns(inner)...)
		}
	}
	return out
}
