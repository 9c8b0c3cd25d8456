package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// keptVersion is of such files.
const keptVersion = 1

// openKept opens a file of runs of the given kind, and gives those that are wanted.
// Without a name nothing is kept.
func openKept[C any](name, kind string, about any, wanted func(*C) bool) (*keeper, []C, error) {
	if name == "" {
		return nil, nil, nil
	}
	var out []C
	k, err := keptForm{kind, keptVersion}.open(name, about, func(n int, line []byte) error {
		var c C
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("%s, line %d: %w; take the line out, and its run is made again", name, n, err)
		}
		if wanted(&c) {
			out = append(out, c)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return k, out, nil
}

// keptForm is a kind of file that runs are kept in while they are made: a line with
// what all of them are of, then a line for each run. The first line has the version
// under the name of the kind: {"ladder":1,"about":{...}}.
type keptForm struct {
	kind    string // ladder, sweep
	version int
}

// keeper appends runs to such a file. A nil one keeps nothing.
type keeper struct {
	file *os.File
	torn int // bytes of a line that a kill had cut short, taken away
}

// open opens the file and shows the runs that it has to each, with the number of
// their line. They must be of the very same thing: anything else would set figures
// side by side that differ in more than they say.
func (f keptForm) open(name string, about any, each func(n int, line []byte) error) (*keeper, error) {
	if err := plain(name); err != nil {
		return nil, fmt.Errorf("%w that runs can be kept in; name another one", err)
	}
	is, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, `{"%s":%d,"about":%s}`+"\n", f.kind, f.version, is)
	// Lines are appended, so that two programs that keep in one file at the same time
	// do not write over each other; and nobody reads, or takes for cut short, what the
	// other is writing.
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	lock(file)
	defer unlock(file)
	k, err := f.goOn(name, file, head, is, each)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return k, nil
}

// goOn reads what a file has and makes it ready for more.
func (f keptForm) goOn(name string, file *os.File, head, is []byte, each func(n int, line []byte) error) (*keeper, error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	whole, err := f.lines(name, data, func(n int, line []byte) error {
		if n > 1 {
			return each(n, line)
		}
		was, err := f.head(name, line)
		if err == nil && !bytes.Equal(was, is) {
			err = fmt.Errorf("%s has runs of another %s (%s); name another file", name, f.kind, differs(was, is))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// A file without a line is taken over only if it begins as this one does.
	if whole == 0 && !bytes.HasPrefix(head, data) {
		return nil, f.strange(name)
	}
	k := &keeper{file: file, torn: len(data) - whole}
	if k.torn > 0 {
		err = file.Truncate(int64(whole))
	}
	if err == nil && whole == 0 {
		err = k.write(head)
	}
	return k, err
}

// plain refuses what is there and no file with an end: a pipe would be waited for,
// a device may never end.
func plain(name string) error {
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", name)
	}
	return nil
}

// lines shows every whole line and says up to where the data are whole.
func (f keptForm) lines(name string, data []byte, each func(n int, line []byte) error) (whole int, err error) {
	for n := 1; ; n++ {
		line, _, ok := bytes.Cut(data[whole:], []byte("\n"))
		if !ok {
			return whole, nil
		}
		if err := each(n, line); err != nil {
			return whole, err
		}
		whole += len(line) + 1
	}
}

// head reads the first line.
func (f keptForm) head(name string, line []byte) (about json.RawMessage, err error) {
	var of map[string]json.RawMessage
	version := 0
	if json.Unmarshal(line, &of) != nil || of[f.kind] == nil || json.Unmarshal(of[f.kind], &version) != nil {
		return nil, f.strange(name)
	}
	if version != f.version {
		return nil, fmt.Errorf("%s has format %d, this program writes %d; name another file", name, version, f.version)
	}
	if of["about"] == nil {
		return nil, f.strange(name)
	}
	return of["about"], nil
}

func (f keptForm) strange(name string) error {
	return fmt.Errorf("%s is no file of a %s; name another one", name, f.kind)
}

// differs names the first key in which two descriptions differ.
func differs(a, b []byte) string {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(a, &was) != nil || json.Unmarshal(b, &is) != nil {
		return "its description is not readable"
	}
	var keys []json.Token
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		t, err := d.Token()
		if err != nil {
			break
		}
		keys = append(keys, t)
	}
	for _, t := range keys { // in the order of the description
		key, ok := t.(string)
		if v, known := is[key]; ok && known && !bytes.Equal(v, was[key]) {
			return fmt.Sprintf("%s is %s there and %s here", key, clipped(was[key]), clipped(v))
		}
	}
	return "it says more than this program"
}

func clipped(v json.RawMessage) string {
	const most = 60
	if len(v) > most {
		return string(v[:most]) + "..."
	}
	if len(v) == 0 {
		return "missing"
	}
	return string(v)
}

// append keeps a run. When it returns, the run is on disk.
func (k *keeper) append(v any) error {
	if k == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	lock(k.file)
	defer unlock(k.file)
	return k.write(append(data, '\n'))
}

func (k *keeper) write(line []byte) error {
	if _, err := k.file.Write(line); err != nil {
		return err
	}
	return k.file.Sync()
}

func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	return k.file.Close()
}
