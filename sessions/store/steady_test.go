package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// What is recorded steadily makes the same file, however slowly it comes.
func TestSteadyRecording(t *testing.T) {
	var files []string
	for _, pause := range []time.Duration{0, 2 * flushEvery} {
		synctest.Test(t, func(t *testing.T) {
			s, err := Create(t.TempDir(), Manifest{StartedAt: time.Now(), Clock: "sim"}, Options{Steady: true})
			if err != nil {
				t.Fatal(err)
			}
			tp := tape.New()
			s.Record(tp)
			for i := range 40 {
				tp.AppendHost(int64(i), event.None, &tape.Message{Level: tape.Info, Text: fmt.Sprint("message ", i)})
				time.Sleep(pause)
			}
			if n := s.Records(); n != 0 {
				t.Errorf("%d records are on disk before a frame is full", n)
			}
			if err := s.Close("done"); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(s.Path(), tapeName))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, string(text))
		})
	}
	if files[0] != files[1] {
		t.Error("the time between records is seen in the file")
	}
}
