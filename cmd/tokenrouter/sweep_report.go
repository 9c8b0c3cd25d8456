package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"tokenrouter/runtime/frontier"
)

// print shows the points that the file has of this sweep, and says which it lacks.
func (s *sweep) print(w io.Writer) error {
	var runs []frontier.Run
	for i := range s.plan {
		if r, ok := s.runs[s.plan[i].key()]; ok {
			runs = append(runs, r)
		}
	}
	missing := s.missing(s.plan)
	if len(runs) == 0 {
		return nil
	}
	t, err := s.cmd.table(runs, &s.about)
	if err != nil {
		if len(missing) > 0 { // the ends are not run yet: nothing can be held against them
			fmt.Fprintf(os.Stderr, "tokenrouter: %s so far, in %s\n", counted(len(runs), "point"), s.cmd.Out)
			return nil
		}
		return err
	}
	if err := s.cmd.print(w, t, s.about.head(t), &s.about); err != nil || s.cmd.JSON || s.cmd.CSV {
		return err
	}
	for i := range missing {
		fmt.Fprintf(w, "missing: %s\n", missing[i].key())
	}
	if s.made > 0 {
		fmt.Fprintf(w, "\n%s in %v; kept in %s\n", counted(s.made, "point"), s.wall.Round(100*time.Millisecond), s.cmd.Out)
	}
	return nil
}
