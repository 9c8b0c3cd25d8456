package lint

import (
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/scripting/near"
)

// meaning says what a value of the interface is: "destination", "action",
// "verdict", "" if it is not seen; and its name.
func meaning(e ast.Expr) (kind, name string) {
	call, called := e.(*ast.FuncCallExpr)
	if called {
		e = call.Func
	}
	id, ok := e.(*ast.IdentExpr)
	if !ok {
		return "", ""
	}
	switch id.Value {
	case "STAY", "HOME":
		kind = "destination"
	case "KEEP", "DROP":
		kind = "action"
	case "COMMIT":
		kind = "verdict"
	case "to", "TRUNCATE", "APPEND":
		if !called {
			return "function", id.Value
		}
		return map[string]string{"to": "destination", "TRUNCATE": "action", "APPEND": "verdict"}[id.Value], id.Value
	}
	if called {
		return "", ""
	}
	return kind, id.Value
}

// alternatives are the values that a and b or c may have.
func alternatives(e ast.Expr) []ast.Expr {
	op, ok := e.(*ast.LogicalOpExpr)
	switch {
	case !ok:
		return []ast.Expr{e}
	case op.Operator == "and":
		return alternatives(op.Rhs)
	}
	return append(alternatives(op.Lhs), alternatives(op.Rhs)...)
}

func (l *linter) hook(name string) *fn {
	for _, f := range l.fns {
		if f.hook == name {
			return f
		}
	}
	return nil
}

// routeReturns checks what route gives: a destination, and an action behind it.
func (l *linter) routeReturns() {
	f := l.hook("route")
	if f == nil {
		return
	}
	if !hasLabel(f.body.Stmts) && runsOut(f.body.Stmts) {
		l.report(Warning, "no-return", max(f.body.LastLine(), f.body.Line()), "end with return STAY", "the end of route may be reached without a return, which is a fault")
	}
	for _, r := range returns(f.body.Stmts) {
		if len(r.Exprs) == 0 {
			l.report(Error, "no-return", r.Line(), "write return STAY", "a return without a destination is a fault")
			continue
		}
		for _, e := range alternatives(r.Exprs[0]) {
			l.destination(e, r)
		}
		if len(r.Exprs) > 1 {
			for _, e := range alternatives(r.Exprs[1]) {
				l.action(e, r)
			}
		}
	}
}

func (l *linter) destination(e ast.Expr, r *ast.ReturnStmt) {
	line := r.Line()
	kind, name := meaning(e)
	switch kind {
	case "action":
		l.report(Error, "return", line, "write return to(\"large\"), "+name, "%s is an action; a destination stands before it", name)
	case "verdict":
		l.report(Error, "return", line, "write return STAY", "%s is for receive; route gives a destination", name)
	case "function":
		l.report(Error, "return", line, "write "+call[name], "%s is a function", name)
	}
	switch e := e.(type) {
	case *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr:
		l.report(Error, "return", line, "write return STAY", "route returns no destination")
	case *ast.StringExpr:
		l.report(Error, "return", line, fmt.Sprintf("write to(%q)", e.Value), "a text is no destination")
	case *ast.FuncCallExpr:
		if isName(e.Func, "to") && len(e.Args) > 1 {
			l.report(Error, "return", line, "write return to(\"large\"), DROP", "to() takes one role; the action stands behind it")
		}
	}
}

var call = map[string]string{"to": `to("large")`, "TRUNCATE": "TRUNCATE(pos)", "APPEND": "APPEND({ ids })"}

func (l *linter) action(e ast.Expr, r *ast.ReturnStmt) {
	line := r.Line()
	kind, name := meaning(e)
	switch kind {
	case "destination", "verdict":
		l.report(Error, "return", line, "legal are KEEP, DROP and TRUNCATE(pos)", "%s is no action", name)
	case "function":
		l.report(Error, "return", line, "write "+call[name], "%s is a function", name)
	case "action":
		stays := false
		for _, d := range alternatives(r.Exprs[0]) {
			n, literal := number(d)
			stays = stays || isName(d, "STAY") || literal && n == 0
		}
		if stays && name != "KEEP" {
			l.report(Error, "return", line, "write to(\"large\") before it", "%s needs another subserver, which writes the position", name)
		}
	}
	switch e.(type) {
	case *ast.NumberExpr, *ast.StringExpr, *ast.TrueExpr:
		l.report(Error, "return", line, "legal are KEEP, DROP and TRUNCATE(pos)", "the second value is no action")
	}
}

// otherReturns checks what send and receive give.
func (l *linter) otherReturns() {
	if f := l.hook("receive"); f != nil {
		for _, r := range returns(f.body.Stmts) {
			if len(r.Exprs) == 0 {
				continue
			}
			for _, e := range alternatives(r.Exprs[0]) {
				kind, name := meaning(e)
				_, table := e.(*ast.TableExpr)
				switch {
				case kind == "destination" || kind == "action":
					l.report(Error, "return", r.Line(), "legal are COMMIT and APPEND({ ids })", "%s is for route", name)
				case kind == "function":
					l.report(Error, "return", r.Line(), "write "+call[name], "%s is a function", name)
				case table:
					l.report(Error, "return", r.Line(), "write APPEND({ ids })", "receive returns a table")
				}
			}
		}
	}
	f := l.hook("send")
	if f == nil {
		return
	}
	known := []string{"budget", "fields"}
	for _, r := range returns(f.body.Stmts) {
		if len(r.Exprs) == 0 {
			continue
		}
		for _, e := range alternatives(r.Exprs[0]) {
			if kind, name := meaning(e); kind != "" {
				l.report(Error, "return", r.Line(), "it returns nothing, or { budget = n, fields = {...} }", "send gives %s, but route alone decides where to", name)
			}
			t, ok := e.(*ast.TableExpr)
			if !ok {
				continue
			}
			for _, field := range t.Fields {
				if key, ok := field.Key.(*ast.StringExpr); ok && !slices.Contains(known, key.Value) {
					l.report(Error, "return", r.Line(), "", "send returns an unknown field %q%s", key.Value, near.List(key.Value, "fields", known))
				}
			}
		}
	}
}

// neverHome finds routers that give a request away and never look where it is.
func (l *linter) neverHome() {
	if l.readsModel() || len(l.budgets) > 0 || l.spokenOf("HOME") {
		return
	}
	away := 0
	for _, u := range l.names {
		if u.name == "HOME" {
			return
		}
	}
	for _, c := range l.calls {
		if c.fun != "to" || len(c.call.Args) == 0 {
			continue
		}
		role, ok := c.call.Args[0].(*ast.StringExpr)
		if !ok || role.Value == "small" {
			return
		}
		if away == 0 {
			away = c.call.Line()
		}
	}
	if away > 0 {
		l.report(Hint, "never-home", away, "begin with: if r.model ~= \"small\" then return HOME end",
			"route sends a request away and never asks r.model nor returns HOME: the other model decides by the same lines, and keeps the request")
	}
}
