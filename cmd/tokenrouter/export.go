package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"tokenrouter/sessions/export"
	"tokenrouter/sessions/store"
	"tokenrouter/tui/frame"
)

// exportCmd writes a session in another form.
type exportCmd struct {
	Session  string `arg:"" help:"Session: a folder, the name of one, the beginning of a name, or latest."`
	Format   string `default:"jsonl" enum:"jsonl,perfetto" help:"jsonl (a row per token) or perfetto (a trace for ui.perfetto.dev)."`
	Out      string `short:"o" placeholder:"FILE" help:"Where to write; - is standard output (default: a file in the session's folder)."`
	Sessions string `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
}

func (e *exportCmd) Run() error {
	path, err := findSession(e.Sessions, e.Session)
	if err != nil {
		return err
	}
	s, err := openSession(path)
	if err != nil {
		return err
	}
	out, err := writeExport(s, e.Format, e.Out)
	if err != nil {
		return err
	}
	if out != "-" {
		fmt.Println(out)
	}
	return nil
}

const perfetto = "perfetto"

// exportName is where an export goes unless told otherwise.
var exportName = map[string]string{"jsonl": "tokens.jsonl", perfetto: "trace.json"}

// writeExport writes s and returns the path written. A file appears whole or
// not at all.
func writeExport(s *store.Opened, format, out string) (string, error) {
	write := export.JSONL
	if format == perfetto {
		write = export.Perfetto
	}
	if out == "-" {
		return out, into(os.Stdout, "standard output", func(w io.Writer) error { return write(w, s) })
	}
	if out == "" {
		out = filepath.Join(s.Path, exportName[format])
	}
	return out, writeWhole(out, func(w io.Writer) error { return write(w, s) })
}

func writeWhole(path string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return writeThrough(path, write)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".export-*")
	if err != nil {
		return unwritable(path, err)
	}
	defer os.Remove(f.Name())
	err = into(f, path, write)
	if e := errors.Join(f.Chmod(0o644), f.Close()); err == nil && e != nil {
		err = unwritable(path, e)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return unwritable(path, err)
	}
	return nil
}

// writeThrough writes to what is there: a device or a pipe must not be replaced
// by a file.
func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return unwritable(path, err)
	}
	return errors.Join(into(f, path, write), f.Close())
}

// sink remembers why it could not be written.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// into tells an error of the place that is written to from one of the session.
func into(w io.Writer, place string, write func(io.Writer) error) error {
	to := &sink{w: w}
	err := write(to)
	if to.err != nil {
		return unwritable(place, to.err)
	}
	return err
}

func unwritable(place string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the path in it may be that of a file under way
	}
	return fmt.Errorf("%s cannot be written (%w); choose another place with --out FILE", place, err)
}

// findSession is the folder of the session that a person names.
func findSession(flag, name string) (string, error) {
	dir, err := sessionsDir(flag)
	if err != nil {
		return "", err
	}
	path, err := store.Find([]string{dir}, name)
	return path, usage(err)
}

// openSession opens a session and says on standard error what it lacks.
func openSession(path string) (*store.Opened, error) {
	s, err := store.Open(path)
	if err == nil && !s.Report.Whole() {
		fmt.Fprintln(os.Stderr, "tokenrouter:", s.Report.String())
	}
	return s, err
}

// sessionsDir is where sessions are: as --sessions says, or the user's folder.
func sessionsDir(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	return store.DefaultDir()
}

// sessionsCmd lists recorded sessions.
type sessionsCmd struct {
	Sessions string `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
}

func (s *sessionsCmd) Run() error {
	dir, err := sessionsDir(s.Sessions)
	if err != nil {
		return err
	}
	list, err := store.List(dir)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintf(os.Stderr, "no sessions in %s; tokenrouter or tokenrouter run records one\n", dir)
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTARTED\tMODELS\tROUTER\tSIZE\tSTATE")
	for _, e := range list {
		printEntry(w, &e)
	}
	return w.Flush()
}

func printEntry(w io.Writer, e *store.Entry) {
	if e.Err != nil {
		fmt.Fprintf(w, "%s\t\t\t\t\t%v\n", e.Name, e.Err)
		return
	}
	m := &e.Manifest
	models := ""
	for i, md := range m.Models {
		if i > 0 {
			models += "+"
		}
		models += md.Name
	}
	state := "open, or ended without closing"
	if m.Closed != nil {
		state = m.Closed.Reason + " after " + time.Duration(m.Closed.Duration).Round(time.Second).String()
		if why := m.Closed.Stopped; why != "" {
			state += ", recording stopped before (" + why + ")"
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, m.StartedAt.Format(time.DateTime), frame.Clean(models, false),
		frame.Clean(routerLabel(m.Router.File, m.Router.Hash), false), sizeText(e.Bytes), state)
}

// sizeText is a number of bytes as a person reads it.
func sizeText(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	x, suffix := float64(n)/unit, "KiB"
	for _, s := range []string{"MiB", "GiB"} {
		if x >= unit {
			x, suffix = x/unit, s
		}
	}
	return fmt.Sprintf("%.1f %s", x, suffix)
}
