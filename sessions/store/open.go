package store

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/format"
)

// Opened is a session on disk. It holds no open files and may be read as often
// as one likes, also while another process still records it: then it ends where
// it ended when it was opened.
type Opened struct {
	Path     string
	Manifest Manifest
	Report   Report
	tape     format.Summary
	opts     format.Options
}

// Report says how much of a session there is.
type Report struct {
	Closed  bool   // it ended in order
	Reason  string // with Closed: why it ended
	Stopped string // with Closed: why recording ended before the run
	Records uint64
	Bytes   int64 // of the tape that can be used
	LastAt  int64 // ns since the session began, of the last record
	Missing uint64
	virtual bool // its seconds are not those of the wall
	Cut     *format.Cut
}

// Whole says that nothing is missing: the session ended in order and all that
// was recorded is there.
func (r *Report) Whole() bool {
	return r.Closed && r.Stopped == "" && r.Missing == 0 && r.Cut == nil
}

// String is one sentence.
func (r *Report) String() string {
	var parts []string
	switch {
	case !r.Closed:
		last := "second"
		if r.virtual {
			last = "frame"
		}
		parts = append(parts, "the session was not closed, at most its last "+last+" is missing")
	case r.Stopped != "":
		parts = append(parts, "recording stopped before the run ended ("+r.Stopped+")")
	default:
		parts = append(parts, "the session was closed ("+r.Reason+")")
	}
	if r.Cut != nil {
		parts = append(parts, r.Cut.Error())
	}
	if r.Missing > 0 {
		parts = append(parts, fmt.Sprintf("%d records are missing", r.Missing))
	}
	last := "it holds no record"
	if r.Records > 0 {
		last = fmt.Sprintf("last of %d records at %.1f s", r.Records, time.Duration(r.LastAt).Seconds())
	}
	return strings.Join(append(parts, last), "; ")
}

// Open reads a session's manifest and checks its tape. A tape that ends in the
// middle of a frame, as a killed process leaves it, or that is damaged, is
// opened up to there; Report says what was cut. Newer formats and, as this is
// strict reading, unknown fields are errors.
func Open(path string) (*Opened, error) { return OpenWith(path, format.Options{}) }

// OpenWith is Open with a choice how to read what this program does not know.
func OpenWith(path string, opts format.Options) (*Opened, error) {
	m, err := readManifest(filepath.Join(path, manifestName), opts)
	if err != nil {
		return nil, err
	}
	o := &Opened{Path: path, Manifest: m, opts: opts}
	if o.tape, err = scan(o.tapePath()); err != nil {
		return nil, fmt.Errorf("the session %s cannot be read: %w", path, err)
	}
	t := &o.tape
	o.Report = Report{Records: t.Records, Bytes: t.Good, LastAt: t.LastAt, Missing: t.Missing, Cut: t.Cut, virtual: m.Clock == "sim"}
	if c := m.Closed; c != nil {
		r := &o.Report
		r.Closed, r.Reason, r.Stopped = true, c.Reason, c.Stopped
		if t.Cut == nil && c.Records > t.Records {
			r.Missing += c.Records - t.Records
		}
	}
	return o, nil
}

func (o *Opened) tapePath() string { return filepath.Join(o.Path, tapeName) }

func scan(path string) (format.Summary, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return format.Summary{}, fmt.Errorf("it holds no %s", tapeName)
	}
	if err != nil {
		return format.Summary{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return format.Summary{}, err
	}
	return format.Scan(f, st.Size())
}

// Records yields all records that can be read, in order. An error ends the
// sequence; a cut tail is no error, see Report.
func (o *Opened) Records() iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		f, err := os.Open(o.tapePath())
		if err != nil {
			yield(tape.Record{}, fmt.Errorf("the session %s cannot be read: %w", o.Path, err))
			return
		}
		defer f.Close()
		for r, err := range format.Records(f, o.tape, o.opts) {
			if err != nil {
				err = fmt.Errorf("the session %s cannot be read: %w", o.Path, err)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Vocab is the bytes of every token id.
func (o *Opened) Vocab() ([][]byte, error) {
	path := filepath.Join(o.Path, vocabName)
	b, err := readLimited(path, maxVocabBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the session %s holds no %s: its tokens have no text", o.Path, vocabName)
	}
	if err != nil {
		return nil, fmt.Errorf("the vocabulary cannot be read: %w", err)
	}
	v, err := decodeVocab(b)
	if err != nil {
		return nil, fmt.Errorf("the vocabulary %s is damaged: %w", path, err)
	}
	return v, nil
}

const maxRouter = 16 << 20

// RouterText is the text of a router that decided in this session.
func (o *Opened) RouterText(hash string) (string, error) {
	if hash == o.Manifest.Router.Hash {
		return o.Manifest.Router.Text, nil
	}
	if !plain(hash) {
		return "", fmt.Errorf("%q is no router's hash", hash)
	}
	b, err := readLimited(filepath.Join(o.Path, routersName, hash+".lua"), maxRouter)
	if err != nil {
		return "", fmt.Errorf("the session %s holds no router %s (%s)", o.Path, hash, reason(err))
	}
	return string(b), nil
}
