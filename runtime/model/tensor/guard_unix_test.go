//go:build unix

package tensor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mapFile maps a file of n bytes.
func mapFile(t *testing.T, n int) (string, *Mapping) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Map(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return path, m
}

// A file that is cut while it is mapped is an error, read by whatever means.
func TestGuardNamesTheFile(t *testing.T) {
	for name, read := range map[string]func(b []byte) byte{
		"byte": func(b []byte) byte { return b[1<<16-1] },
		"copy": func(b []byte) byte { return append([]byte(nil), b...)[0] },
		"text": func(b []byte) byte { return string(b)[0] },
	} {
		path, m := mapFile(t, 1<<16)
		_, other := mapFile(t, 1<<16)
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		sum := byte(0)
		err := Guard(func() error { sum += read(other.Data) + read(m.Data); return nil })
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %d", name, err, sum)
		}
	}
}

func TestGuardPassesOn(t *testing.T) {
	want := errors.New("an error")
	if err := Guard(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
	var nothing *Mapping
	for _, f := range []func(){func() { panic("a panic") }, func() { _ = nothing.Data[0] }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a panic that no file is to blame for is gone")
				}
			}()
			_ = Guard(func() error { f(); return nil })
		}()
	}
}
