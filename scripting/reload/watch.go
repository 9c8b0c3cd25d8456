package reload

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	settle = 50 * time.Millisecond  // content counts when two reads this far apart agree
	poll   = 500 * time.Millisecond // between reads when nothing is notified

	// A missing or empty file is usually an editor between two steps, so it
	// has to last longer.
	patience = 5

	maxFile = 1 << 20 // bytes
)

// ErrEmpty and ErrGone are wrapped by what the callback hears about a file that
// has no text.
var (
	ErrEmpty = errors.New("the file is empty")
	ErrGone  = errors.New("the file is gone")
)

// Watcher watches one file. Its callback runs on the watcher's goroutine, one
// call at a time.
type Watcher struct {
	path     string
	onChange func(text string, err error)
	notify   notifier // nil: poll only
	dir      os.FileInfo

	reported state // what the callback heard last
	seen     state // what was read last
	agree    int   // reads in a row that gave seen

	done    chan struct{}
	once    sync.Once
	running sync.Mutex // held by Run
}

// state is the content of the file, or why there is none.
type state struct {
	sum  [sha256.Size]byte
	text string
	err  string
	kind error
}

func (s state) same(o state) bool { return s.sum == o.sum && s.err == o.err }

// notifier is the part of fsnotify that is used.
type notifier interface {
	Add(dir string) error
	Remove(dir string) error
	Changes() <-chan fsnotify.Event
	Failures() <-chan error
	Close() error
}

type system struct{ *fsnotify.Watcher }

func (s system) Changes() <-chan fsnotify.Event { return s.Events }
func (s system) Failures() <-chan error         { return s.Errors }

// New returns a watcher whose Run calls onChange whenever the file's text
// becomes another than before; text is what the caller has loaded. With an
// error the file has no text now (missing, empty, unreadable): it is told once,
// and a return to any text is told again. The path's folder need not exist.
func New(path, text string, onChange func(text string, err error)) (*Watcher, error) {
	if path == "" {
		return nil, errors.New("there is no file to watch: the router is embedded; edit it first, which copies it")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("router file %s: %w", path, err)
	}
	var n notifier // none on a system that has no notifications left: the poll remains
	if w, err := fsnotify.NewWatcher(); err == nil {
		n = system{w}
	}
	return newWatcher(abs, text, onChange, n), nil
}

func newWatcher(path, text string, onChange func(string, error), n notifier) *Watcher {
	w := &Watcher{path: path, onChange: onChange, notify: n, done: make(chan struct{})}
	w.reported = textState(text)
	w.seen = w.reported
	w.follow()
	return w
}

// Close stops watching and waits for a running callback; it must not be called
// from the callback.
func (w *Watcher) Close() {
	w.once.Do(func() { close(w.done) })
	w.running.Lock()
	defer w.running.Unlock()
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// Run watches until Close.
func (w *Watcher) Run() {
	w.running.Lock()
	defer w.running.Unlock()
	var changes <-chan fsnotify.Event
	var failures <-chan error
	if w.notify != nil {
		changes, failures = w.notify.Changes(), w.notify.Failures()
	}
	base := filepath.Base(w.path)
	next := time.NewTimer(settle) // the first read follows at once: the file may have changed since it was loaded
	defer next.Stop()
	for {
		select {
		case <-w.done:
			return
		case e, ok := <-changes:
			if !ok {
				changes = nil
			} else if filepath.Base(e.Name) == base && e.Op != fsnotify.Chmod {
				w.agree = 0
				next.Reset(settle)
			}
		case _, ok := <-failures: // an overflow: something was lost, so look
			if !ok {
				failures = nil
			} else {
				next.Reset(settle)
			}
		case <-next.C:
			if w.look() {
				next.Reset(settle)
			} else {
				w.follow()
				next.Reset(poll)
			}
		}
	}
}

// look reads the file and reports what has settled. It says whether the content
// still has to settle.
func (w *Watcher) look() bool {
	now := read(w.path)
	if now.same(w.seen) {
		w.agree++
	} else {
		w.seen, w.agree = now, 1
	}
	if now.same(w.reported) {
		return false
	}
	need := 2
	if now.err != "" {
		need = patience
	}
	if w.agree < need {
		return true
	}
	w.reported = now
	if now.err != "" {
		w.onChange("", fmt.Errorf("router file %s: %w", w.path, now.kind))
	} else {
		w.onChange(now.text, nil)
	}
	return false
}

// follow keeps the notifications on the folder that the path names now: it may
// have been created, replaced, or be a symlink that points elsewhere.
func (w *Watcher) follow() {
	if w.notify == nil {
		return
	}
	dir := filepath.Dir(w.path)
	info, err := os.Stat(dir)
	if err != nil {
		w.dir = nil
		return
	}
	if w.dir != nil && os.SameFile(info, w.dir) {
		return
	}
	if w.dir != nil {
		_ = w.notify.Remove(dir) // it may be gone, which is as good
	}
	if w.notify.Add(dir) == nil {
		w.dir = info
	}
}

func textState(text string) state {
	if strings.TrimSpace(text) == "" {
		return state{err: "empty", kind: ErrEmpty}
	}
	return state{sum: sha256.Sum256([]byte(text)), text: text}
}

func read(path string) state {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would block
		err := errors.New("it is no regular file")
		return state{err: err.Error(), kind: err}
	}
	f, err := os.Open(path)
	if err != nil {
		return failure(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return failure(err)
	}
	if len(b) > maxFile {
		err := fmt.Errorf("the file has more than %d bytes; a router is a small text file", maxFile)
		return state{err: err.Error(), kind: err}
	}
	return textState(string(b))
}

func failure(err error) state {
	if errors.Is(err, fs.ErrNotExist) {
		return state{err: "gone", kind: ErrGone}
	}
	return state{err: err.Error(), kind: err}
}
