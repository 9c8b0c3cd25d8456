package rows

import (
	"iter"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Row is one token: committed, or a dropped candidate, or one that was committed
// and taken back before it was emitted.
type Row struct {
	Seq       uint64 // of the record that ended the step (or committed the token)
	At        int64  // ns, same record
	Req       event.ReqID
	Pos       int // absolute: the prompt's first token is 0
	Token     event.Token
	Committed bool          // and emitted
	Truncated bool          // a later decision took it back
	Model     event.Peer    // whose candidate it is
	Dest      event.Peer    // where it was sent; where the runtime overruled the router, where it went
	Action    event.Action  // what took effect: Keep where it was committed, also where it was taken back
	Cut       int           // Truncate: the position from which on tokens were taken back
	Output    *event.Output // signals of the decode step; nil if the token came with a hand-off
	Score     float32       // of a trained head, if Scored
	Scored    bool
	Router    string     // hash of the router that decided, empty with Output nil
	Fault     string     // router fault
	Batch     uint64     // number at Model; 0 if unknown
	Rule      event.Rule // that started the batch
	BatchRows int
	WaitedNs  int64 // of this request for the batch
}

// All yields the rows of a tape in its order: by the step that made them, and
// within a step by row; those of tokens that were held back where they are emitted
// or taken back. It holds what is not decided yet, no more.
func All(src Source, x *Index) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		j := join{x: x, cores: map[event.Peer]*core{}, held: map[event.ReqID][]Row{}}
		for r, err := range src.Records() {
			if err != nil {
				yield(Row{}, err)
				return
			}
			j.add(&r)
			if !j.flush(yield, false) {
				return
			}
		}
		j.flush(yield, true)
	}
}

// join pairs each core's finished steps with the commands that follow them.
type join struct {
	x     *Index
	cores map[event.Peer]*core
	queue []*step // by the record that began them; the front may be undecided

	held map[event.ReqID][]Row // committed and not emitted, by position
}

// core is one subserver: its running batch and the step whose commands are
// being read.
type core struct {
	batch *event.Batch
	at    *step
}

// candidate is a row of a step.
type candidate struct {
	Row
	hold  bool // the router holds tokens back
	moved bool // to those that are held back
}

// step is a finished step's rows, undecided until the core is told something
// else.
type step struct {
	rows    []candidate
	last    uint64 // number of the record that spoke of it last
	decided bool
}

// reach is how many records behind a core's last order another of the same step
// may come. Drivers write a step's orders right behind the event, so that a
// core which is idle afterwards need not hold up the rows of all others.
const reach = 4096

func (j *join) add(r *tape.Record) {
	if len(j.queue) > 0 && !j.queue[0].decided && r.Seq > j.queue[0].last+reach {
		for _, c := range j.cores {
			if c.at == j.queue[0] {
				j.decide(c)
			}
		}
	}
	if r.Kind != tape.KindEvent && r.Kind != tape.KindCommand {
		return
	}
	c := j.cores[r.Core]
	if c == nil {
		c = &core{}
		j.cores[r.Core] = c
	}
	if r.Kind == tape.KindEvent {
		j.decide(c)
		if r.Event.Kind == event.StepDone && r.Event.Step != nil {
			c.at = &step{rows: candidates(r, c.batch), last: r.Seq}
			j.queue = append(j.queue, c.at)
			c.batch = nil
		}
		return
	}
	cmd := r.Command
	if c.at != nil {
		c.at.last = r.Seq
	}
	switch cmd.Kind {
	case event.RunBatch:
		c.batch = cmd.Batch
	case event.Emit:
		row := c.find(cmd.Req)
		switch {
		case row == nil:
		case row.hold:
			j.hold(row)
		case !row.Committed && row.Pos == cmd.Pos && row.Token == cmd.Token:
			row.Committed, row.Action = true, event.Keep
			return
		}
		j.decided(j.emitted(r))
	case event.SendPeer:
		if m := cmd.Peer; m != nil && (m.Status == event.New || m.Status == event.Alive) {
			row := c.find(m.ID)
			if row != nil {
				row.Dest = cmd.To
				j.hold(row)
			}
			j.decided(j.taken(m)...)
		}
	case event.Finish:
		delete(j.held, cmd.Req)
	case event.Note:
		c.note(cmd)
	}
}

// note follows where the runtime overruled the router: a fault and a spent
// budget both send the request home.
func (c *core) note(cmd *event.Command) {
	if cmd.Note != event.NoteFault && cmd.Note != event.NoteBudget {
		return
	}
	row := c.find(cmd.Req)
	if row == nil {
		return
	}
	row.Dest = event.Front
	if cmd.Note == event.NoteFault {
		if row.hold && cmd.Text != row.Fault {
			row.Action, row.Cut = event.Keep, 0 // the core says so, and overrules the router
		}
		row.Fault = cmd.Text
	}
}

// candidates are the rows of a finished step. Without the batch that it ends,
// as on a tape that begins in its middle, there are none: their positions are
// unknown, and their commits become rows of their own.
func candidates(r *tape.Record, b *event.Batch) []candidate {
	st := r.Event.Step
	if b == nil || b.ID != st.Batch || len(st.Rows) == 0 {
		return nil
	}
	out := make([]candidate, 0, len(st.Rows))
	for i := range b.Rows {
		in := &b.Rows[i]
		if !in.Sample {
			continue
		}
		if len(out) == len(st.Rows) {
			break
		}
		res := &st.Rows[len(out)]
		c := candidate{hold: res.Hold > 0, Row: Row{
			Seq: r.Seq, At: r.At, Req: res.Req, Pos: in.Start + len(in.Tokens), Token: res.Output.Token,
			Model: r.Core, Dest: res.Dest, Action: res.Action, Output: &res.Output,
			Router: res.Router, Fault: res.Fault, Score: res.Score, Scored: res.Scored,
			Batch: b.ID, Rule: b.Rule, BatchRows: len(b.Rows), WaitedNs: in.WaitedNs,
		}}
		if res.Action == event.Truncate {
			c.Cut = res.At
		}
		out = append(out, c)
	}
	return out
}

func (c *core) find(id event.ReqID) *candidate {
	if c.at == nil {
		return nil
	}
	for i := range c.at.rows {
		if c.at.rows[i].Req == id {
			return &c.at.rows[i]
		}
	}
	return nil
}

// decide says that all is known of a core's step, but for what is held back.
func (j *join) decide(c *core) {
	if c.at == nil {
		return
	}
	for i := range c.at.rows {
		j.hold(&c.at.rows[i])
	}
	c.at.decided = true
	c.at = nil
}

// flush yields the rows of all decided steps at the front of the queue.
func (j *join) flush(yield func(Row, error) bool, all bool) bool {
	n := 0
	for ; n < len(j.queue) && (all || j.queue[n].decided); n++ {
		for i := range j.queue[n].rows {
			if row := &j.queue[n].rows[i].Row; j.keep(row) && !yield(*row, nil) {
				return false
			}
		}
		j.queue[n] = nil
	}
	j.queue = j.queue[n:]
	return true
}

// keep leaves out what is cut, and candidates of requests that were over when
// the step ended: neither committed nor dropped.
func (j *join) keep(r *Row) bool {
	if r.Committed {
		return j.x.inText(r.Req, r.Pos)
	}
	return (r.Action != event.Keep || r.Truncated) && j.x.counted(r.Req, r.Pos)
}
