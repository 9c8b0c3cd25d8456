package sched_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// BenchmarkDecode8 is the whole decode cycle of a subserver, StepDone and
// Dispatch, for a batch of 8 requests that stay.
func BenchmarkDecode8(b *testing.B) { decode(b, 8, false, func(int) event.Peer { return 0 }) }

// BenchmarkDecode64 is the same for 64.
func BenchmarkDecode64(b *testing.B) { decode(b, 64, false, func(int) event.Peer { return 0 }) }

// BenchmarkHandOff8 is the cycle where every third row goes to the peer and comes
// back with one token at once.
func BenchmarkHandOff8(b *testing.B) {
	decode(b, 8, false, func(i int) event.Peer { return event.Peer(i % 3 / 2) })
}

// BenchmarkHandOff64 is the same for 64.
func BenchmarkHandOff64(b *testing.B) {
	decode(b, 64, false, func(i int) event.Peer { return event.Peer(i % 3 / 2) })
}

// BenchmarkResubmit8 is BenchmarkHandOff8 where every return is a new request of
// up to 2048 tokens, which finds its blocks in the prefix tree.
func BenchmarkResubmit8(b *testing.B) {
	decode(b, 8, true, func(i int) event.Peer { return event.Peer(i % 3 / 2) })
}

// bench drives one core; what it hands to the core is allocated beforehand.
type bench struct {
	b    *testing.B
	c    *sched.Core
	now  int64
	cmds []event.Command
	rows []event.RowResult
	ev   event.Event
	step event.StepResult
}

func (x *bench) tell(ev event.Event) []event.Command {
	x.now += 1000
	x.ev = ev
	x.ev.At = x.now
	x.cmds = x.c.Step(&x.ev, x.cmds[:0])
	return x.cmds
}

func (x *bench) fresh(cfg sched.Config) {
	x.b.StopTimer()
	var err error
	if x.c, err = sched.New(cfg); err != nil {
		x.b.Fatal(err)
	}
	x.b.StartTimer()
}

func (x *bench) arrive(id event.ReqID, prompt []event.Token, most int) {
	x.tell(event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: prompt, MaxTokens: most, EOS: []event.Token{7}}})
}

// answer ends the running batch; every row that sampled keeps token 9.
func (x *bench) answer(dest func(i int) event.Peer) []event.Command {
	run := x.c.Running()
	x.rows = x.rows[:0]
	for i := range run.Rows {
		if run.Rows[i].Sample {
			d := dest(i)
			x.rows = append(x.rows, event.RowResult{Req: run.Rows[i].Req, Output: event.Output{Token: 9}, Dest: d, Action: event.Action(d)})
		}
	}
	x.step = event.StepResult{Batch: run.ID, Rows: x.rows}
	return x.tell(event.Event{Kind: event.StepDone, Step: &x.step})
}

func decode(b *testing.B, batch int, resubmit bool, dest func(i int) event.Peer) {
	const length = 1 << 12
	x := &bench{b: b}
	back := make([]event.PeerReq, batch)
	seen := make([]int, 2*batch)
	suffix := []event.Token{9}
	dispatch := event.Event{Kind: event.Dispatch}
	left := 0
	b.ReportAllocs()
	for b.Loop() {
		if left == 0 {
			x.fresh(sched.Config{Seats: []int{batch, batch}, KVTokens: []int{batch * length, batch * length}, Timeout: 1 << 40, Resubmit: resubmit})
			b.StopTimer()
			for id := range batch {
				x.arrive(event.ReqID(id+1), make([]event.Token, 64), length-64)
			}
			x.tell(dispatch)
			left = length/2 - 64
			b.StartTimer()
		}
		left--
		n := 0
		for _, m := range x.answer(func(i int) event.Peer { return dest(i + left) }) {
			if m.Kind != event.SendPeer {
				continue
			}
			held := m.Peer.Loc + len(m.Peer.Suffix)
			lengths := seen[2*n : 2*n+2]
			lengths[0], lengths[1] = held, held+1
			back[n] = event.PeerReq{
				ID: m.Peer.ID, From: 1, Hop: m.Peer.Hop + 1, Loc: held, Suffix: suffix,
				Seen: lengths, Status: event.Alive, Limits: m.Peer.Limits,
			}
			n++
		}
		for i := range back[:n] {
			x.tell(event.Event{Kind: event.PeerIn, Peer: &back[i]})
		}
		x.tell(dispatch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/row")
}

// BenchmarkChunks is a step in which 7 requests decode beside one part of a long
// prefill, 64 tokens of 2048.
func BenchmarkChunks(b *testing.B) {
	const batch, prompt, chunk, steps = 8, 2048, 64, 2048 / 64
	x := &bench{b: b}
	dispatch := event.Event{Kind: event.Dispatch}
	stay := func(int) event.Peer { return 0 }
	long := make([]event.Token, prompt)
	for i := range long {
		long[i] = event.Token(i)
	}
	left := 0
	b.ReportAllocs()
	for b.Loop() {
		if left == 0 {
			x.fresh(sched.Config{Seats: []int{batch}, KVTokens: []int{1 << 17}, Chunk: chunk})
			b.StopTimer()
			for id := range batch - 1 {
				x.arrive(event.ReqID(id+1), []event.Token{1}, 4096)
			}
			x.tell(dispatch)
			x.answer(stay)
			x.arrive(batch, long, 64)
			x.tell(dispatch)
			left = steps - 1
			b.StartTimer()
		}
		left--
		x.answer(stay)
		x.tell(dispatch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/row")
}

// BenchmarkPrefix is a request's whole life of two steps: arrival, a prompt of
// 2048 tokens that the cache knows but for the last 16, one token, the end.
func BenchmarkPrefix(b *testing.B) { prefix(b, false) }

// BenchmarkNoPrefix is the same without a cache.
func BenchmarkNoPrefix(b *testing.B) { prefix(b, true) }

func prefix(b *testing.B, off bool) {
	x := &bench{b: b}
	prompt := make([]event.Token, 2048)
	for i := range prompt {
		prompt[i] = event.Token(i)
	}
	x.fresh(sched.Config{Seats: []int{8}, KVTokens: []int{1 << 14}, NoPrefix: off})
	id := event.ReqID(0)
	b.ReportAllocs()
	for b.Loop() {
		id++
		x.arrive(id, prompt, 1)
		x.tell(event.Event{Kind: event.Dispatch})
		x.answer(func(int) event.Peer { return 0 })
	}
}

// BenchmarkPreempt is the life of two requests on a pool that holds one and a
// half: the younger is robbed, waits until the older ends, and finds most of its
// KV again.
func BenchmarkPreempt(b *testing.B) {
	x := &bench{b: b}
	stay := func(int) event.Peer { return 0 }
	dispatch := event.Event{Kind: event.Dispatch}
	id := event.ReqID(0)
	x.fresh(sched.Config{Seats: []int{2}, KVTokens: []int{16 * 8}, Overcommit: 200})
	prompt := make([]event.Token, 48)
	b.ReportAllocs()
	for b.Loop() {
		for i := range prompt {
			prompt[i] = event.Token(id) + event.Token(i%2)
		}
		x.arrive(id+1, prompt, 32)
		for i := range prompt {
			prompt[i] = -prompt[i] - 3
		}
		x.arrive(id+2, prompt, 32)
		id += 2
		for x.c.Counts().Finished < int(id) {
			x.tell(dispatch)
			x.answer(stay)
		}
	}
}
