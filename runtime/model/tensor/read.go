package tensor

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
)

// ReadFile reads a file that stands beside weights, of at most limit bytes. What
// is no regular file is refused: a pipe would wait for its writer, a device may
// have no end.
func ReadFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	// Looked at before it is opened: opening a pipe would wait, too.
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d: the file is damaged", name, info.Size(), limit)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if n, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	} else if n > limit {
		return nil, fmt.Errorf("%s has more than the limit of %d bytes: the file is damaged", name, limit)
	}
	return b.Bytes(), nil
}
