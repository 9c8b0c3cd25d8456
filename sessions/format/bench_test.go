package format

import (
	"bytes"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// tokenRows counts the decode rows that a tape holds.
func tokenRows(recs []tape.Record) (n int) {
	for i := range recs {
		if e := recs[i].Event; e != nil && e.Kind == event.StepDone {
			n += len(e.Step.Rows)
		}
	}
	return n
}

// BenchmarkEncode is the recorder's work for one token row and everything that
// happens around it (events, orders, messages, loads): ns and bytes.
func BenchmarkEncode(b *testing.B) {
	recs := realTape(b, 200)
	e, err := NewEncoder()
	if err != nil {
		b.Fatal(err)
	}
	rows := tokenRows(recs)
	var raw, stored int
	var out []byte
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		raw, stored = 0, 0
		for i := range recs {
			r := recs[i]
			seq++
			r.Seq = seq
			if err := e.Append(&r); err != nil {
				b.Fatal(err)
			}
			if e.Buffered() >= FrameTarget || i == len(recs)-1 {
				raw += e.Buffered()
				out = e.Seal(out[:0])
				stored += len(out)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
	b.ReportMetric(float64(stored)/float64(rows), "B/row")
	b.ReportMetric(float64(raw)/float64(rows), "rawB/row")
	b.ReportMetric(float64(len(recs))/float64(rows), "records/row")
}

func BenchmarkDecode(b *testing.B) {
	recs := realTape(b, 200)
	f, _ := file(b, recs, 2000)
	s := scan(b, f)
	rows := tokenRows(recs)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range Records(bytes.NewReader(f), s, Options{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

func BenchmarkScan(b *testing.B) {
	f, _ := file(b, realTape(b, 200), 2000)
	b.SetBytes(int64(len(f)))
	for b.Loop() {
		scan(b, f)
	}
}
