package tape

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

func collect(t *testing.T, s *Sub, n int) []Record {
	t.Helper()
	var out []Record
	for len(out) < n {
		<-s.Ready()
		out = s.Next(out, 0)
	}
	if len(out) != n {
		t.Fatalf("%d records, want %d", len(out), n)
	}
	return out
}

func TestNumbersRecordsInTheOrderGiven(t *testing.T) {
	tp := New()
	s := tp.Subscribe()
	tp.Append()
	tp.Append(Record{At: 10}, Record{At: 20})
	tp.AppendHost(30, event.None, &Message{Level: Info, Text: "three"})
	got := collect(t, s, 3)
	for i, r := range got {
		if r.Seq != uint64(i+1) || r.At != int64(i+1)*10 {
			t.Errorf("record %d: seq %d at %d", i, r.Seq, r.At)
		}
	}
	if m, ok := got[2].Host.(*Message); !ok || m.Text != "three" || got[2].Kind != KindHost || got[2].Core != event.None {
		t.Errorf("host record is %+v", got[2])
	}
	if tp.Seq() != 3 {
		t.Errorf("Seq %d, want 3", tp.Seq())
	}
}

// A subscription begins at the end of the tape, at every place in a chunk.
func TestSubscriptionBeginsAtTheEnd(t *testing.T) {
	for _, before := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize} {
		tp := New()
		for i := range before {
			tp.Append(Record{At: int64(i)})
		}
		s := tp.Subscribe()
		if got := s.Next(nil, 0); len(got) != 0 {
			t.Errorf("after %d: %d old records", before, len(got))
		}
		tp.Append(Record{At: -1})
		got := s.Next(nil, 0)
		if len(got) != 1 || got[0].Seq != uint64(before+1) || got[0].At != -1 {
			t.Errorf("after %d: %+v", before, got)
		}
	}
}

// Any mix of appends of any size and reads of any bound yields all records once
// and in order, to every subscription from its start on.
func TestReadsYieldEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type reader struct {
			sub  *Sub
			next uint64
		}
		tp := New()
		var readers []*reader
		read := func(r *reader, bound int) int {
			recs := r.sub.Next(nil, bound)
			if bound > 0 && len(recs) > bound {
				t.Fatalf("%d records with bound %d", len(recs), bound)
			}
			for _, rec := range recs {
				if rec.Seq != r.next || rec.At != int64(rec.Seq)*7 {
					t.Fatalf("record %d at %d, want %d", rec.Seq, rec.At, r.next)
				}
				r.next++
			}
			return len(recs)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				readers = append(readers, &reader{sub: tp.Subscribe(), next: tp.Seq() + 1})
			case 1:
				if len(readers) > 0 {
					read(rapid.SampledFrom(readers).Draw(t, "reader"), rapid.IntRange(0, 2*chunkSize).Draw(t, "bound"))
				}
			default:
				recs := make([]Record, rapid.IntRange(0, chunkSize+20).Draw(t, "n"))
				for i := range recs {
					recs[i].At = int64(tp.Seq()+uint64(i)+1) * 7
				}
				tp.Append(recs...)
			}
		}
		for _, r := range readers {
			for read(r, 0) > 0 {
			}
			if r.next != tp.Seq()+1 {
				t.Fatalf("read up to %d of %d", r.next-1, tp.Seq())
			}
		}
	})
}

// Several cores append while subscriptions read: nothing is lost, each core's
// records stay in order, and all subscriptions see the same order.
func TestConcurrentAppendersAndSubscriptions(t *testing.T) {
	const cores, each, subs = 4, 3000, 3
	tp := New()
	got := make([][]Record, subs)
	var readers, writers sync.WaitGroup
	for i := range subs {
		s := tp.Subscribe()
		readers.Go(func() {
			for len(got[i]) < cores*each {
				<-s.Ready()
				got[i] = s.Next(got[i], 0)
			}
			s.Close()
		})
	}
	for c := range cores {
		writers.Go(func() {
			for i := 0; i < each; {
				recs := make([]Record, min(1+i%5, each-i))
				for k := range recs {
					recs[k] = Record{Core: event.Peer(c), At: int64(i)}
					i++
				}
				tp.Append(recs...)
			}
		})
	}
	writers.Wait()
	readers.Wait()
	for i := range subs {
		var next [cores]int64
		for k, r := range got[i] {
			if r.Seq != uint64(k+1) {
				t.Fatalf("subscription %d: seq %d at place %d", i, r.Seq, k)
			}
			if r.At != next[r.Core] {
				t.Fatalf("subscription %d: core %d jumped to %d, want %d", i, r.Core, r.At, next[r.Core])
			}
			next[r.Core]++
			if o := got[0][k]; o.Core != r.Core || o.At != r.At {
				t.Fatalf("subscriptions differ at %d", k)
			}
		}
	}
}

// A subscription that never reads makes nobody wait, and reads all of it later.
func TestSlowSubscriptionDoesNotBlock(t *testing.T) {
	const n = 20 * chunkSize
	tp := New()
	slow, fast := tp.Subscribe(), tp.Subscribe()
	for i := range n {
		tp.Append(Record{At: int64(i)})
		if got := fast.Next(nil, 0); len(got) != 1 {
			t.Fatalf("fast subscription has %d records", len(got))
		}
	}
	got := collect(t, slow, n)
	if got[0].Seq != 1 || got[n-1].Seq != n {
		t.Errorf("slow subscription has %d..%d", got[0].Seq, got[n-1].Seq)
	}
}

// Ready is signalled for what comes after the last Next, and not after Close.
func TestReady(t *testing.T) {
	tp := New()
	s := tp.Subscribe()
	signalled := func() bool {
		select {
		case <-s.Ready():
			return true
		default:
			return false
		}
	}
	if signalled() {
		t.Error("ready before anything was appended")
	}
	tp.Append(Record{}, Record{})
	tp.Append(Record{})
	if !signalled() {
		t.Error("not ready after an append")
	}
	if signalled() {
		t.Error("ready twice without an append between")
	}
	s.Close()
	tp.Append(Record{})
	if signalled() {
		t.Error("ready after Close")
	}
	if got := s.Next(nil, 0); len(got) != 0 {
		t.Errorf("%d records are left to read after Close", len(got))
	}
}

// Chunks that everybody has read are not kept.
func TestReadChunksAreFreed(t *testing.T) {
	tp := New()
	s := tp.Subscribe()
	freed := make(chan struct{})
	runtime.AddCleanup(s.cur, func(struct{}) { close(freed) }, struct{}{})
	for range 2 * chunkSize {
		tp.Append(Record{})
	}
	if got := s.Next(nil, 0); len(got) != 2*chunkSize {
		t.Fatalf("%d records", len(got))
	}
	for range 1000 {
		runtime.GC()
		select {
		case <-freed:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("a chunk that nobody can read any more is still there")
}

func TestHostNames(t *testing.T) {
	for _, h := range []Host{
		new(Request), new(Result), new(Router), new(Knob), new(Setting), new(Telemetry), new(Message), new(Closed),
	} {
		if got := NewHost(h.Name()); got == nil || got.Name() != h.Name() {
			t.Errorf("NewHost(%q) = %v", h.Name(), got)
		}
	}
	if NewHost("no such name") != nil {
		t.Error("a payload for a name that does not exist")
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, bc := range []struct {
		name string
		subs int
	}{{"no subscription", 0}, {"three subscriptions", 3}} {
		b.Run(bc.name, func(b *testing.B) {
			tp := New()
			var subs []*Sub
			for range bc.subs {
				subs = append(subs, tp.Subscribe())
			}
			var buf []Record
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tp.Append(Record{At: int64(i)})
				if i%1024 == 0 {
					for _, s := range subs {
						buf = s.Next(buf[:0], 0)
					}
				}
			}
		})
	}
}

// Behind counts what the slowest reader lacks, and Room receives when one has read
// or is gone.
func TestBehind(t *testing.T) {
	tp := New()
	if tp.Behind() != 0 {
		t.Error("behind without a reader")
	}
	tp.AppendHost(0, event.None, &Closed{})
	slow, fast := tp.Subscribe(), tp.Subscribe()
	for i := range 600 {
		tp.AppendHost(int64(i), event.None, &Closed{})
	}
	fast.Next(nil, 0)
	if n := tp.Behind(); n != 600 {
		t.Errorf("%d behind, want 600", n)
	}
	select {
	case <-tp.Room():
	default:
		t.Error("no room after a read")
	}
	slow.Next(nil, 450)
	if n := tp.Behind(); n != 150 {
		t.Errorf("%d behind, want 150", n)
	}
	<-tp.Room()
	slow.Close()
	<-tp.Room()
	if n := tp.Behind(); n != 0 {
		t.Errorf("%d behind without the slow reader", n)
	}
}

// A closed subscription that somebody still holds, as a recorder does that has
// reached its size cap, must not hold the tape from there on.
func TestClosedSubscriptionHoldsNoRecords(t *testing.T) {
	tp := New()
	s := tp.Subscribe()
	tp.Append(make([]Record, 3)...)
	s.Next(nil, 1)
	chunks := []weak.Pointer[chunk]{weak.Make(s.cur)}
	s.Close()
	for range 3 {
		tp.Append(make([]Record, chunkSize)...)
		chunks = append(chunks, weak.Make(tp.tail))
	}
	runtime.GC()
	for i, c := range chunks[:3] {
		if c.Value() != nil {
			t.Errorf("chunk %d of 4 is still held", i)
		}
	}
	if got := s.Next(nil, 0); len(got) != 0 {
		t.Errorf("%d records after Close", len(got))
	}
	s.Close()
	runtime.KeepAlive(s)
	runtime.KeepAlive(tp)
}
