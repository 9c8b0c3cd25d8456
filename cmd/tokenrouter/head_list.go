package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"tokenrouter/algos/head"
	"tokenrouter/tui/frame"
)

// headListCmd lists heads.
type headListCmd struct {
	headFlags
	JSON bool `help:"Print a JSON array."`
}

// listedHead is a line of the list, and its stable form in --json.
type listedHead struct {
	Name      string   `json:"name"`
	Shipped   bool     `json:"shipped"`
	Kind      string   `json:"kind"` // "" if it cannot be read
	Features  []string `json:"features"`
	Hidden    int      `json:"hidden"`
	Params    int64    `json:"parameters"`
	Meaning   string   `json:"meaning"`
	Threshold float64  `json:"threshold"` // 0: none was chosen
	Share     float64  `json:"share"`     // that it was chosen for
	Models    []string `json:"models"`    // "role hash"
	Data      string   `json:"data"`
	Error     string   `json:"error,omitempty"`
}

func (l *headListCmd) Run() error {
	lib, err := l.library()
	if err != nil {
		return usage(err)
	}
	var list []listedHead
	for _, name := range lib.Names() {
		m, shipped, err := lib.Manifest(name)
		h := listedHead{Name: name, Shipped: shipped}
		if err == nil && !shipped { // weights may be damaged, or those of another head
			_, err = lib.Get(name)
		}
		if err != nil {
			h.Error = err.Error()
		} else {
			h.fill(&m)
		}
		list = append(list, h)
	}
	if l.JSON {
		return printJSON(os.Stdout, list)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HEAD\tKIND\tREADS\tPARAMETERS\tHIGH MEANS\tTHRESHOLD\tSHARE\tWHERE")
	for i := range list {
		h := &list[i]
		where := cmp.Or(map[bool]string{true: "shipped"}[h.Shipped], frame.Clean(lib.Dir(), false))
		if h.Error != "" {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\t%s: cannot be used: %s\n", h.Name, where, frame.Clean(h.Error, false))
			continue
		}
		threshold, share := "-", "-"
		if h.Share > 0 {
			threshold, share = fmt.Sprintf("%.4g", h.Threshold), fmt.Sprintf("%.3g %%", 100*h.Share)
		}
		fmt.Fprintf(w, "%s\t%s\t%s of %d\t%s\t%s\t%s\t%s\t%s\n", h.Name, h.Kind, strings.Join(h.Features, "+"), h.Hidden, count(h.Params), h.Meaning, threshold, share, where)
	}
	return w.Flush()
}

func (h *listedHead) fill(m *head.Manifest) {
	h.Kind, h.Features, h.Hidden, h.Params = m.Spec.Kind, m.Spec.Features, m.Spec.Hidden, m.Spec.Params()
	h.Meaning, h.Threshold, h.Share, h.Data = m.Meaning, m.Threshold, m.Share, m.Data
	for role, hash := range m.Models {
		h.Models = append(h.Models, role+" "+hash)
	}
	slices.Sort(h.Models)
}
