package sched_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// BenchmarkDecode is the whole decode cycle of a subserver, StepDone and
// Dispatch, for a batch of 8 requests that stay.
func BenchmarkDecode(b *testing.B) {
	benchmark(b, 8, func(i int) event.Peer { return 0 })
}

// BenchmarkDecode64 is the same for 64.
func BenchmarkDecode64(b *testing.B) {
	benchmark(b, 64, func(i int) event.Peer { return 0 })
}

// BenchmarkHandOff is the cycle where every third row goes to the peer and comes
// back with one token at once.
func BenchmarkHandOff(b *testing.B) {
	benchmark(b, 8, func(i int) event.Peer { return event.Peer(i % 3 / 2) })
}

func benchmark(b *testing.B, batch int, dest func(i int) event.Peer) {
	const length = 1 << 12
	var c *sched.Core
	var cmds []event.Command
	var now int64
	step := func(ev event.Event) []event.Command {
		now += 1000
		ev.At = now
		cmds = c.Step(&ev, cmds[:0])
		return cmds
	}
	left := 0
	var back []*event.PeerReq
	res := make([]event.RowResult, 0, batch)
	b.ReportAllocs()
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			var err error
			c, err = sched.New(sched.Config{Seats: []int{batch, batch}, KVTokens: []int{batch * length, batch * length}})
			if err != nil {
				b.Fatal(err)
			}
			for id := range batch {
				step(event.Event{Kind: event.Arrive, Req: event.ReqID(id + 1), Arrival: &event.Arrival{
					Prompt: make([]event.Token, 64), MaxTokens: length - 64, EOS: []event.Token{7},
				}})
			}
			step(event.Event{Kind: event.Dispatch})
			left = length/2 - 64
			b.StartTimer()
		}
		left--
		run := c.Running()
		res = res[:0]
		for i := range run.Rows {
			d := dest(i + left)
			res = append(res, event.RowResult{Req: run.Rows[i].Req, Output: event.Output{Token: 9}, Dest: d, Action: event.Action(d)})
		}
		sent := step(event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: run.ID, Rows: res}})
		for _, m := range sent {
			if m.Kind != event.SendPeer {
				continue
			}
			p := m.Peer
			held := p.Loc + len(p.Suffix)
			back = append(back, &event.PeerReq{
				ID: p.ID, From: 1, Hop: p.Hop + 1, Loc: held, Suffix: []event.Token{9},
				Seen: []int{held, held + 1}, Status: event.Alive, Limits: p.Limits,
			})
		}
		for _, m := range back {
			step(event.Event{Kind: event.PeerIn, Peer: m})
		}
		back = back[:0]
		step(event.Event{Kind: event.Dispatch})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/row")
}
