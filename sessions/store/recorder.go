package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/format"
)

// What waits in memory at most, and how often the disk is asked to make it last.
const (
	flushEvery = 200 * time.Millisecond
	syncEvery  = time.Second
)

// recorder moves records from the tape to the file. It belongs to one goroutine.
type recorder struct {
	s       *Session
	tape    *tape.Tape
	sub     *tape.Sub
	enc     *format.Encoder
	recs    []tape.Record
	frame   []byte
	lastAt  int64
	seen    uint64 // number of the last record read
	ended   bool   // a Closed record was read
	saved   map[string]bool
	leftOut uint64
	stopped string // why recording ended before the run
	removed bool   // because somebody removed what was recorded
	synced  time.Time
	unsync  bool // bytes were written since synced
}

func (r *recorder) init(s *Session) (err error) {
	r.s, r.saved = s, map[string]bool{}
	r.enc, err = format.NewEncoder()
	return err
}

// Record starts recording t from its present end, once per session. It never
// makes t's appender wait.
func (s *Session) Record(t *tape.Tape) {
	r := &s.rec
	r.tape, r.sub = t, t.Subscribe()
	s.done = make(chan struct{})
	s.spawn(r.run)
}

// run sleeps until something is recorded and then at most flushEvery, so an
// idle tape costs nothing and a busy one few wake-ups.
func (r *recorder) run() {
	defer close(r.s.done)
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	ready := r.sub.Ready()
	var flush, sync bool // what the timer was set for
	for {
		select {
		case <-ready:
			flush = true
		case <-timer.C:
			if flush {
				r.drain(r.tape.Seq())
				if !r.s.steady {
					r.write()
				}
				flush = false
			}
			if r.unsync && time.Since(r.synced) >= syncEvery {
				r.sync()
			}
			sync = r.unsync
		case <-r.s.stop:
			r.finish()
			return
		}
		switch {
		case r.stopped != "":
			ready, flush, sync = nil, false, false
			timer.Stop()
		case flush:
			ready = nil
			timer.Reset(flushEvery)
		default:
			ready = r.sub.Ready()
			if sync {
				timer.Reset(max(0, syncEvery-time.Since(r.synced)))
			}
		}
	}
}

// drain encodes the records up to number end.
func (r *recorder) drain(end uint64) {
	for r.stopped == "" && r.seen < end {
		r.recs = r.sub.Next(r.recs[:0], 256)
		if len(r.recs) == 0 {
			return
		}
		for i := range r.recs {
			rec := &r.recs[i]
			r.seen, r.lastAt = rec.Seq, rec.At
			r.note(rec)
			if err := r.enc.Append(rec); err != nil {
				r.leave(err)
			}
			if r.enc.Buffered() >= r.target() {
				r.write()
			}
		}
		clear(r.recs)
	}
}

// note looks at records that matter for more than the tape.
func (r *recorder) note(rec *tape.Record) {
	switch h := rec.Host.(type) {
	case *tape.Closed:
		r.ended = true
	case *tape.Router:
		if err := r.saveRouter(h.Hash, h.Text); err != nil {
			r.tell(tape.Warn, fmt.Sprintf("the router %s could not be written to %s (%s): its text is on the tape only",
				h.File, filepath.Join(r.s.dir, routersName), reason(err)))
		}
	}
}

// saveRouter writes a router's text under its hash, once.
func (r *recorder) saveRouter(hash, text string) error {
	if text == "" || r.saved[hash] || !plain(hash) {
		return nil
	}
	r.saved[hash] = true
	return writeFile(filepath.Join(r.s.dir, routersName, hash+".lua"), []byte(text))
}

// plain says that a hash is fit for a file's name.
func plain(hash string) bool {
	for _, c := range []byte(hash) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return hash != "" && len(hash) <= 128
}

// leave counts a record that cannot be stored, and says so the first time.
func (r *recorder) leave(err error) {
	r.leftOut++
	if r.leftOut == 1 {
		r.tell(tape.Warn, fmt.Sprintf("the session leaves out what it cannot store: %v", err))
	}
}

// minFrame is the least that a frame is sealed for, in raw bytes.
const minFrame = 4 << 10

// target is how many raw bytes make a frame. Near the cap frames get smaller, so
// that the tape ends where the cap is and not a large frame before it.
func (r *recorder) target() int {
	left := r.s.max - r.s.bytes.Load()
	return int(min(format.FrameTarget, max(minFrame, left/2)))
}

// write puts the gathered records on disk as one frame.
func (r *recorder) write() {
	n := r.enc.Pending()
	if n == 0 || r.stopped != "" {
		return
	}
	r.frame = r.enc.Seal(r.frame[:0])
	size := r.s.bytes.Load()
	if size+int64(len(r.frame)) > r.s.max {
		r.halt(tape.Warn, fmt.Sprintf("size cap of %s reached", sizeOf(r.s.max)),
			fmt.Sprintf("the session %s has reached its size cap of %s: recording has stopped, the run goes on; raise the cap with --session-cap",
				r.s.dir, sizeOf(r.s.max)))
		return
	}
	if _, err := r.s.file.Write(r.frame); err != nil {
		r.fail(err)
		return
	}
	r.s.bytes.Store(size + int64(len(r.frame)))
	r.s.records.Add(uint64(n))
	r.unsync = true
}

func (r *recorder) sync() {
	r.synced, r.unsync = time.Now(), false
	if err := r.s.file.Sync(); err != nil {
		r.fail(err)
		return
	}
	r.look()
}

// look ends a recording that nobody could ever read: whoever removes the folder
// takes the tape's name away while writing to it goes on without an error.
func (r *recorder) look() {
	at, err := os.Stat(filepath.Join(r.s.dir, tapeName))
	mine, e := r.s.file.Stat()
	if e != nil || err == nil && os.SameFile(at, mine) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	r.removed = true
	r.halt(tape.Error, "its tape was removed",
		fmt.Sprintf("the tape of the session %s was removed: recording has stopped, the run goes on; start again to record", r.s.dir))
}

// fail ends recording after an error of the disk. What was written before
// stays; a half written frame is taken back where the disk lets us.
func (r *recorder) fail(err error) {
	text := fmt.Sprintf("the session %s can no longer be written (%s): recording has stopped, the run goes on; make room there or start again with --sessions DIR",
		r.s.dir, reason(err))
	if err := r.s.file.Truncate(r.s.bytes.Load()); err != nil {
		text += "; its last frame may be incomplete"
	}
	r.halt(tape.Error, reason(err), text)
}

func (r *recorder) halt(level tape.Level, why, text string) {
	r.stopped = why
	r.s.stopped.Store(&why)
	r.sub.Close()
	r.tell(level, text)
}

func (r *recorder) tell(level tape.Level, text string) {
	r.tape.AppendHost(r.lastAt, event.None, &tape.Message{Level: level, Text: text})
}

// finish records what was appended until Close was called, and a Closed record
// behind it unless the run has left one.
func (r *recorder) finish() {
	r.drain(r.tape.Seq())
	if !r.ended && r.stopped == "" {
		r.tape.AppendHost(r.lastAt, event.None, &tape.Closed{Reason: r.s.manifest.Closed.Reason})
		r.drain(r.tape.Seq())
	}
	r.write()
	if r.stopped == "" {
		r.look()
	}
	r.sub.Close()
}

// Close records everything appended so far, writes the manifest's final state
// and ends the session. reason is quit, done, error: ... Later calls do nothing
// and return the same.
func (s *Session) Close(reason string) error {
	s.once.Do(func() {
		s.manifest.Closed = &Closed{Reason: reason}
		if s.done != nil {
			close(s.stop)
			<-s.done
		}
		if err := s.end(); err != nil {
			s.closeErr = fmt.Errorf("the session %s could not be closed in order (%w): it stays readable up to its last complete frame", s.dir, err)
		}
	})
	return s.closeErr
}

func (s *Session) end() error {
	err := s.file.Sync()
	if e := s.file.Close(); err == nil {
		err = e
	}
	if s.rec.stopped != "" {
		err = nil // the run was told when it happened
	}
	c := s.manifest.Closed
	c.At = time.Now()
	c.Records, c.Bytes = s.Records(), s.Bytes()
	c.Duration, c.LeftOut, c.Stopped = s.rec.lastAt, s.rec.leftOut, s.rec.stopped
	e := s.manifest.write(s.dir)
	if s.rec.removed && errors.Is(e, fs.ErrNotExist) {
		e = nil // with the whole folder
	}
	return errors.Join(err, e)
}

// sizeOf prints bytes in the largest unit that divides them or fits them.
func sizeOf(n int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.n {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(u.n), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
