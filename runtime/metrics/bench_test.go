package metrics_test

import (
	"testing"
	"time"

	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// benchTape is the tape of 1,000 requests of the real cores.
func benchTape(b *testing.B) []tape.Record {
	b.Helper()
	recs, _, err := tapetest.Run(tapetest.Config{Requests: 1000, Concurrency: 8, MaxTokens: 60, Seed: 3})
	if err != nil {
		b.Fatal(err)
	}
	return recs
}

// feed adds b.N records, to a new fold for each round over the tape: ids are not
// used twice.
func feed(b *testing.B, fresh func() folder) {
	recs := benchTape(b)
	var fold folder
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%len(recs) == 0 {
			fold = fresh()
		}
		fold.Add(&recs[i%len(recs)])
	}
}

func BenchmarkBoardAdd(b *testing.B) {
	feed(b, func() folder { return metrics.NewBoard(2) })
}

func BenchmarkRunAdd(b *testing.B) {
	feed(b, func() folder { return metrics.NewRun(2) })
}

// BenchmarkBoardFrame is what one frame of the board asks for.
func BenchmarkBoardFrame(b *testing.B) {
	recs := benchTape(b)
	board := metrics.NewBoard(2)
	for i := range recs {
		board.Add(&recs[i])
	}
	now := recs[len(recs)-1].At
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		board.Snapshot(now)
		board.Compare(now)
		board.Series(now, 60, time.Second)
		board.Marks()
	}
}
