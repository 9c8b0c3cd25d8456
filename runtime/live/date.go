package live

import (
	"context"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner/paced"
)

// On the live clock a fact is stated at the time at which its core hears of it:
// the delays of this machine are what is measured. Under a cost profile they are
// not: there a fact is stated at the time at which it was due, the end of a step by
// the profile or the sending of a message, and what follows begins then. A core
// that hears late thus makes up for it in its next step, and so many steps take as
// long as the profile says. Time still never falls within a core, and no fact is
// dated before its cause.

// mostLate is how late, on the wall, a core may hear of a fact and make up for
// it. What lies beyond is given up: the machine is too slow.
const mostLate = 500 * time.Millisecond

// date is the time at which a fact is stated that was due at a time, 0 for now.
func (s *subserver) date(due int64) int64 {
	now := s.rt.Now()
	switch {
	case due == 0 || due > now || s.rt.cfg.profile() == nil:
		due = now
	case due < now-int64(mostLate) && s.last < now-int64(mostLate):
		due = now
		s.rt.cfg.Pacer.Slip()
	}
	s.last = max(s.last, due)
	return s.last
}

// runStep runs a batch that was ordered at a time.
func (s *subserver) runStep(ctx context.Context, b *event.Batch, at int64) item {
	out := &stepOut{batch: b}
	outs := make([]event.Output, 0, len(b.Rows))
	p, ok := s.run.(*paced.Runner)
	if !ok {
		t0 := time.Now()
		out.outs, out.err = s.run.Run(ctx, b, outs)
		out.execNs = int64(time.Since(t0))
		return item{done: out}
	}
	var took paced.Timing
	out.outs, took, out.err = p.RunFrom(ctx, s.rt.start.Add(time.Duration(at)), b, outs)
	out.execNs = int64(took.Exec)
	return item{done: out, due: int64(took.End.Sub(s.rt.start))}
}
