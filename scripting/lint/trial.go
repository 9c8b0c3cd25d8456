package lint

import (
	"errors"
	"slices"
	"strings"

	"tokenrouter/scripting"
)

// heads asks about the trained heads that the file names.
func (l *linter) heads() {
	if l.o.Scorer == nil {
		return
	}
	for _, name := range l.p.Heads {
		if err := l.o.Scorer.Check(name); err != nil {
			l.report(Error, "head", l.p.HeadLine(name), "", "r.score(%q): %s", name, err)
		}
	}
}

// trial runs the router on the built-in rows with every number of models.
func (l *linter) trial() {
	var failed []*scripting.Error
	var with []int
	models := l.o.models()
	for _, n := range models {
		err := scripting.DryRun(l.p, scripting.Env{Peers: n, Scorer: l.o.Scorer}, nil)
		if e, ok := errors.AsType[*scripting.Error](err); ok {
			failed, with = append(failed, e), append(with, n)
		} else if err != nil {
			l.report(Error, "fault", 0, "", "%d models: %s", n, err)
		}
	}
	for i, e := range failed {
		if l.hasError(e.Line) || slices.ContainsFunc(failed[:i], func(o *scripting.Error) bool { return o.Line == e.Line }) {
			continue
		}
		s, cure := Error, ""
		if len(l.o.Models) == 0 && len(failed) < len(models) {
			s = Warning
			if with[i] == 2 && strings.Contains(e.Msg, `no role "middle"`) {
				s, cure = Hint, "it is for three models"
			}
		}
		l.report(s, "fault", e.Line, cure, "a fault with %d models: %s", with[i], e.Msg)
	}
}
