package metrics_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/tape"
)

// closedLoop runs n endless requests through the real cores in virtual time: the
// small model drops its candidate for the large one with probability p, the large
// one writes it and gives control back. Messages take no time.
type closedLoop struct {
	t    *testing.T
	fab  *fabric.Fabric
	p    float64
	step [2]int64 // ns of a batch
	ends [2]int64 // of the running batch, 0 if idle
	now  int64
	load [2]tape.Load
	sink []folder

	route func(p event.Peer, req event.ReqID, pos int) event.RowResult // in place of chance, if set
}

func (c *closedLoop) tell(p event.Peer, ev event.Event) {
	ev.At = c.now
	c.note(p, &ev, c.fab.Step(p, &ev, nil))
}

func (c *closedLoop) record(r tape.Record) {
	r.At = c.now
	for _, f := range c.sink {
		f.Add(&r)
	}
}

// note writes what happened to the tape and starts the clock of a batch.
func (c *closedLoop) note(p event.Peer, ev *event.Event, cmds []event.Command) {
	c.record(tape.Record{Core: p, Kind: tape.KindEvent, Event: ev})
	for i := range cmds {
		c.record(tape.Record{Core: p, Kind: tape.KindCommand, Command: &cmds[i]})
		if cmds[i].Kind == event.RunBatch {
			c.ends[p] = c.now + c.step[p]
		}
	}
	if l := c.fab.Core(p).Load(); l != c.load[p] {
		c.load[p] = l
		c.record(tape.Record{Core: p, Kind: tape.KindLoad, Load: &l})
	}
}

func (c *closedLoop) deliver() {
	for len(c.fab.InFlight()) > 0 {
		m := c.fab.InFlight()[0]
		ev, cmds, ok := c.fab.Deliver(m.From, m.To, c.now, nil)
		if !ok {
			c.t.Fatal("a message is not delivered")
		}
		c.note(m.To, &ev, cmds)
	}
}

func (c *closedLoop) finish(p event.Peer) {
	b := c.fab.Core(p).Running()
	st := &event.StepResult{Batch: b.ID, ExecNs: c.step[p]}
	for i := range b.Rows {
		row := &b.Rows[i]
		pos := row.Start + len(row.Tokens)
		r := event.RowResult{Req: row.Req, Dest: event.Front, Output: event.Output{Token: 7}}
		key := rng.Key{Seed: 11, Req: uint64(row.Req), Pos: pos}
		switch {
		case c.route != nil:
			r = c.route(p, row.Req, pos)
			r.Req = row.Req
		case p == event.Front && key.Float64(0) < c.p:
			r.Dest, r.Action = 1, event.Drop
		}
		st.Rows = append(st.Rows, r)
	}
	c.ends[p] = 0
	c.tell(p, event.Event{Kind: event.StepDone, Step: st})
}

// run goes on until a virtual time. Everything due at one moment is stated
// before any batch starts.
func (c *closedLoop) run(until int64) {
	for {
		c.deliver()
		for p := range c.ends {
			c.tell(event.Peer(p), event.Event{Kind: event.Dispatch})
		}
		next := int64(0)
		for _, t := range c.ends {
			if t > 0 && (next == 0 || t < next) {
				next = t
			}
		}
		if next == 0 || next > until {
			return
		}
		c.now = next
		for p := range c.ends {
			if c.ends[p] == c.now {
				c.finish(event.Peer(p))
			}
		}
	}
}

// TestReferenceThroughput measures the reference points of the throughput model
// (R2R, N = 4, p = 0.35, 6.0 and 27.9 ms a step; an exact chain gives the values)
// on the tape of the real cores, and the balance of flows on it: the rate of large
// rows is p times that of small ones, as many as were dropped, and busy time is
// rows/s times step time over mean batch.
func TestReferenceThroughput(t *testing.T) {
	for _, c := range []struct {
		b    []int
		want float64
	}{
		{[]int{1, 1}, 187.190},
		{[]int{1, 2}, 195.439},
		{[]int{1, 3}, 207.954},
		{[]int{1, 4}, 190.742},
		{[]int{4, 1}, 138.31},
	} {
		const seconds, p = 120, 0.35
		fab, err := fabric.New(fabric.Uniform([]int{8, 8}, []int{1 << 19, 1 << 19}, 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		board, run := metrics.NewBoard(2), metrics.NewRun(2)
		loop := &closedLoop{t: t, fab: fab, p: p, step: [2]int64{6 * ms, 27_900_000}, sink: []folder{board, run}}
		for i := range 2 {
			loop.tell(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: &event.Policy{Kind: event.Fixed, B: c.b, W: 1 << 60}})
		}
		for id := event.ReqID(1); id <= 4; id++ {
			loop.tell(event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: []event.Token{1}, MaxTokens: 20_000}})
		}
		// The board is looked at every 10 s; the windows together are the run.
		var rows, committed, dropped, busy, batch, rate [2]float64
		var windows, waitB float64
		for at := int64(10_000); at <= seconds*1000; at += 10_000 {
			loop.run(at * ms)
			snap := board.Snapshot(at * ms)
			windows++
			waitB += snap.Peers[1].WaitB
			for i, q := range snap.Peers {
				rows[i] += q.RowsPerS
				committed[i] += q.CommittedPerS
				dropped[i] += q.DroppedPerS
				busy[i] += q.Busy
				batch[i] += q.MeanBatch
				rate[i] += q.RowsPerS / q.MeanBatch * q.StepMs / 1000
			}
		}
		for _, xs := range [][2]float64{rows, committed, dropped, busy, batch, rate} {
			if xs[0] <= 0 {
				t.Fatalf("B %v: the small model did nothing", c.b)
			}
		}
		sum := run.Summary(loop.now)
		within := func(what string, got, want, rel float64) {
			t.Helper()
			near(t, what, got, want, rel*want)
		}
		within("tokens/s of the run", sum.TokensPerS, c.want, 0.015)
		within("tokens/s of the board", (committed[0]+committed[1])/windows, c.want, 0.015)
		within("large share", sum.LargeShare, p, 0.03)
		within("switches per token", sum.SwitchesPerToken, 2*p*(1-p), 0.03) // writers are independent here
		within("small rows/s = tokens/s", rows[0]/windows, c.want, 0.015)
		within("large rows/s = dropped/s", rows[1], dropped[0], 0.001)
		within("large committed = large rows", committed[1], rows[1], 1e-9)
		within("small committed + dropped = rows", committed[0]+dropped[0], rows[0], 1e-9)
		for i := range 2 {
			within("busy = rows/s x step / mean batch", busy[i], rate[i], 0.001)
		}
		if c.b[1] > 1 && waitB <= 0 {
			t.Errorf("B %v: the large model never waits for B", c.b)
		}
		within("mean batch", sum.TokensByRole[1].MeanBatch, batch[1]/windows, 0.02)
	}
}
