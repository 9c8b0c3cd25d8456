package live_test

import (
	"iter"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/replay"
	"tokenrouter/sessions/rows"
)

// checkTape holds a whole tape against what must be true of any: each position
// is emitted once and in order, each request ends once and its client hears the
// same, no KV is left, summary and token rows count the same tokens, and the
// cores, fed the recorded events, order the same again.
func checkTape(t *testing.T, s setup, recs []tape.Record) {
	t.Helper()
	type story struct {
		prompt, next  int // next position to be emitted
		ends, results int
		n             int // of the end, prompt included
		tokens        int // of the result
		reason        string
		rejected      bool
	}
	all := map[event.ReqID]*story{}
	at := func(id event.ReqID) *story {
		if all[id] == nil {
			all[id] = &story{}
		}
		return all[id]
	}
	held := kv{}
	loads := map[event.Peer]tape.Load{}
	for i := range recs {
		r := &recs[i]
		held.add(r)
		if r.Seq != recs[0].Seq+uint64(i) {
			t.Fatalf("record %d follows record %d", r.Seq, recs[i-1].Seq)
		}
		if r.Load != nil {
			loads[r.Core] = *r.Load
		}
		if ev := r.Event; ev != nil && ev.Kind == event.Arrive {
			q := at(ev.Req)
			q.prompt, q.next = len(ev.Arrival.Prompt), len(ev.Arrival.Prompt)
		}
		if c := r.Command; c != nil {
			switch c.Kind {
			case event.Emit:
				if q := at(c.Req); c.Pos != q.next {
					t.Errorf("request %d emits position %d, the next is %d", c.Req, c.Pos, q.next)
				}
				at(c.Req).next++
			case event.Finish:
				q := at(c.Req)
				q.ends, q.n, q.reason = q.ends+1, c.N, c.Reason.String()
			case event.Reject:
				q := at(c.Req)
				q.ends, q.rejected = q.ends+1, true
			}
		}
		if h, ok := r.Host.(*tape.Result); ok {
			q := at(h.Req)
			q.results, q.tokens = q.results+1, h.Tokens
			if !q.rejected && h.Reason != q.reason {
				t.Errorf("request %d ended with %s, its client heard %s", h.Req, q.reason, h.Reason)
			}
		}
	}
	client := 0
	for id, q := range all {
		if q.ends != 1 || q.results != 1 {
			t.Errorf("request %d has %d ends and %d results", id, q.ends, q.results)
		}
		if !q.rejected && (q.tokens != q.n-q.prompt || q.n > q.next) {
			t.Errorf("request %d: its client heard %d tokens of %d to %d, of which %d were emitted", id, q.tokens, q.prompt, q.n, q.next-q.prompt)
		}
		client += q.tokens
	}
	for p, l := range loads {
		if l.KVUsed+l.Running+l.Ready+l.Pending+l.Waiting > 0 {
			t.Errorf("subserver %d ends with %+v", p, l)
		}
	}
	if !held.free() {
		t.Errorf("KV is held: %v", held)
	}
	countsAgree(t, s, recs, client)
	replays(t, s, recs)
}

// countsAgree: summary, token rows and clients count the same tokens (cases B7,
// F8).
func countsAgree(t *testing.T, s setup, recs []tape.Record, client int) {
	t.Helper()
	fold := metrics.NewRun(len(s.models))
	for i := range recs {
		fold.Add(&recs[i])
	}
	x, err := rows.NewIndex(rows.Memory(recs))
	if err != nil {
		t.Fatal(err)
	}
	by := make([]int, len(s.models))
	for r, err := range rows.All(rows.Memory(recs), x) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Committed {
			by[r.Model]++
		}
	}
	sum, all := fold.Summary(0), 0
	for p, n := range by {
		all += n
		if got := sum.TokensByRole[p].Tokens; got != n {
			t.Errorf("%d rows by subserver %d, the summary has %d", n, p, got)
		}
	}
	if all != sum.Tokens || all != client {
		t.Errorf("%d rows, %d tokens in the summary, %d reached clients", all, sum.Tokens, client)
	}
}

// replays feeds the recorded events to fresh cores: their commands are those on
// the tape, byte for byte, and every message that came in had been sent (cases
// E11, E12).
func replays(t *testing.T, s setup, recs []tape.Record) {
	t.Helper()
	n := len(s.models)
	seats, pools := make([]int, n), make([]int, n)
	for i := range n {
		seats[i], pools[i] = 32, s.kvTokens
		if pools[i] == 0 {
			pools[i] = 16384
		}
	}
	cluster := make([]sched.Config, n)
	for p := range cluster {
		cluster[p] = sched.Config{
			Self: event.Peer(p), Seats: seats, KVTokens: pools, Chunk: s.core.Chunk, Budget: s.core.Budget, NoPrefix: s.core.NoPrefix,
			Overcommit: s.core.Overcommit, MaxActive: s.core.MaxActive, Resubmit: s.core.Resubmit, Timeout: int64(s.core.Timeout),
		}
	}
	r, err := replay.Records(cluster, asStored(recs))
	switch {
	case err != nil:
		t.Fatal(err)
	case !r.Equal():
		t.Fatal(&r)
	case r.Behind != nil:
		t.Error(r.Behind)
	}
}

// asStored are records as a session would give them back.
func asStored(recs []tape.Record) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range recs {
			if r.Event != nil {
				ev, _, err := event.DecodeEvent(event.AppendEvent(nil, r.Event))
				if r.Event = &ev; err != nil {
					yield(r, err)
					return
				}
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}
