package replay_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/replay"
	"tokenrouter/sessions/store"
)

// whole is a session to be doctored, its records and its cores.
func whole(t *testing.T) (*store.Opened, []tape.Record, []sched.Config) {
	t.Helper()
	o := record(t, setup{router: "random", params: map[string]float64{"share": 0.5}, policy: "look-ahead", requests: 4, core: live.CoreOptions{Chunk: 9}})
	var recs []tape.Record
	for r, err := range o.Records() {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
	}
	cluster, err := o.Manifest.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	return o, recs, cluster
}

func seq(recs []tape.Record) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func played(t *testing.T, cluster []sched.Config, recs []tape.Record) replay.Report {
	t.Helper()
	r, err := replay.Records(cluster, seq(recs))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// every picks records of a kind, some of them over the whole tape.
func every(recs []tape.Record, n int, ok func(*tape.Record) bool) []int {
	var all []int
	for i := range recs {
		if ok(&recs[i]) {
			all = append(all, i)
		}
	}
	var out []int
	for k := range min(n, len(all)) {
		out = append(out, all[k*len(all)/min(n, len(all))])
	}
	return out
}

// A command of which one byte is another one is found where it stands, and both
// sides are printed.
func TestOneByte(t *testing.T) {
	_, recs, cluster := whole(t)
	kinds := map[event.CmdKind]int{}
	tried := 0
	for _, i := range every(recs, 60, func(r *tape.Record) bool {
		if r.Command == nil || kinds[r.Command.Kind] > 5 {
			return false
		}
		kinds[r.Command.Kind]++
		return true
	}) {
		good := event.AppendCommand(nil, recs[i].Command)
		for _, at := range []int{1, len(good) / 2, len(good) - 1} {
			bad := slices.Clone(good)
			bad[at] ^= 1
			c, n, err := event.DecodeCommand(bad)
			if err != nil || n != len(bad) || string(event.AppendCommand(nil, &c)) != string(bad) {
				continue
			}
			tried++
			with := slices.Clone(recs)
			with[i].Command = &c
			r := played(t, cluster, with)
			if r.Diff == nil || r.Diff.Record != recs[i].Seq || r.Diff.Peer != recs[i].Core || r.Diff.At != recs[i].At || r.Diff.Tape == r.Diff.Core {
				t.Fatalf("byte %d of the command at record %d (%v): %v", at, recs[i].Seq, recs[i].Command, &r)
			}
		}
	}
	if tried < 60 || len(kinds) < 7 {
		t.Errorf("only %d commands of %v were changed", tried, kinds)
	}
}

// An event that is not there is found no later than when its core goes on.
func TestDropped(t *testing.T) {
	_, recs, cluster := whole(t)
	kinds := map[event.Kind]int{}
	for _, i := range every(recs, 80, func(r *tape.Record) bool {
		if r.Event == nil || r.Event.Kind == event.Wake || kinds[r.Event.Kind] > 12 {
			return false
		}
		kinds[r.Event.Kind]++
		return true
	}) {
		r := played(t, cluster, slices.Delete(slices.Clone(recs), i, i+1))
		silent := i+1 == len(recs) || recs[i+1].Command == nil
		switch kind := recs[i].Event.Kind; {
		case r.Missing != 1:
			t.Errorf("%d records are said to be missing", r.Missing)
		case r.Diff == nil && silent && (kind == event.Busy || kind == event.Active || kind == event.SetPolicy):
			// Old news: nothing was to come of it, and nothing came on that link.
		case r.Diff == nil || r.Diff.Record <= recs[i].Seq || !silent && r.Diff.Record != recs[i].Seq+1:
			t.Fatalf("without %v at record %d: %v", recs[i].Event, recs[i].Seq, &r)
		case !strings.Contains(r.String(), "; 1 records before are missing"):
			t.Errorf("%v", &r)
		}
	}
	if len(kinds) < 6 {
		t.Errorf("only %v were dropped", kinds)
	}
}

// Two messages of one link that change places, two events of one core, and two
// commands are found at the first of them.
func TestSwapped(t *testing.T) {
	_, recs, cluster := whole(t)
	swap := func(i, j int) {
		t.Helper()
		with := slices.Clone(recs)
		a, b := &with[i], &with[j]
		a.Event, b.Event, a.Command, b.Command = b.Event, a.Event, b.Command, a.Command
		r := played(t, cluster, with)
		if r.Diff == nil || r.Diff.Record < recs[i].Seq || r.Diff.Record > recs[j].Seq+1 {
			t.Fatalf("%v and %v, records %d and %d: %v", &recs[i], &recs[j], recs[i].Seq, recs[j].Seq, &r)
		}
	}
	ins := every(recs, len(recs), func(r *tape.Record) bool {
		return r.Core == 1 && r.Event != nil && r.Event.Kind == event.PeerIn
	})
	for k := 1; k < len(ins); k += max(1, len(ins)/10) {
		swap(ins[k-1], ins[k])
	}
	pairs := 0
	for i := 1; i < len(recs) && pairs < 20; i += 7 {
		for i < len(recs) && (recs[i].Command == nil || recs[i-1].Command == nil) {
			i++
		}
		if i < len(recs) && recs[i].Command.String() != recs[i-1].Command.String() {
			swap(i-1, i)
			pairs++
		}
	}
	if len(ins) < 20 || pairs < 20 {
		t.Errorf("%d messages, %d pairs of commands", len(ins), pairs)
	}
}

// stored replays records from a session on disk that was closed behind them.
func stored(t *testing.T, m store.Manifest, recs []tape.Record) replay.Report {
	t.Helper()
	s, err := store.Create(t.TempDir(), m, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tp := tape.New()
	s.Record(tp)
	tp.Append(recs...)
	if err := s.Close("finished"); err != nil {
		t.Fatal(err)
	}
	r, err := replay.Session(open(t, s.Path()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A doctored session on disk is told as one in memory, in one line.
func TestDoctoredSession(t *testing.T) {
	o, recs, _ := whole(t)
	i := every(recs, 3, func(r *tape.Record) bool { return r.Command != nil && r.Command.Kind == event.Emit })[1]
	c := *recs[i].Command
	c.Token ^= 1
	recs[i].Command = &c
	r := stored(t, o.Manifest, recs)
	want := fmt.Sprintf("differs at record %d (%s, %.6f s): the tape has emit r%d pos=%d token=%d, the core orders emit r%d pos=%d token=%d",
		recs[i].Seq, event.Role(recs[i].Core, 2), float64(recs[i].At)/1e9, c.Req, c.Pos, c.Token, c.Req, c.Pos, c.Token^1)
	if r.Equal() || r.String() != want {
		t.Errorf("%v\nwant %s", &r, want)
	}
}

// Wherever a process is killed, what is left replays equal, and what the cores
// ordered last is known.
func TestCut(t *testing.T) {
	o, recs, cluster := whole(t)
	behind := 0
	for n := 0; n <= len(recs); n += 1 + len(recs)/150 {
		r := played(t, cluster, recs[:n])
		if !r.Equal() || r.Records != uint64(n) {
			t.Fatalf("the first %d records: %v", n, &r)
		}
		if r.Behind != nil {
			behind++
		}
	}
	if behind == 0 {
		t.Error("no cut fell between an event and its commands")
	}
	// On disk, with the end of the last frame gone and no end in the manifest.
	dir := filepath.Join(t.TempDir(), "session")
	if err := os.CopyFS(dir, os.DirFS(o.Path)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tape.trlog")
	st, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, st.Size()-7)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Session(open(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Equal() || !strings.Contains(r.String(), "; up to where it ends: ") {
		t.Errorf("%v", &r)
	}
}

// A byte of the tape that is another one is no cut that a kill explains.
func TestCorrupt(t *testing.T) {
	o := record(t, setup{router: "random", requests: 2})
	dir := filepath.Join(t.TempDir(), "session")
	if err := os.CopyFS(dir, os.DirFS(o.Path)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tape.trlog")
	b, err := os.ReadFile(file)
	if err == nil {
		b[len(b)/2] ^= 1
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Session(open(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if r.Equal() || !strings.HasPrefix(r.String(), "corrupt, before that equal: ") {
		t.Errorf("%v", &r)
	}
}

// A whole session whose last commands are not on its tape differs.
func TestEndsTooEarly(t *testing.T) {
	o, recs, _ := whole(t)
	n := every(recs, len(recs), func(r *tape.Record) bool { return r.Command != nil })
	recs = recs[:n[len(n)-1]]
	for recs[len(recs)-1].Event == nil && recs[len(recs)-1].Command == nil {
		recs = recs[:len(recs)-1]
	}
	r := stored(t, o.Manifest, recs)
	if r.Equal() || !strings.Contains(r.String(), "the tape has no record any more, the core orders ") {
		t.Errorf("%v", &r)
	}
}

// What is no session of these cores is refused or differs; nothing panics.
func TestForeign(t *testing.T) {
	o, recs, cluster := whole(t)
	for what, change := range map[string]func(c []sched.Config){
		"seats":      func(c []sched.Config) { c[0].Seats, c[1].Seats = []int{1, 1}, []int{1, 1} },
		"chunk":      func(c []sched.Config) { c[0].Chunk, c[1].Chunk = 0, 0 },
		"no prefix":  func(c []sched.Config) { c[0].NoPrefix, c[1].NoPrefix = true, true },
		"small pool": func(c []sched.Config) { c[0].KVTokens, c[1].KVTokens = []int{64, 64}, []int{64, 64} },
	} {
		c := slices.Clone(cluster)
		change(c)
		if r := played(t, c, recs); r.Equal() {
			t.Errorf("other %s: %v", what, &r)
		}
	}
	if _, err := replay.Records(cluster[:1], seq(recs)); err == nil {
		t.Error("a cluster of one core of two is taken")
	}
	strange := slices.Clone(recs)
	i := every(recs, 1, func(r *tape.Record) bool { return r.Event != nil && r.Event.Kind == event.StepDone })[0]
	strange[i].Event = &event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: 77}}
	if r := played(t, cluster, strange); r.Equal() || r.Diff.Record < recs[i].Seq {
		t.Errorf("%v", &r)
	}
	strange[i].Event = &event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{From: 40}}
	if r := played(t, cluster, strange); r.Equal() || r.Diff.Record != recs[i].Seq {
		t.Errorf("%v", &r)
	}
	old := *o
	old.Manifest.Format = 1
	if _, err := replay.Session(&old); err == nil || !strings.Contains(err.Error(), "format 1") {
		t.Errorf("%v", err)
	}
}

func BenchmarkSession(b *testing.B) {
	o := record(b, setup{router: "random", params: map[string]float64{"share": 0.5}, policy: "table", requests: 30, concurrency: 8})
	var r replay.Report
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		var err error
		if r, err = replay.Session(o); err != nil || !r.Equal() {
			b.Fatal(err, &r)
		}
	}
	b.ReportMetric(float64(r.Records)*float64(n)/b.Elapsed().Seconds(), "records/s")
}
