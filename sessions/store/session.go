package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"tokenrouter/sessions/format"
)

// Names within a session folder.
const (
	manifestName = "manifest.json"
	tapeName     = "tape.trlog"
	vocabName    = "vocab.zst"
	routersName  = "routers"
)

// DefaultMaxBytes is the size cap of a tape if none is given.
const DefaultMaxBytes = 2 << 30

// stamp begins a folder's name: when the session began, local time.
const stamp = "20060102-150405"

// Options of a new session.
type Options struct {
	Vocab    [][]byte // the bytes of every token id, so that export needs no model
	MaxBytes int64    // size cap of the tape, 0 = DefaultMaxBytes
	// Steady fills every frame however long that takes, so that the same records
	// make the same file. A process that is killed loses the frame being filled.
	Steady bool
	// Go starts the recorder's goroutine; nil = a plain one.
	Go func(func())
}

// Session is a session being recorded. Its methods may be called from any
// goroutine.
type Session struct {
	dir      string
	file     *os.File
	max      int64
	steady   bool
	spawn    func(func())
	bytes    atomic.Int64
	records  atomic.Uint64
	stopped  atomic.Pointer[string]
	stop     chan struct{}
	done     chan struct{} // nil until Record
	once     sync.Once
	closeErr error

	manifest Manifest // written by Create and Close
	rec      recorder // the recorder's goroutine; Close after it
}

// Create makes a new session folder below dir, which it makes if need be, and
// writes all that is known before the run. m.Format, m.TapeFormat and m.Closed
// are set here.
func Create(dir string, m Manifest, o Options) (*Session, error) {
	s, err := create(dir, m, o)
	if err != nil {
		return nil, fmt.Errorf("no session can be written to %s (%s): choose another folder with --sessions DIR", dir, reason(err))
	}
	return s, nil
}

func create(dir string, m Manifest, o Options) (*Session, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path, err := newFolder(dir, &m)
	if err != nil {
		return nil, err
	}
	s, err := fill(path, m, o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return s, nil
}

// newFolder makes <YYYYMMDD-HHMMSS>-<router>-<4 hex digits>.
func newFolder(dir string, m *Manifest) (string, error) {
	stem := m.StartedAt.Format(stamp) + "-" + stemOf(m.Router.File) + "-"
	for {
		var b [2]byte
		if _, err := rand.Read(b[:]); err != nil {
			return "", err
		}
		path := filepath.Join(dir, stem+hex.EncodeToString(b[:]))
		err := os.Mkdir(path, 0o700)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// stemOf makes a router's file name fit for a folder's name on every system.
func stemOf(file string) string {
	s := strings.TrimSuffix(filepath.Base(file), ".lua")
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, s)
	if s = strings.Trim(s, "_"); s == "" {
		s = "router"
	}
	return s[:min(len(s), 32)]
}

func fill(path string, m Manifest, o Options) (*Session, error) {
	m.Format, m.TapeFormat, m.Closed = ManifestVersion, format.Version, nil
	s := &Session{dir: path, max: o.MaxBytes, steady: o.Steady, spawn: o.Go, manifest: m, stop: make(chan struct{})}
	if s.max <= 0 {
		s.max = DefaultMaxBytes
	}
	if s.spawn == nil {
		s.spawn = func(f func()) { go f() }
	}
	if err := m.write(path); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(path, routersName), 0o700); err != nil {
		return nil, err
	}
	vocab, err := encodeVocab(o.Vocab)
	if err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(path, vocabName), vocab); err != nil {
		return nil, err
	}
	if err := s.rec.init(s); err != nil {
		return nil, err
	}
	if err := s.rec.saveRouter(m.Router.Hash, m.Router.Text); err != nil {
		return nil, err
	}
	s.file, err = os.OpenFile(filepath.Join(path, tapeName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := s.writeHeader(); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

func (s *Session) writeHeader() error {
	n, err := s.file.Write(format.Header())
	if err != nil {
		return err
	}
	s.bytes.Store(int64(n))
	return s.file.Sync()
}

// Path is the session's folder.
func (s *Session) Path() string { return s.dir }

// Name is the session folder's name, by which it is found again.
func (s *Session) Name() string { return filepath.Base(s.dir) }

// Bytes is the size of the tape on disk.
func (s *Session) Bytes() int64 { return s.bytes.Load() }

// Records is the number of records on disk.
func (s *Session) Records() uint64 { return s.records.Load() }

// Stopped says why recording has ended before the run, empty while it goes on.
func (s *Session) Stopped() string {
	if why := s.stopped.Load(); why != nil {
		return *why
	}
	return ""
}

// reason is an error without the path that it stands next to.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
