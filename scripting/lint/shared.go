package lint

import "slices"

// timing finds decisions that depend on when things happen.
func (l *linter) timing() {
	for _, r := range l.rowReads {
		switch r.name {
		case "ready", "batch", "load":
			l.report(Warning, "timing", r.line, "decide by the row, r.state and r.random where runs are compared",
				"r.%s depends on timing: the same seed gives other decisions from run to run", r.name)
		}
	}
}

// shared finds variables of the file that requests write: all of a subserver share
// them.
func (l *linter) shared() {
	for _, w := range l.written {
		switch {
		case !w.in.hot || w.s.fn != nil && w.s.writes <= 1:
		case w.s.sort == global:
			l.report(Warning, "shared", w.line, "write local, or keep it in r.state",
				"%s is a global: all requests of a subserver share it, and a reload empties it", w.s.name)
		default:
			l.report(Warning, "shared", w.line, "keep in r.state what belongs to a request",
				"%s belongs to the file: all requests of a subserver share it in whatever order they come, and a reload empties it", w.s.name)
		}
	}
}

// order finds pairs over a table that requests fill. pairs goes in the order of
// insertion, so over a table of the file, or of one call, it is the same always.
func (l *linter) order() {
	for _, w := range l.walked {
		filled := slices.ContainsFunc(l.written, func(o moduleUse) bool { return o.s == w.s && o.in.hot })
		if w.in.hot && filled {
			l.report(Warning, "order", w.line, "sort the keys first, or keep a list of them",
				"pairs goes in the order of insertion, and requests fill %s in whatever order they come", w.s.name)
		}
	}
}
