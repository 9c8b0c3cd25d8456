package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An export replaces a file as a whole, and only a file: a link goes on pointing
// where it does, and what is no file is written to.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	read := func(name string) string {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	isLink := func(name string) bool {
		st, err := os.Lstat(at(name))
		return err == nil && st.Mode()&fs.ModeSymlink != 0
	}
	link := func(to, name string) {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Skip("no links here:", err)
		}
	}
	for _, s := range []string{"first, longer", "second"} {
		if err := writeWhole(at("file"), text(s)); err != nil || read("file") != s {
			t.Errorf("%q was written, %v", read("file"), err)
		}
	}
	link("file", "link")
	if err := writeWhole(at("link"), text("third")); err != nil || !isLink("link") || read("file") != "third" {
		t.Errorf("through a link: %v, a link %v, the file holds %q", err, isLink("link"), read("file"))
	}
	link(os.DevNull, "null")
	if err := writeWhole(at("null"), text("lost")); err != nil || !isLink("null") {
		t.Errorf("to a device: %v, still a link %v", err, isLink("null"))
	}

	broken := errors.New("the session is damaged")
	if err := writeWhole(at("file"), func(io.Writer) error { return broken }); !errors.Is(err, broken) || strings.Contains(err.Error(), "written") {
		t.Errorf("an error of the session is told as %v", err)
	}
	for _, path := range []string{dir, at("none/file"), at("file/file")} {
		err := writeWhole(path, text("x"))
		if err == nil || !strings.HasPrefix(err.Error(), path+" cannot be written (") || !strings.HasSuffix(err.Error(), "choose another place with --out FILE") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := read("file"); got != "third" {
		t.Errorf("a failed export left %q", got)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// A place that takes no more is named once, with the cure.
func TestUnwritablePlace(t *testing.T) {
	r, w := io.Pipe()
	if err := r.CloseWithError(&fs.PathError{Op: "write", Path: "/tmp/.export-1", Err: errors.New("no space left on device")}); err != nil {
		t.Fatal(err)
	}
	err := into(w, "standard output", func(w io.Writer) error {
		_, first := io.WriteString(w, "a")
		_, second := io.WriteString(w, "b")
		return errors.Join(first, second)
	})
	want := "standard output cannot be written (no space left on device); choose another place with --out FILE"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
