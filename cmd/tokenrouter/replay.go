package main

import (
	"fmt"
	"path/filepath"

	"tokenrouter/sessions/replay"
	"tokenrouter/sessions/store"
)

// replayCmd feeds recorded events to fresh cores and tells where they decide
// otherwise.
type replayCmd struct {
	Session  []string `arg:"" help:"Sessions: a folder, the name of one, the beginning of a name, or latest."`
	Sessions string   `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
}

func (c *replayCmd) Run() error {
	var paths []string
	for _, name := range c.Session {
		path, err := findSession(c.Sessions, name)
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	bad := 0
	for _, path := range paths {
		line, ok := replayLine(path)
		if !ok {
			bad++
		}
		if _, err := fmt.Println(filepath.Base(path), line); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d sessions do not replay equal", bad, len(paths))
	}
	return nil
}

// replayLine is what came of replaying the session at path, and whether its
// cores ordered the same again.
func replayLine(path string) (line string, equal bool) {
	s, err := store.Open(path)
	if err != nil {
		return err.Error(), false
	}
	r, err := replay.Session(s)
	if err != nil {
		return err.Error(), false
	}
	return r.String(), r.Equal()
}
