package sim

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Record gives add what happens as the records that a tape would have: each
// event, its commands, and the load of a core where that changed. It is called
// before Run and goes beside a Tap, under whose rules it is.
func (s *Sim) Record(add func(*tape.Record)) {
	loads := make([]tape.Load, s.fab.Len())
	seq := uint64(0)
	put := func(r tape.Record) {
		seq++
		r.Seq = seq
		add(&r)
	}
	tap := s.cfg.Tap
	s.cfg.Tap = func(core event.Peer, ev *event.Event, cmds []event.Command) {
		if tap != nil {
			tap(core, ev, cmds)
		}
		put(tape.Record{At: ev.At, Core: core, Kind: tape.KindEvent, Event: ev})
		for i := range cmds {
			put(tape.Record{At: ev.At, Core: core, Kind: tape.KindCommand, Command: &cmds[i]})
		}
		if l := s.fab.Core(core).Load(); l != loads[core] {
			loads[core] = l
			put(tape.Record{At: ev.At, Core: core, Kind: tape.KindLoad, Load: &l})
		}
	}
}
