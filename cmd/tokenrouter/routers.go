package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"tokenrouter/algos"
	"tokenrouter/scripting/library"
)

// routersCmd lists the routers that can be named.
type routersCmd struct {
	Routers string `default:"routers" placeholder:"DIR" help:"Folder of your own routers (default: ${default})."`
}

func (r *routersCmd) Run() error {
	lib := library.Library{Dir: r.Routers, Embedded: algos.Routers()}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, e := range lib.List() {
		where := e.Path
		if e.Embedded {
			where = "ships with the program"
		}
		fmt.Fprintf(w, "%s\t%s\n", e.Name, where)
	}
	return w.Flush()
}
