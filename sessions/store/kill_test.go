package store

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"tokenrouter/runtime/tape"
)

// childDir names the folder in which this test binary, started again as a
// child, records until it is killed.
const childDir = "TOKENROUTER_TEST_RECORD_INTO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := recordForever(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// maxAhead bounds what the child keeps in memory.
const maxAhead = 200_000

// recordForever appends without end and prints how many records are on disk
// after each frame.
func recordForever(dir string) error {
	s, err := Create(dir, manifest(), Options{Vocab: vocab})
	if err != nil {
		return err
	}
	tp := tape.New()
	s.Record(tp)
	var told uint64
	for i := 0; s.Stopped() == ""; i++ {
		tp.Append(counted(i))
		for first := true; first || uint64(i) > s.Records()+maxAhead; first = false {
			if n := s.Records(); n > told {
				told = n
				fmt.Println(n)
			}
			runtime.Gosched()
		}
	}
	return fmt.Errorf("recording stopped: %s", s.Stopped())
}

func counted(i int) tape.Record {
	return tape.Record{At: int64(i) * 1000, Kind: tape.KindLoad, Load: &tape.Load{Ready: i, KVUsed: i * i % 9973}}
}

// Case K1: kill -9 in the middle of recording loses nothing that was written as
// a frame, and the session says that it was not closed.
func TestKill9(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told uint64
	lines := bufio.NewScanner(out)
	for range 3 {
		if !lines.Scan() {
			t.Fatalf("the child ended: %v", cmd.Wait())
		}
		if told, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	path, err := Find([]string{dir}, Latest)
	if err != nil {
		t.Fatal(err)
	}
	o := open(t, path)
	got := records(t, o)
	if uint64(len(got)) < told || uint64(len(got)) != o.Report.Records {
		t.Errorf("%d records, the child had written %d, the report says %d", len(got), told, o.Report.Records)
	}
	for i, r := range got {
		want := counted(i)
		if r.Seq != uint64(i+1) || r.At != want.At || *r.Load != *want.Load {
			t.Fatalf("record %d is %+v", i, r)
		}
	}
	if s := o.Report.String(); o.Report.Closed || o.Report.Whole() || !strings.HasPrefix(s, "the session was not closed") {
		t.Errorf("report: %s", s)
	}
	if v, err := o.Vocab(); err != nil || len(v) != len(vocab) {
		t.Errorf("%d tokens, %v", len(v), err)
	}
	if left, err := filepath.Glob(filepath.Join(path, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// BenchmarkRecord is the whole way of a token row and what happens around it:
// appended to the tape, encoded, compressed, written.
func BenchmarkRecord(b *testing.B) {
	recs := realTape(b, 200)
	rows := 0
	for _, r := range recs {
		if r.Event != nil && r.Event.Step != nil {
			rows += len(r.Event.Step.Rows)
		}
	}
	s := newSession(b, Options{MaxBytes: 1 << 40})
	tp := tape.New()
	s.Record(tp)
	b.ReportAllocs()
	for range b.N { // not b.Loop: the time until all is on disk counts too
		tp.Append(recs...)
	}
	if err := s.Close("done"); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	n := float64(b.N) * float64(rows)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/row")
	b.ReportMetric(float64(s.Bytes())/n, "B/row")
}
