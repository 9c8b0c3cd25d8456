package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"tokenrouter/algos"
	"tokenrouter/scripting/api"
	"tokenrouter/scripting/library"
)

// routersCmd lists the routers that can be named.
type routersCmd struct {
	Routers string `default:"routers" placeholder:"DIR" help:"Folder of your own routers (default: ${default})."`
	Types   string `placeholder:"DIR" help:"Instead of a list: write what a router sees, as LuaLS reads it, into a folder of routers, so that editors complete r. ; - is standard output."`
}

func (r *routersCmd) Run() error {
	switch r.Types {
	case "":
	case "-":
		_, err := os.Stdout.Write(api.Annotations())
		return err
	default:
		return writeTypes(os.Stdout, r.Types)
	}
	return listRouters(os.Stdout, library.Library{Dir: r.Routers, Embedded: algos.Routers()})
}

// listRouters writes a line per router: its name, what its first comment says of
// it, and the file of one that does not ship with the program.
func listRouters(to io.Writer, lib library.Library) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, e := range lib.List() {
		what := ""
		if _, text, _, err := lib.Resolve(e.Name); err != nil {
			what = err.Error()
		} else {
			what = aboutRouter(e.Name, text)
		}
		line := e.Name + "\t" + what
		if !e.Embedded {
			line += "\t" + e.Path
		}
		fmt.Fprintln(w, line)
	}
	return w.Flush()
}

// aboutRouter is the comment on a router's first line, without its name.
func aboutRouter(name, text string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(text, "\ufeff"), "\n")
	line, ok := strings.CutPrefix(strings.TrimSpace(line), "--")
	if !ok {
		return ""
	}
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line))
	if rest, ok := strings.CutPrefix(line, name+library.Ext); ok {
		if said, ok := strings.CutPrefix(strings.TrimSpace(rest), ":"); ok {
			line = strings.TrimSpace(said)
		}
	}
	if r := []rune(line); len(r) > 100 {
		line = string(r[:97]) + "..."
	}
	return line
}
