//go:build unix

package tensor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := os.WriteFile(at("file"), []byte("12345"), 0o600)
	if err == nil {
		err = unix.Mkfifo(at("pipe"), 0o600)
	}
	if err == nil {
		err = os.Symlink("/dev/zero", at("device"))
	}
	if err == nil {
		err = os.Mkdir(at("folder"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	fsys := os.DirFS(dir)
	if b, err := ReadFile(fsys, "file", 5); string(b) != "12345" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	for name, want := range map[string]string{
		"file": "more than the limit of 4", "pipe": "not a regular file", "device": "not a regular file",
		"folder": "not a regular file", "none": "no such file",
	} {
		if b, err := ReadFile(fsys, name, 4); b != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", name, b, err, want)
		}
	}
}
