package main

import (
	"iter"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// costSamples are the batches and messages of one stretch of a session in which
// clock and speed did not change.
type costSamples struct {
	clock    string // as the tape has it, with the profile where there is one
	speed    string
	cores    [][]cost.Sample // by subserver
	messages []time.Duration
}

func (s *costSamples) batches() int {
	n := 0
	for _, c := range s.cores {
		n += len(c)
	}
	return n
}

// costFold takes batches and messages from a tape.
type costFold struct {
	found  []*costSamples
	now    *costSamples // of the clock in force
	clock  string
	speed  string
	pauses int
	cores  []costCore
	sent   map[messageKey]sending
}

// costCore is what is known of a subserver's last batch.
type costCore struct {
	in     *costSamples
	batch  uint64 // 0: none is awaited
	sums   cost.Batch
	begin  int64
	pauses int
	exec   int64 // ns
	ended  bool  // and nothing else has happened here since
}

// messageKey tells the messages apart that are under way at the same time.
type messageKey struct {
	from, to event.Peer
	req      event.ReqID
	hop      uint32
	status   event.Status
}

type sending struct {
	at int64
	in *costSamples
}

// foldCosts reads the whole tape of a session with that many subservers.
func foldCosts(records iter.Seq2[tape.Record, error], models int) ([]*costSamples, error) {
	f := &costFold{cores: make([]costCore, models), sent: map[messageKey]sending{}}
	f.change()
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		f.add(&r)
	}
	return f.found, nil
}

func (f *costFold) add(r *tape.Record) {
	if s, ok := r.Host.(*tape.Setting); ok {
		f.setting(s)
		return
	}
	if r.Core < 0 || int(r.Core) >= len(f.cores) {
		return
	}
	switch {
	case r.Event != nil:
		f.event(r)
	case r.Command != nil && r.Command.Kind == event.RunBatch:
		f.start(r)
	case r.Command != nil && r.Command.Kind == event.SendPeer && r.Command.Peer != nil:
		c := r.Command
		f.sent[messageKey{r.Core, c.To, c.Peer.ID, c.Peer.Hop, c.Peer.Status}] = sending{r.At, f.now}
	}
}

// setting goes on with the samples of the clock and speed now in force.
func (f *costFold) setting(s *tape.Setting) {
	switch s.Setting {
	case "clock":
		f.clock = s.New
	case "speed":
		f.speed = s.New
	case "paused":
		f.pauses++
	default:
		return
	}
	f.change()
}

func (f *costFold) change() {
	for _, s := range f.found {
		if s.clock == f.clock && s.speed == f.speed {
			f.now = s
			return
		}
	}
	f.now = &costSamples{clock: f.clock, speed: f.speed, cores: make([][]cost.Sample, len(f.cores))}
	f.found = append(f.found, f.now)
}

func (f *costFold) event(r *tape.Record) {
	c, e := &f.cores[r.Core], r.Event
	switch e.Kind {
	case event.Dispatch:
		return
	case event.StepDone:
		f.done(r.Core, e.Step)
		return
	case event.PeerIn:
		if m := e.Peer; m != nil {
			k := messageKey{m.From, r.Core, m.ID, m.Hop, m.Status}
			if s, ok := f.sent[k]; ok {
				s.in.messages = append(s.in.messages, time.Duration(max(r.At-s.at, 0)))
				delete(f.sent, k)
			}
		}
	}
	// The next batch may have waited for this, so what lies between is no overhead.
	c.ended = false
}

// start notes a batch, and what passed since the one before if its rows were
// ready then.
func (f *costFold) start(r *tape.Record) {
	c := &f.cores[r.Core]
	if c.ended && c.in == f.now && c.pauses == f.pauses {
		own := c.in.cores[r.Core]
		own[len(own)-1].Gap = time.Duration(max(r.At-c.begin-c.exec, 0))
	}
	b := r.Command.Batch
	*c = costCore{in: f.now, batch: b.ID, sums: cost.Of(b), begin: r.At, pauses: f.pauses}
}

// done takes the sample of the batch that has ended.
func (f *costFold) done(core event.Peer, s *event.StepResult) {
	c := &f.cores[core]
	if s == nil || c.batch == 0 || s.Batch != c.batch {
		return
	}
	c.batch, c.exec, c.ended = 0, s.ExecNs, s.Err == "" && s.ExecNs > 0
	if c.ended {
		own := &c.in.cores[core]
		*own = append(*own, cost.Sample{Batch: c.sums, Exec: time.Duration(s.ExecNs), Gap: cost.NoGap})
	}
}
