package tensor

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Create makes a file that has its name only when it is complete: it is written
// beside its place, and removed where that fails.
func Create(path string, write func(w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644) // a temporary file is its owner's alone
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first fault is the one to tell
	}
	return err
}
