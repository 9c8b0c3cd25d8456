package api

import (
	"fmt"
	"regexp"
	"strings"
)

// section is a generated table of docs/lua.md, between comments that name it.
var section = regexp.MustCompile(`(?s)(<!-- api: ([a-z]+) -->\n).*?(<!-- api end -->)`)

// Tables gives text, docs/lua.md, with its generated tables as the catalogue has
// them. A table that is not known is an error, and so is one that is missing.
func Tables(text string) (string, error) {
	seen := map[string]bool{}
	var unknown error
	out := section.ReplaceAllStringFunc(text, func(s string) string {
		m := section.FindStringSubmatch(s)
		t := table(m[2])
		if t == "" {
			unknown = fmt.Errorf("docs/lua.md has a table %q that nobody knows", m[2])
		}
		seen[m[2]] = true
		return m[1] + t + m[3]
	})
	if unknown != nil {
		return "", unknown
	}
	for _, name := range tableNames {
		if !seen[name] {
			return "", fmt.Errorf("docs/lua.md has no table %q; put it between <!-- api: %s --> and <!-- api end -->", name, name)
		}
	}
	return out, nil
}

var tableNames = []string{"destinations", "actions", "verdicts", "globals", "row", "message", "held", "sent"}

func table(name string) string {
	switch name {
	case "destinations":
		return rows("destination", "", pick("Destination"))
	case "actions":
		return rows("action", "", pick("Action"))
	case "verdicts":
		return rows("verdict", "", pick("Verdict"))
	case "globals":
		return rows("name", "", pick(""))
	case "row":
		return rows("field", "r.", row)
	case "message":
		return rows("field", "msg.", message)
	case "held":
		return rows("field", "req.", held)
	case "sent":
		return rows("field", "", sent)
	}
	return ""
}

// pick gives the globals that are, or make, a value of a type; those that do
// neither of the three for "".
func pick(kind string) (out []Entry) {
	for _, g := range globals {
		made := g.Type
		if g.IsFunction() && len(g.Returns) > 0 {
			made = g.Returns[0]
		}
		switch made {
		case "Destination", "Action", "Verdict":
		default:
			made = ""
		}
		if made == kind {
			out = append(out, g)
		}
	}
	return out
}

func rows(title, prefix string, entries []Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | what it is |\n|---|---|\n", title)
	for _, e := range entries {
		call := ""
		if e.IsFunction() {
			var names []string
			for _, p := range e.Params {
				names = append(names, strings.TrimSuffix(p.Name, "?"))
			}
			call = "(" + strings.Join(names, ", ") + ")"
		}
		fmt.Fprintf(&b, "| `%s%s%s` | %s |\n", prefix, e.Name, call, e.Doc)
	}
	return b.String()
}
