package lint

import (
	"math"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/scripting"
)

// smallNats is what a threshold in nats is hardly set to, while for normalised
// entropy it is common.
const smallNats = 0.05

// shares are the fields that lie between 0 and 1.
var shares = []string{"entropy_norm", "top1", "top2", "margin", "random", "score"}

// threshold looks at the comparison of a field with something else.
func (l *linter) threshold(c *comparison, field value, other ast.Expr, v value) {
	n, literal := number(other)
	declared := l.declared(v)
	switch {
	case slices.Contains(shares, field.name) && literal && (n < 0 || n > 1):
		l.report(Warning, "scale", c.line, "", "r.%s lies between 0 and 1, so comparing it with %s always gives the same", field.name, num(n))
	case slices.Contains(shares, field.name) && declared != nil && declared.Max > 1:
		l.report(Hint, "scale", c.line, "give the knob max = 1, or is r.entropy meant?",
			"knob %q goes to %s and r.%s only to 1", declared.Name, num(declared.Max), field.name)
	case field.name == "entropy" && literal && n > 0 && n <= smallNats:
		l.report(Hint, "scale", c.line, "r.entropy_norm, H over ln V, has thresholds of this size", "%s is next to nothing for r.entropy, which is in nats", num(n))
	case field.name == "entropy" && declared != nil && declared.Default > 0 && declared.Default <= smallNats:
		l.report(Hint, "scale", c.line, "r.entropy_norm, H over ln V, has thresholds of this size",
			"the default %s of knob %q is next to nothing for r.entropy, which is in nats", num(declared.Default), declared.Name)
	case (c.op == "==" || c.op == "~=") && v.what == knobValue:
		l.report(Warning, "scale", c.line, "compare with >= or <", "a slider hardly ever stands at exactly r.%s", field.name)
	}
}

// thresholds finds thresholds that cannot be meant.
func (l *linter) thresholds() {
	for i := range l.comparisons {
		c := &l.comparisons[i]
		l.uncalled(c)
		switch {
		case c.l.what == rowField:
			l.threshold(c, c.l, c.rhs, c.r)
		case c.r.what == rowField:
			l.threshold(c, c.r, c.lhs, c.l)
		}
	}
	for i := range l.arithmetic {
		l.uncalled(&l.arithmetic[i])
	}
}

// uncalled finds a knob that is used as a number.
func (l *linter) uncalled(c *comparison) {
	for _, side := range []struct {
		v value
		e ast.Expr
	}{{c.l, c.lhs}, {c.r, c.rhs}} {
		if id, ok := side.e.(*ast.IdentExpr); ok && side.v.what == knobFn {
			l.report(Error, "knob", c.line, "write "+id.Value+"()", "%s is a function that reads the knob, not a number", id.Value)
		}
	}
}

// declared is the knob that a value reads, as the file declared it.
func (l *linter) declared(v value) *scripting.Param {
	if v.knob == nil || l.p == nil || v.knob.name == "" {
		return nil
	}
	i := slices.IndexFunc(l.p.Params, func(p scripting.Param) bool { return p.Name == v.knob.name })
	if i < 0 {
		return nil
	}
	return &l.p.Params[i]
}

// knobs finds knobs that do nothing, whose slider begins at its end, or that give
// fractions where whole numbers are wanted.
func (l *linter) knobs() {
	for _, s := range l.symbols {
		if s.value.what != knobFn {
			continue
		}
		p := l.declared(s.value)
		if p != nil && p.Default == p.Max && (p.Min != 0 || p.Max != 1) {
			l.report(Hint, "knob", s.value.knob.line, "give a larger max", "the default %s of knob %q is the end of its range: the slider goes down only", num(p.Default), p.Name)
		}
	}
	for _, c := range l.calls {
		if c.knob != nil && c.in.body == nil {
			l.report(Warning, "knob", c.call.Line(), "read it in route", "knob %q is read once, when the file is loaded: the slider does nothing", c.knob.name)
		}
		if c.fun == "TRUNCATE" && c.fraction {
			l.report(Warning, "whole", c.call.Line(), "put math.floor around the knob", "TRUNCATE takes a position, and a slider stands between whole numbers")
		}
		for i, a := range c.args {
			if id, ok := c.call.Args[i].(*ast.IdentExpr); ok && a.what == knobFn && len(c.fun) > 5 && c.fun[:5] == "math." {
				l.report(Error, "knob", c.call.Line(), "write "+id.Value+"()", "%s is a function that reads the knob, not a number", id.Value)
			}
		}
	}
	for _, b := range l.budgets {
		n, literal := number(b.rhs)
		switch {
		case b.r.what == knobFn:
			l.report(Error, "knob", b.line, "write it with ()", "the budget is the function that reads a knob, not a number")
		case b.fraction:
			l.report(Warning, "whole", b.line, "put math.floor around the knob", "a budget is a whole number of tokens, and a slider stands between them")
		case literal && (n < 1 || n != math.Trunc(n)):
			l.report(Error, "whole", b.line, "leave it out for no ceiling", "the budget %s is no whole number of tokens from 1", num(n))
		}
	}
}

// holding finds tokens that are held back for nothing, and cuts that may go below
// what has been emitted.
func (l *linter) holding() {
	truncates := slices.ContainsFunc(l.names, func(u fieldUse) bool { return u.name == "TRUNCATE" })
	emitted := slices.ContainsFunc(l.rowReads, func(u fieldUse) bool { return u.name == "emitted" })
	for _, c := range l.calls {
		switch {
		case c.fun == "hold" && !truncates:
			l.report(Warning, "hold", c.call.Line(), "take it out", "tokens are held back and nothing takes them back: the text only comes later")
		case c.fun == "TRUNCATE" && !emitted && len(c.args) > 0 && (c.args[0].what != rowField || c.args[0].name != "pos"):
			l.report(Hint, "hold", c.call.Line(), "write TRUNCATE(math.max(pos, r.emitted)), or test pos >= r.emitted", "a position below r.emitted is a fault, and nothing here looks at it")
		}
	}
}

// scores finds heads that are asked wherever a request is.
func (l *linter) scores() {
	asked := slices.IndexFunc(l.rowReads, func(u fieldUse) bool { return u.name == "score" })
	if asked >= 0 && !l.readsModel() {
		l.report(Hint, "score", l.rowReads[asked].line, "ask only where r.model == \"small\"", "a head reads the rows of one model, and is a fault at another")
	}
}

func (l *linter) readsModel() bool {
	return slices.ContainsFunc(l.rowReads, func(u fieldUse) bool { return u.name == "model" })
}

// number is a literal.
func number(e ast.Expr) (n float64, ok bool) {
	switch e := e.(type) {
	case *ast.NumberExpr:
		n, err := strconv.ParseFloat(e.Value, 64)
		return n, err == nil
	case *ast.UnaryMinusOpExpr:
		n, ok := number(e.Expr)
		return -n, ok
	}
	return 0, false
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
