package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"tokenrouter/runtime/ladder"
)

// keepVersion is of the file that --keep writes: a line with what the ladder is
// of, then a line for each run. A line that a kill cut short is written anew.
const keepVersion = 1

// keepHead is the first line.
type keepHead struct {
	Ladder int             `json:"ladder"`
	About  json.RawMessage `json:"about"`
}

// keeper appends runs to a file. A nil one keeps nothing.
type keeper struct{ file *os.File }

// openKeeper opens the file of --keep and gives the runs that it has. They must be
// of the very same ladder: anything else would set figures side by side that
// differ in more than the rung.
func openKeeper(name string, about *aboutJSON, g ladder.Grid) (*keeper, []ladder.Cell, error) {
	if name == "" {
		return nil, nil, nil
	}
	fail := func(err error) (*keeper, []ladder.Cell, error) { return nil, nil, fmt.Errorf("--keep: %w", err) }
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() { // a device may have no end
		return fail(fmt.Errorf("%s is no file that runs can be kept in; name another one", name))
	}
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	is, err := json.Marshal(about)
	if err != nil {
		return fail(err)
	}
	cells, whole, err := readKept(name, data, is, g)
	if err != nil {
		return fail(err)
	}
	// Lines are appended, so that two ladders that keep in one file at the same time
	// do not write over each other.
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fail(err)
	}
	k := &keeper{file}
	if whole < len(data) {
		err = file.Truncate(int64(whole))
	}
	if err == nil && whole == 0 {
		err = k.line(keepHead{keepVersion, is})
	}
	if err != nil {
		return fail(errors.Join(err, file.Close()))
	}
	return k, cells, nil
}

// readKept reads runs of the grid, and says up to where the data are whole lines.
func readKept(name string, data, is []byte, g ladder.Grid) (cells []ladder.Cell, whole int, err error) {
	wanted := map[string]bool{}
	for _, s := range g.Order() {
		wanted[s.String()] = true
	}
	strange := fmt.Errorf("%s is no file of a ladder; name another one", name)
	for n := 1; ; n++ {
		line, _, ok := bytes.Cut(data[whole:], []byte("\n"))
		if !ok {
			// A file without a line is taken over only if it begins as this ladder's.
			if head, err := json.Marshal(keepHead{keepVersion, is}); n == 1 && (err != nil || !bytes.HasPrefix(head, data)) {
				return nil, 0, strange
			}
			return cells, whole, nil
		}
		if n == 1 {
			var head keepHead
			if err := json.Unmarshal(line, &head); err != nil || head.Ladder == 0 {
				return nil, 0, strange
			}
			if head.Ladder != keepVersion {
				return nil, 0, fmt.Errorf("%s has format %d, this program writes %d; name another file", name, head.Ladder, keepVersion)
			}
			if !bytes.Equal(head.About, is) {
				return nil, 0, fmt.Errorf("%s has runs of another ladder (%s); name another file", name, differs(head.About, is))
			}
		} else {
			var c ladder.Cell
			if err := json.Unmarshal(line, &c); err != nil {
				return nil, 0, fmt.Errorf("%s, line %d: %w; take the line out, and its run is made again", name, n, err)
			}
			if s := (ladder.Setting{Rung: ladder.Rung{Name: c.Rung}, N: c.N, Seed: c.Seed}); wanted[s.String()] {
				cells = append(cells, c)
			}
		}
		whole += len(line) + 1
	}
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

// add appends a run.
func (k *keeper) add(c *ladder.Cell) error {
	if k == nil {
		return nil
	}
	if err := k.line(c); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	return nil
}

func (k *keeper) line(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(data, '\n'))
	return err
}

func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	return k.file.Close()
}
