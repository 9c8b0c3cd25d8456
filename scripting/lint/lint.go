package lint

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// Severity says how bad a finding is.
type Severity uint8

const (
	Hint    Severity = iota // may be meant so
	Warning                 // works, hardly as it was meant
	Error                   // a fault, or a file that is refused
)

var severities = [...]string{Hint: "hint", Warning: "warning", Error: "error"}

func (s Severity) String() string { return severities[s] }

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that a router should not be.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"` // 0: of no line
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`
	Message  string   `json:"message"`        // what is wrong
	Cure     string   `json:"cure,omitempty"` // what to write; empty where the message says it
}

// String is the finding as a compiler would print it.
func (f *Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	text := f.Message
	if f.Cure != "" {
		text += "; " + f.Cure
	}
	return fmt.Sprintf("%s: %s: %s [%s]", at, f.Severity, text, f.Rule)
}

// Options say what a router is held against.
type Options struct {
	// Models are the numbers of models that it is tried with; 2 and 3 unless
	// given. Given, roles that do not exist with them are errors.
	Models []int
	// Scorer knows the trained heads; nil takes every head as known.
	Scorer scripting.Scorer
}

func (o *Options) models() []int {
	if len(o.Models) == 0 {
		return []int{2, 3}
	}
	return o.Models
}

// roles are those that there are with the models tried; all there can be unless
// their number was given.
func (o *Options) roles() (out []string) {
	models := o.Models
	if len(models) == 0 {
		models = []int{2, 3, 4, 5, 6, 7, 8}
	}
	for _, n := range models {
		for _, role := range event.Roles(n) {
			if !slices.Contains(out, role) {
				out = append(out, role)
			}
		}
	}
	return out
}

// Check reads the text of a router and gives what it found by line. The program
// is nil where the text is refused.
func Check(file, text string, o Options) (*scripting.Program, []Finding) {
	file = filepath.Base(file)
	l := &linter{file: file, o: o, roles: o.roles()}
	p, errs := scripting.CompileAll(file, text)
	l.p = p
	for _, e := range errs {
		l.refused(e)
	}
	if len(text) <= scripting.MaxText {
		l.text(file, text)
	}
	if p != nil {
		l.heads()
		if worst, _ := Worst(l.found); worst < Error {
			l.trial() // of a wrong file it would say the same once more
		}
	}
	return p, l.sorted(text)
}

// text looks at a text that can be read, refused or not.
func (l *linter) text(file, text string) {
	chunk, err := scripting.Parse(file, text)
	if err != nil {
		return
	}
	l.facts = read(chunk)
	for _, rule := range rules {
		rule(l)
	}
}

// rules are all that looks at the text alone.
var rules = []func(*linter){
	(*linter).unused, (*linter).hidden, (*linter).roleNames, (*linter).stateNames, (*linter).fieldNames,
	(*linter).timing, (*linter).shared, (*linter).order,
	(*linter).thresholds, (*linter).knobs, (*linter).holding, (*linter).scores,
	(*linter).endings, (*linter).routeReturns, (*linter).otherReturns, (*linter).neverHome,
}

type linter struct {
	file  string
	o     Options
	roles []string
	p     *scripting.Program
	*facts

	found []Finding
}

func (l *linter) report(s Severity, rule string, line int, cure, format string, args ...any) {
	l.found = append(l.found, Finding{
		File: l.file, Line: line, Severity: s, Rule: rule, Message: fmt.Sprintf(format, args...), Cure: cure,
	})
}

// refused takes over what the compiler says.
func (l *linter) refused(e *scripting.Error) { l.report(Error, "refused", e.Line, "", "%s", e.Msg) }

// hasError says that a line has an error already: what follows from it need not be
// told as well.
func (l *linter) hasError(line int) bool {
	return slices.ContainsFunc(l.found, func(f Finding) bool { return f.Severity == Error && f.Line == line })
}

// accepted is the comment by which an author takes a warning or a hint as seen:
// -- ok: shared, timing
var accepted = regexp.MustCompile(`--.*\bok: ([a-z, -]+)`)

// sorted are the findings by line, each once, without those that are accepted.
func (l *linter) sorted(text string) []Finding {
	lines := strings.Split(text, "\n")
	out := slices.DeleteFunc(l.found, func(f Finding) bool {
		if f.Severity == Error || f.Line < 1 || f.Line > len(lines) {
			return false
		}
		m := accepted.FindStringSubmatch(lines[f.Line-1])
		return m != nil && slices.ContainsFunc(strings.Split(m[1], ","), func(s string) bool { return strings.TrimSpace(s) == f.Rule })
	})
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	seen := map[Finding]bool{}
	return slices.DeleteFunc(out, func(f Finding) bool {
		was := seen[f]
		seen[f] = true
		return was
	})
}

// Worst is the worst severity among findings; ok is false without any.
func Worst(list []Finding) (s Severity, ok bool) {
	for _, f := range list {
		s, ok = max(s, f.Severity), true
	}
	return s, ok
}
