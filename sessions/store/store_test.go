package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/format"
	"tokenrouter/sessions/tapetest"
)

func manifest() Manifest {
	return Manifest{
		Program:   "tokenrouter test",
		StartedAt: time.Date(2026, 3, 4, 5, 6, 7, 89, time.Local),
		Models: []Model{
			{Role: "small", Name: "tiny-37k", Hash: "ab12", Params: 37000, Vocab: "ff00"},
			{Role: "large", Name: "own-30m", Hash: "cd34", Params: 30000000, Vocab: "ff00", Path: "/m/own-30m.gguf", Weights: "q8", KV: "f16"},
		},
		Router:      Router{File: "r2r.lua", Hash: tapetest.HashBefore, Text: "return"},
		Params:      map[string]float64{"threshold": 0.5},
		Seed:        math.MaxUint64,
		Policy:      PolicyOf(&event.Policy{Kind: event.Fixed, B: []int{1, 3}, W: 55e6}),
		Clock:       "paced",
		Profile:     "a100-r2r",
		Concurrency: 4,
		Workload:    Workload{Source: "problems"},
		Machine:     ThisMachine(),
	}
}

var vocab = [][]byte{{}, []byte("\n"), {0xe3, 0x81}, []byte("\"\x00,"), []byte(" und")}

func newSession(t testing.TB, o Options) *Session {
	t.Helper()
	s, err := Create(t.TempDir(), manifest(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close("test over") })
	return s
}

func open(t testing.TB, path string) *Opened {
	t.Helper()
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func records(t testing.TB, o *Opened) (out []tape.Record) {
	t.Helper()
	for r, err := range o.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func realTape(t testing.TB, requests int) []tape.Record {
	t.Helper()
	recs, _, err := tapetest.Run(tapetest.Config{Requests: requests, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func TestSessionComesBack(t *testing.T) {
	recs := realTape(t, 6)
	s := newSession(t, Options{Vocab: vocab})
	tp := tape.New()
	s.Record(tp)
	tp.Append(recs...)
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close("again"); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^20260304-050607-r2r-[0-9a-f]{4}$`).MatchString(s.Name()) {
		t.Errorf("the folder is called %s", s.Name())
	}
	o := open(t, s.Path())
	got := records(t, o)
	if diff := cmp.Diff(recs, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
	m := o.Manifest
	c := m.Closed
	if c == nil || c.Reason != "done" || c.Records != uint64(len(recs)) || c.Bytes != s.Bytes() || c.Duration != recs[len(recs)-1].At {
		t.Errorf("closed %+v", c)
	}
	if st, err := os.Stat(filepath.Join(s.Path(), tapeName)); err != nil || st.Size() != s.Bytes() || s.Records() != c.Records {
		t.Errorf("the tape has %v bytes, Bytes says %d, Records %d; %v", st.Size(), s.Bytes(), s.Records(), err)
	}
	want := manifest()
	want.Format, want.TapeFormat, want.Closed = ManifestVersion, format.Version, c
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	if m.Machine.CPUs < 1 || m.Machine.OS != runtime.GOOS || m.Machine.Kernels != cpu.Current().String() {
		t.Errorf("machine %+v", m.Machine)
	}
	v, err := o.Vocab()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vocab, v); diff != "" {
		t.Error(diff)
	}
	for hash, text := range map[string]string{tapetest.HashBefore: "return", tapetest.HashAfter: "return 0"} {
		if got, err := o.RouterText(hash); err != nil || got != text {
			t.Errorf("router %s is %q, %v", hash, got, err)
		}
		if b, err := os.ReadFile(filepath.Join(s.Path(), routersName, hash+".lua")); err != nil || string(b) != text {
			t.Errorf("router file %s is %q, %v", hash, b, err)
		}
	}
	for _, hash := range []string{"0000", "../manifest", ""} {
		if text, err := o.RouterText(hash); err == nil {
			t.Errorf("router %q is %q", hash, text)
		}
	}
	if !o.Report.Whole() || !strings.Contains(o.Report.String(), "closed (done); last of") {
		t.Errorf("report: %s", &o.Report)
	}
}

// Close leaves one Closed record whether or not the run left one.
func TestClosedRecord(t *testing.T) {
	for _, by := range []string{"run", "recorder"} {
		s := newSession(t, Options{})
		tp := tape.New()
		s.Record(tp)
		tp.AppendHost(7, event.None, &tape.Message{Level: tape.Info, Text: "hello"})
		if by == "run" {
			tp.AppendHost(8, event.None, &tape.Closed{Reason: "quit"})
		}
		if err := s.Close("quit"); err != nil {
			t.Fatal(err)
		}
		got := records(t, open(t, s.Path()))
		if len(got) != 2 {
			t.Fatalf("%s: %d records", by, len(got))
		}
		if c, ok := got[1].Host.(*tape.Closed); !ok || c.Reason != "quit" {
			t.Errorf("%s: last record %+v", by, got[1].Host)
		}
	}
}

// Records are on disk within a quarter of a second, without one write each.
func TestFlushedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, Options{})
		tp := tape.New()
		s.Record(tp)
		const quarter = 250 * time.Millisecond
		n := 0
		for range 20 {
			for range 40 {
				tp.Append(tape.Record{Kind: tape.KindLoad, Load: &tape.Load{Ready: n}})
				n++
			}
			time.Sleep(quarter)
			synctest.Wait()
			o := open(t, s.Path())
			if o.Report.Records != uint64(n) || s.Records() != uint64(n) {
				t.Fatalf("%d of %d records are on disk", o.Report.Records, n)
			}
		}
		size := s.Bytes()
		time.Sleep(time.Hour)
		if s.Bytes() != size {
			t.Error("an idle tape grows on disk")
		}
		tp.Append(tape.Record{Kind: tape.KindLoad, Load: &tape.Load{}})
		time.Sleep(quarter)
		synctest.Wait()
		if s.Records() != uint64(n+1) {
			t.Error("nothing is recorded after an idle hour")
		}
		if o := open(t, s.Path()); o.tape.Frames != 21 {
			t.Errorf("%d frames for 21 bursts", o.tape.Frames)
		}
		if err := s.Close("done"); err != nil {
			t.Error(err)
		}
	})
}

// Several subservers append at once; all of it is recorded.
func TestConcurrentAppenders(t *testing.T) {
	s := newSession(t, Options{})
	tp := tape.New()
	s.Record(tp)
	const cores, each = 4, 2000
	var wg sync.WaitGroup
	for c := range cores {
		wg.Go(func() {
			for i := range each {
				tp.Append(tape.Record{Core: event.Peer(c), At: int64(i), Kind: tape.KindLoad, Load: &tape.Load{Ready: i}})
			}
		})
	}
	wg.Wait()
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	var next [cores]int
	for _, r := range records(t, open(t, s.Path())) {
		if r.Load != nil {
			if r.Load.Ready != next[r.Core] {
				t.Fatalf("core %d: %d, want %d", r.Core, r.Load.Ready, next[r.Core])
			}
			next[r.Core]++
		}
	}
	if next != [cores]int{each, each, each, each} {
		t.Errorf("recorded %v", next)
	}
}

func messages(recs []tape.Record) (out []string) {
	for _, r := range recs {
		if m, ok := r.Host.(*tape.Message); ok {
			out = append(out, string(m.Level)+": "+m.Text)
		}
	}
	return out
}

// The size cap ends recording with one notice; the run goes on and what is
// there can be read.
//
// The cap is used, also where all comes at once and one frame of it were larger
// than the cap.
func TestSizeCap(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 0} {
		t.Run(pause.String(), func(t *testing.T) { sizeCap(t, pause) })
	}
}

func sizeCap(t *testing.T, pause time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 100_000
		s := newSession(t, Options{MaxBytes: limit})
		tp := tape.New()
		watch := tp.Subscribe()
		s.Record(tp)
		recs := realTape(t, 10)
		if s.Stopped() != "" {
			t.Error("stopped before anything was recorded")
		}
		for range 40 {
			tp.Append(recs...)
			time.Sleep(pause)
		}
		synctest.Wait()
		if err := s.Close("done"); err != nil {
			t.Error(err)
		}
		got := messages(watch.Next(nil, 0))
		want := "warn: the session " + s.Path() + " has reached its size cap of 97.7 KiB: recording has stopped, the run goes on; raise the cap with --session-cap"
		if len(got) != 1 || got[0] != want {
			t.Errorf("messages %q, want %q", got, want)
		}
		if n := s.Bytes(); n > limit || n < limit*9/10 {
			t.Errorf("%d bytes on disk, the cap is %d", n, limit)
		}
		o := open(t, s.Path())
		if n := len(records(t, o)); n == 0 || uint64(n) != s.Records() {
			t.Errorf("%d records on disk, Records says %d", n, s.Records())
		}
		if o.Report.Whole() || s.Stopped() != "size cap of 97.7 KiB reached" || !strings.Contains(o.Report.String(), s.Stopped()) {
			t.Errorf("report: %s; stopped: %s", &o.Report, s.Stopped())
		}
	})
}

// Whoever removes the tape, or its folder, is told that nothing more is
// recorded: at once, or when the session is closed.
func TestRemovedTape(t *testing.T) {
	for name, tc := range map[string]struct {
		remove func(dir string) error
		atEnd  bool
	}{
		"tape":                   {remove: func(dir string) error { return os.Remove(filepath.Join(dir, tapeName)) }},
		"folder":                 {remove: os.RemoveAll},
		"folder, before the end": {remove: os.RemoveAll, atEnd: true},
		"another in its place": {remove: func(dir string) error {
			return writeFile(filepath.Join(dir, tapeName), []byte("mine"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t, Options{})
				tp := tape.New()
				watch := tp.Subscribe()
				s.Record(tp)
				recs := realTape(t, 10)
				tp.Append(recs...)
				time.Sleep(2 * syncEvery)
				synctest.Wait()
				if s.Stopped() != "" {
					t.Errorf("stopped by itself: %s", s.Stopped())
				}
				if err := tc.remove(s.Path()); err != nil {
					t.Error(err)
				}
				if !tc.atEnd {
					tp.Append(recs...)
					time.Sleep(2 * syncEvery)
					synctest.Wait()
					if s.Stopped() != "its tape was removed" {
						t.Errorf("stopped: %q", s.Stopped())
					}
				}
				if err := s.Close("done"); err != nil {
					t.Error(err)
				}
				got := messages(watch.Next(nil, 0))
				want := "error: the tape of the session " + s.Path() + " was removed: recording has stopped, the run goes on; start again to record"
				if len(got) != 1 || got[0] != want {
					t.Errorf("messages %q, want %q", got, want)
				}
			})
		})
	}
}

// A full disk ends recording with one message that names the folder and the
// cure; the run goes on, and what is on disk stays readable.
func TestDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, Options{})
		tp := tape.New()
		watch := tp.Subscribe()
		s.Record(tp)
		recs := realTape(t, 3)
		tp.Append(recs...)
		time.Sleep(time.Second)
		synctest.Wait()
		before := s.Records()
		good := s.file
		s.file = full
		for range 5 {
			tp.Append(recs...)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if err := errors.Join(s.Close("done"), good.Close()); err != nil {
			t.Error(err)
		}
		got := messages(watch.Next(nil, 0))
		if len(got) != 1 {
			t.Fatalf("messages %q", got)
		}
		for _, part := range []string{"error: ", s.Path(), "no space left on device", "the run goes on", "--sessions DIR"} {
			if !strings.Contains(got[0], part) {
				t.Errorf("%q does not say %q", got[0], part)
			}
		}
		o := open(t, s.Path())
		if n := len(records(t, o)); before != uint64(len(recs)) || n != len(recs) {
			t.Errorf("%d records were on disk, %d are", before, n)
		}
		if !strings.Contains(o.Report.String(), "no space left") {
			t.Errorf("report: %s", &o.Report)
		}
	})
}

// A record that cannot be stored is left out and counted; recording goes on.
func TestLeftOutRecords(t *testing.T) {
	s := newSession(t, Options{})
	tp := tape.New()
	watch := tp.Subscribe()
	s.Record(tp)
	tp.AppendHost(4, event.None, &tape.Message{Level: tape.Info, Text: "first"})
	for range 2 {
		tp.AppendHost(5, event.None, &tape.Knob{Knob: "threshold", New: math.Inf(1)})
		tp.AppendHost(6, event.None, &tape.Message{Level: tape.Info, Text: "fine"})
	}
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, m := range messages(watch.Next(nil, 0)) {
		if strings.Contains(m, "leaves out") && strings.Contains(m, "knob") {
			said++
		}
	}
	o := open(t, s.Path())
	if c := o.Manifest.Closed; said != 1 || c.LeftOut != 2 || o.Report.Missing != 2 || o.Report.Whole() {
		t.Errorf("said %d times; closed %+v; %s", said, c, &o.Report)
	}
	if !strings.Contains(o.Report.String(), "2 records are missing") {
		t.Errorf("report: %s", &o.Report)
	}
}

// A folder that cannot be written fails before the run with a cure.
func TestUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(file, "sessions"), file}
	if os.Getuid() != 0 && runtime.GOOS != "windows" {
		ro := filepath.Join(t.TempDir(), "read-only")
		if err := os.Mkdir(ro, 0o500); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, ro)
	}
	for _, dir := range dirs {
		_, err := Create(dir, manifest(), Options{})
		if err == nil {
			t.Errorf("%s: a session was made", dir)
			continue
		}
		want := "no session can be written to " + dir
		if !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "--sessions DIR") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// Case K1: whatever part of the last frame reached the disk, the session opens
// with all complete records and says what was cut.
func TestTruncatedTape(t *testing.T) {
	s := newSession(t, Options{Vocab: vocab})
	tp := tape.New()
	recs := realTape(t, 4)
	half := len(recs) / 2
	r := &s.rec
	r.tape, r.sub = tp, tp.Subscribe()
	tp.Append(recs[:half]...)
	r.drain(tp.Seq())
	r.write()
	first := s.Bytes()
	tp.Append(recs[half:]...)
	r.drain(tp.Seq())
	r.write()
	for cut := s.Bytes() - 1; cut > first; cut -= 97 {
		if err := os.Truncate(filepath.Join(s.Path(), tapeName), cut); err != nil {
			t.Fatal(err)
		}
		o := open(t, s.Path())
		if got := records(t, o); len(got) != half || got[half-1].Seq != uint64(half) {
			t.Fatalf("cut at %d: %d records, want %d", cut, len(got), half)
		}
		lost := ""
		if cut-first >= format.FrameHeaderSize {
			lost = fmt.Sprintf(", with at least %d records", len(recs)-half)
		}
		want := fmt.Sprintf("the session was not closed, at most its last second is missing; the last frame was incomplete: %d bytes from offset %d were cut%s; last of %d records at %.1f s",
			cut-first, first, lost, half, float64(recs[half-1].At)/1e9)
		if got := o.Report.String(); got != want {
			t.Fatalf("report %q, want %q", got, want)
		}
	}
	if err := os.Truncate(filepath.Join(s.Path(), tapeName), 0); err != nil {
		t.Fatal(err)
	}
	o := open(t, s.Path())
	if want := "the session was not closed, at most its last second is missing; the tape ends within its header, after 0 bytes; it holds no record"; o.Report.String() != want {
		t.Errorf("report %q, want %q", &o.Report, want)
	}
}

// A closed session whose tape lost frames afterwards says so.
func TestFramesLostAfterClose(t *testing.T) {
	s := newSession(t, Options{})
	tp := tape.New()
	s.Record(tp)
	tp.Append(realTape(t, 3)...)
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(s.Path(), tapeName), format.HeaderSize); err != nil {
		t.Fatal(err)
	}
	o := open(t, s.Path())
	if o.Report.Whole() || o.Report.Missing != s.Records() {
		t.Errorf("%s", &o.Report)
	}
}

// Case K2 and corrupt sessions: one sentence each.
func TestSessionsThatCannotBeOpened(t *testing.T) {
	edit := func(name string, f func([]byte) []byte) func(dir string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), f(b), 0o600)
		}
	}
	replace := func(old, with string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(with), 1) }
	}
	for name, c := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"no manifest":    {func(dir string) error { return os.Remove(filepath.Join(dir, manifestName)) }, "is no session: it holds no manifest.json"},
		"no tape":        {func(dir string) error { return os.Remove(filepath.Join(dir, tapeName)) }, "it holds no tape.trlog"},
		"newer manifest": {edit(manifestName, replace(`"format": 5`, `"format": 9`)), "the manifest has format version 9 and this tokenrouter reads up to 5: use a tokenrouter that reads format 9"},
		"no version":     {edit(manifestName, replace(`"format": 5,`, ``)), "never existed"},
		"unknown field":  {edit(manifestName, replace(`"program"`, `"colour": "red", "program"`)), "colour"},
		"half manifest":  {edit(manifestName, func(b []byte) []byte { return b[:len(b)/2] }), "is damaged"},
		"other file":     {edit(tapeName, func([]byte) []byte { return []byte("PAR1 and so on, no tape at all") }), "no tape"},
		"flipped header": {edit(tapeName, func(b []byte) []byte { b[9] ^= 1; return b }), "header is damaged"},
	} {
		s := newSession(t, Options{Vocab: vocab})
		if err := s.Close("done"); err != nil {
			t.Fatal(err)
		}
		if err := c.damage(s.Path()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.Path()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.Path()) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "unknown field" {
			if o, err := OpenWith(s.Path(), format.Options{Lenient: true}); err != nil || o.Manifest.Program != "tokenrouter test" {
				t.Errorf("lenient: %v", err)
			}
		}
	}
	s := newSession(t, Options{Vocab: vocab})
	o := open(t, s.Path())
	if err := edit(vocabName, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })(s.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Vocab(); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("vocabulary: %v", err)
	}
	if err := os.Remove(filepath.Join(s.Path(), vocabName)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Vocab(); err == nil || !strings.Contains(err.Error(), "its tokens have no text") {
		t.Errorf("vocabulary: %v", err)
	}
}

func TestVocabRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 12), 0, 50).Draw(t, "vocab")
		b, err := encodeVocab(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeVocab(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The vocabulary of a real model has ids behind its tokens, which have no bytes.
func TestLargeVocab(t *testing.T) {
	v := make([][]byte, 151_936)
	for id := range v[:151_669] {
		v[id] = fmt.Append(nil, "token ", id)
	}
	s := newSession(t, Options{Vocab: v})
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, s.Path()).Vocab()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(v, got, bytes.Equal) {
		t.Errorf("%d tokens come back as %d others", len(v), len(got))
	}
}

func FuzzVocab(f *testing.F) {
	b, err := encodeVocab(vocab)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeVocab(b)
		if err != nil {
			return
		}
		if _, err := encodeVocab(v); err != nil {
			t.Fatal(err)
		}
	})
}

// The manifest's JSON is what other tools read: its names stay.
func TestManifestFields(t *testing.T) {
	s := newSession(t, Options{})
	b, err := os.ReadFile(filepath.Join(s.Path(), manifestName))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{
		"format", "tape_format", "program", "started_at", "models", "router", "params", "seed", "policy",
		"clock", "profile", "concurrency", "seats", "kv_tokens", "workload", "sampling", "machine",
	} {
		if _, ok := m[k]; !ok {
			t.Errorf("the manifest has no %q", k)
		}
	}
	if _, ok := m["closed"]; ok {
		t.Error("an open session says closed")
	}
}
