package live

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
)

// What is here asks a subserver's router and writes the tape. Both drivers call
// it, goroutines and virtual time, so a tape says the same of either.

// receive asks the router about a message from a peer.
func (s *subserver) receive(msg *event.PeerReq) event.Verdict {
	if msg.Status != event.New && msg.Status != event.Alive {
		return event.Verdict{}
	}
	v, known := s.core.View(msg.ID)
	verdict := s.vm.Receive(msg, v.Tokens)
	if known && verdict.Kind == event.Append && s.stops() {
		verdict.Stop = s.stopAppended(&v, msg.Loc, verdict.Ids)
	}
	return verdict
}

// stops says whether this subserver has to look for stop strings itself.
func (s *subserver) stops() bool { return s.self == event.Front && len(s.rt.cfg.Stops) > 0 }

// stopAppended says where the answer ends if ids from position loc on end it.
func (s *subserver) stopAppended(v *sched.View, loc int, ids []event.Token) int {
	if loc < 0 || loc > len(v.Tokens) {
		return 0 // the message is wrong, or comes again as there is a gap
	}
	for i, t := range ids {
		if ends(v, loc+i, t) {
			text := append(slices.Clip(v.Tokens[:loc]), ids[:i+1]...)
			return s.rt.client.stopOf(v.ID, v.Emitted, text[min(v.Emitted, len(text)):])
		}
	}
	return 0
}

// ends says whether a token at position pos is the last of its answer.
func ends(v *sched.View, pos int, t event.Token) bool {
	return pos+1 >= v.MaxLen || slices.Contains(v.EOS, t)
}

// takeOver swaps to another router.
func (s *subserver) takeOver(sw *swap) {
	if err := s.vm.Swap(sw.program); err != nil {
		s.rt.message(tape.Error, "router "+sw.program.File+" could not start on "+event.Role(s.self, s.rt.n)+": "+err.Error())
		return
	}
	p := sw.program
	s.rt.host(s.self, &tape.Router{Phase: tape.RouterSwapped, File: p.File, Hash: p.Hash})
	if sw.left.Add(-1) == 0 {
		s.rt.host(event.None, &tape.Router{Phase: tape.RouterLive, File: p.File, Hash: p.Hash})
	}
}

// answer fills in a step's result: what the router says about each output of the
// runner, or why there is none.
func (s *subserver) answer(res *event.StepResult, b *event.Batch, outs []event.Output, err error) {
	rows := sampling(b)
	if err == nil && len(outs) != rows {
		err = fmt.Errorf("the runner answered %d of %d rows", len(outs), rows)
	}
	if err != nil {
		res.Rows, res.Err = nil, err.Error()
		return
	}
	s.announce(b, outs)
	res.Rows = make([]event.RowResult, 0, rows)
	k := 0
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Sample {
			res.Rows = append(res.Rows, s.route(row, &outs[k]))
			k++
		}
	}
}

// sampling counts the rows of a batch for which a token is drawn.
func sampling(b *event.Batch) (n int) {
	for i := range b.Rows {
		if b.Rows[i].Sample {
			n++
		}
	}
	return n
}

// route asks the router about one row.
func (s *subserver) route(row *event.Row, out *event.Output) event.RowResult {
	pos := row.Start + len(row.Tokens)
	in := scripting.Row{
		Req: row.Req, Output: out, Pos: pos, PromptLen: row.PromptLen,
		Step: pos - row.PromptLen,
	}
	stop := 0
	if v, ok := s.core.View(row.Req); ok {
		in.State, in.Fields, in.Prefill = v.State, v.Fields, !v.Sampled
		in.Emitted = v.Emitted
		in.Last = ends(&v, pos, out.Token)
		if in.Last && s.stops() {
			stop = s.rt.client.stopOf(row.Req, v.Emitted, append(slices.Clip(v.Tokens[v.Emitted:]), out.Token))
		}
	}
	dec := s.vm.Route(&in)
	res := event.RowResult{
		Req: row.Req, Output: *out, Dest: dec.Dest, Action: dec.Action, At: dec.At, Hold: s.vm.Program().Hold, Stop: stop,
		State: dec.State, Fault: dec.Fault, Router: s.vm.Program().Hash,
		Score: float32(dec.Score), Scored: dec.Scored,
	}
	if dec.Dest != s.self {
		budget, fields, fault := s.vm.Send(&in, dec.Dest)
		res.Budget, res.Fields = budget, fields
		if res.Fault == "" {
			res.Fault = fault
		}
	}
	s.remember(&in)
	return res
}

// recentRows is how many routed rows are kept for dry runs.
const recentRows = 128

func (s *subserver) remember(row *scripting.Row) {
	s.recentMu.Lock()
	if len(s.recent) < recentRows {
		s.recent = append(s.recent, *row)
	} else {
		s.recent[s.recentN%recentRows] = *row
	}
	s.recentN++
	s.recentMu.Unlock()
}

// record puts a fact and the orders it brought on the tape, and the load where
// that is another now. Nobody may change ev or cmds afterwards.
func (s *subserver) record(ev *event.Event, cmds []event.Command) {
	s.recs = append(s.recs[:0], tape.Record{At: ev.At, Core: s.self, Kind: tape.KindEvent, Event: ev})
	for i := range cmds {
		s.recs = append(s.recs, tape.Record{At: ev.At, Core: s.self, Kind: tape.KindCommand, Command: &cmds[i]})
	}
	if ld := s.core.Load(); ld != s.lastLoad {
		s.lastLoad = ld
		s.recs = append(s.recs, tape.Record{At: ev.At, Core: s.self, Kind: tape.KindLoad, Load: &ld})
		s.load.ready.Store(int32(ld.Ready))
		s.load.batch.Store(int32(ld.Running))
		s.load.at.Store(ev.At)
	}
	s.rt.tape.Append(s.recs...)
}
