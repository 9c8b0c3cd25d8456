package lint

import (
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/scripting/near"
)

// unused finds what is declared and never read. Names that begin with _ are meant
// so, and a name that an error speaks of was perhaps only misspelt where it is read.
func (l *linter) unused() {
	for _, s := range l.symbols {
		if s.reads > 0 || strings.HasPrefix(s.name, "_") || l.spokenOf(s.name) {
			continue
		}
		switch {
		case s.value.what == knobFn:
			name := s.value.knob.name
			if name == "" {
				name = s.name
			}
			l.report(Warning, "unused", s.line, "read it with "+s.name+"(), or take the param out",
				"knob %q is declared and never read: the slider does nothing", name)
		case s.sort == function:
			l.report(Warning, "unused", s.line, "call it or take it out", "function %s is never called", s.name)
		case s.sort == variable:
			l.report(Warning, "unused", s.line, "take it out, or call it _", "%s is never read", s.name)
		}
	}
	if l.usesG {
		return
	}
	for _, s := range l.assignedGlobals() {
		if s.reads == 0 && hookOf(s.name) == "" && !l.spokenOf(s.name) {
			l.report(Warning, "unused", s.line, "take it out; or is it misspelt where it is read?", "global %s is assigned and never read", s.name)
		}
	}
}

// assignedGlobals are the globals that the file assigns, by line.
func (l *linter) assignedGlobals() (out []*symbol) {
	for _, s := range l.globals {
		if s.line > 0 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *symbol) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

func (l *linter) spokenOf(name string) bool {
	return slices.ContainsFunc(l.found, func(f Finding) bool {
		return f.Severity == Error && strings.Contains(f.Message, `"`+name+`"`)
	})
}

// hidden finds names that hide one of the interface.
func (l *linter) hidden() {
	for _, s := range l.symbols {
		if slices.Contains(interfaceNames, s.name) {
			l.report(Warning, "hidden", s.line, "use another name", "%s hides %s of the interface", s.name, s.name)
		}
	}
}

// roleNames finds roles and states of messages that do not exist, where a text
// stands for one.
func (l *linter) roleNames() {
	for _, c := range l.calls {
		if len(c.args) == 0 || c.fun != "to" && !l.isLoad(c.call) {
			continue
		}
		if role, ok := c.call.Args[0].(*ast.StringExpr); ok && !slices.Contains(l.roles, role.Value) {
			l.report(Error, "role", c.call.Line(), "", "no role %q%s", role.Value, near.List(role.Value, "roles", l.listed()))
		}
	}
	for _, c := range l.comparisons {
		known, noun := l.roles, "role"
		v, other := c.l, c.rhs
		if v.what != roleName && v.what != statusName {
			v, other = c.r, c.lhs
		}
		switch v.what {
		case roleName:
		case statusName:
			known, noun = []string{"new", "alive"}, "status"
		default:
			continue
		}
		switch text := other.(type) {
		case *ast.StringExpr:
			if slices.Contains(known, text.Value) {
				continue
			}
			list := known
			if noun == "role" {
				list = l.listed()
			}
			l.report(Warning, "role", c.line, "", "no %s is %q, so this is never equal%s", noun, text.Value, near.List(text.Value, plural[noun], list))
		case *ast.NumberExpr:
			l.report(Warning, "role", c.line, "compare with a text, as in r.model == \"large\"", "a %s is a text, so it never equals a number", noun)
		case *ast.IdentExpr, *ast.FuncCallExpr:
			if d, _ := meaning(text); d == "destination" {
				l.report(Warning, "role", c.line, "compare with a text, as in dest == \"large\"", "a %s is a text, so it never equals a destination", noun)
			}
		}
	}
}

var plural = map[string]string{"role": "roles", "status": "states"}

// listed are the roles as messages list them: not eight models' worth.
func (l *linter) listed() []string {
	if len(l.o.Models) == 0 {
		return []string{"small", "middle", "large"}
	}
	return l.roles
}

// isLoad says that a call is r.load(...).
func (l *linter) isLoad(call *ast.FuncCallExpr) bool {
	if call.Func == nil {
		return call.Method == "load"
	}
	get, ok := call.Func.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	key, ok := get.Key.(*ast.StringExpr)
	return ok && key.Value == "load"
}

// stateNames finds keys of r.state that are read and never written, or the other
// way round, and what is written where it is lost.
func (l *linter) stateNames() {
	for _, w := range l.stateLost {
		l.report(Warning, "state", w.line, "write it in route", "what %s writes into r.state is lost", w.in.hook)
	}
	if l.anyState {
		return
	}
	l.paired("state", "r.state.", l.stateReads, l.stateWrites, "write it in route before, or is it misspelt?")
	read := keys(l.stateReads)
	if l.walksState() {
		return
	}
	for _, w := range firsts(l.stateWrites) {
		if !slices.Contains(read, w.name) {
			l.report(Hint, "state", w.line, "take it out", "r.state.%s is written and never read", w.name)
		}
	}
}

// walksState says that the file goes through r.state, and reads all of it.
func (l *linter) walksState() bool {
	return slices.ContainsFunc(l.calls, func(c callUse) bool {
		return (c.fun == "pairs" || c.fun == "next") && len(c.args) > 0 && c.args[0].what == stateTable
	})
}

// fieldNames finds keys of r.fields that no send gives.
func (l *linter) fieldNames() {
	if l.anyFields {
		return
	}
	if send := l.globals["send"]; send == nil || send.fn == nil {
		for _, r := range firsts(l.fieldReads) {
			l.report(Warning, "fields", r.line, "give them in function send(req, dest)", "r.fields.%s is read, but no send gives fields: it is always nil", r.name)
		}
		return
	}
	l.paired("fields", "r.fields.", l.fieldReads, l.fieldsSent, "give it in send, or is it misspelt?")
}

func (l *linter) paired(rule, prefix string, reads, writes []fieldUse, cure string) {
	known := keys(writes)
	for _, r := range firsts(reads) {
		if slices.Contains(known, r.name) {
			continue
		}
		if meant := near.Best(r.name, known); meant != "" {
			l.report(Warning, rule, r.line, `did you mean "`+meant+`"?`, "%s%s is read and never written", prefix, r.name)
			continue
		}
		l.report(Warning, rule, r.line, cure, "%s%s is read and never written: it is always nil", prefix, r.name)
	}
}

func keys(uses []fieldUse) (out []string) {
	for _, u := range uses {
		if !slices.Contains(out, u.name) {
			out = append(out, u.name)
		}
	}
	return out
}

// firsts are the first uses of each name.
func firsts(uses []fieldUse) (out []fieldUse) {
	for _, u := range uses {
		if !slices.ContainsFunc(out, func(o fieldUse) bool { return o.name == u.name }) {
			out = append(out, u)
		}
	}
	return out
}
