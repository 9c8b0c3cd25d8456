package fabric_test

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

// entry is one Step of one core: what it was told and what it ordered.
type entry struct {
	core event.Peer
	ev   event.Event
	cmds []event.Command
}

// wrote is a committed token and its writer.
type wrote struct {
	token event.Token
	by    event.Peer
}

// world is a cluster with fake models and a fake router, driven in any order. It
// keeps the books that the cores promise to keep and compares.
type world struct {
	f      *fabric.Fabric
	router func(p event.Peer, v sched.View) event.RowResult
	now    int64
	log    []entry

	text   map[event.ReqID][]wrote         // emitted, from the prompt on
	prompt map[event.ReqID]int             // its length
	done   map[event.ReqID]event.Reason    // finished, with the reason
	kv     []map[event.ReqID][]event.Token // what each runner's KV holds
	wake   []event.Command                 // the last WakeAt of each core
}

func newWorld(cfgs []sched.Config, receive fabric.Receive) (*world, error) {
	f, err := fabric.New(cfgs, receive)
	if err != nil {
		return nil, err
	}
	w := &world{
		f:      f,
		text:   map[event.ReqID][]wrote{},
		prompt: map[event.ReqID]int{},
		done:   map[event.ReqID]event.Reason{},
		wake:   make([]event.Command, len(cfgs)),
	}
	for range cfgs {
		w.kv = append(w.kv, map[event.ReqID][]event.Token{})
	}
	return w, nil
}

func (w *world) step(p event.Peer, ev event.Event) error {
	ev.At = w.now
	return w.after(p, ev, w.f.Step(p, &ev, nil))
}

func (w *world) deliver(from, to event.Peer) error {
	ev, cmds, ok := w.f.Deliver(from, to, w.now, nil)
	if !ok {
		return fmt.Errorf("nothing from %d to %d", from, to)
	}
	return w.after(to, ev, cmds)
}

func (w *world) after(p event.Peer, ev event.Event, cmds []event.Command) error {
	w.log = append(w.log, entry{p, ev, cmds})
	for i := range cmds {
		if err := w.ordered(p, &cmds[i]); err != nil {
			return fmt.Errorf("subserver %d, %v, %v: %w", p, ev, cmds[i], err)
		}
	}
	if err := w.f.Check(); err != nil {
		return fmt.Errorf("after %v at %d: %w", ev, p, err)
	}
	return w.workConserved(p, ev)
}

func (w *world) ordered(p event.Peer, c *event.Command) error {
	if _, over := w.done[c.Req]; over && (c.Kind == event.Finish || c.Kind == event.Reject || c.Kind == event.Admit) {
		return fmt.Errorf("INV-10: %v behind the end", c.Kind)
	}
	switch c.Kind {
	case event.Emit:
		if want := w.prompt[c.Req] + len(w.text[c.Req]); c.Pos != want {
			return fmt.Errorf("INV-9: position %d follows %d", c.Pos, want-1)
		}
		w.text[c.Req] = append(w.text[c.Req], wrote{c.Token, p})
	case event.Finish:
		w.done[c.Req] = c.Reason
		if c.Reason == event.ReasonStop || c.Reason == event.ReasonLength {
			if have := w.prompt[c.Req] + len(w.text[c.Req]); c.N > have {
				return fmt.Errorf("finished with %d tokens of %d", c.N, have)
			}
		}
	case event.Reject:
		w.done[c.Req] = event.ReasonError
	case event.RunBatch:
		return w.run(p, c.Batch)
	case event.Free:
		if _, ok := w.kv[p][c.Req]; !ok {
			return fmt.Errorf("INV-4: freed twice")
		}
		delete(w.kv[p], c.Req)
	case event.WakeAt:
		w.wake[p] = *c
	case event.SendPeer, event.TellActive:
		if c.Kind == event.TellActive && p != event.Front {
			return fmt.Errorf("only the front counts")
		}
	}
	return nil
}

// run feeds the rows into the KV of the fake runner: afterwards it must hold
// exactly the request's tokens.
func (w *world) run(p event.Peer, b *event.Batch) error {
	for i := range b.Rows {
		row := &b.Rows[i]
		have := w.kv[p][row.Req]
		if row.Prefill != (len(have) == 0) {
			return fmt.Errorf("INV-5: row of request %d has prefill=%v with %d positions in KV", row.Req, row.Prefill, len(have))
		}
		refed := len(have) - row.Start
		if row.Recomputed != 0 || refed < 0 || refed > 1 || refed == 1 && len(row.Tokens) != 1 {
			return fmt.Errorf("INV-14: row of request %d feeds %d from %d where %d are fed", row.Req, len(row.Tokens), row.Start, len(have))
		}
		w.kv[p][row.Req] = append(slices.Clone(have[:row.Start]), row.Tokens...)
		v, ok := w.f.Core(p).View(row.Req)
		if !ok || !slices.Equal(w.kv[p][row.Req], v.Tokens) {
			return fmt.Errorf("INV-5: request %d has KV for %v and holds %v", row.Req, w.kv[p][row.Req], v.Tokens)
		}
	}
	return nil
}

// workConserved: an idle core that was told to dispatch runs a batch, waits for
// a timer, or has nothing that fits its KV (case E5).
func (w *world) workConserved(p event.Peer, ev event.Event) error {
	c := w.f.Core(p)
	l := c.Load()
	if ev.Kind != event.Dispatch || c.Running() != nil || l.Ready == 0 {
		return nil
	}
	if l.Ready >= l.B {
		return fmt.Errorf("INV-8: subserver %d idles with %d ready and B = %d", p, l.Ready, l.B)
	}
	if w.wake[p].Kind != event.WakeAt || w.wake[p].At <= w.now {
		return fmt.Errorf("INV-8: subserver %d idles at %d without a timer, %v", p, w.now, w.wake[p])
	}
	return nil
}

func (w *world) arrive(id event.ReqID, a *event.Arrival) error {
	w.prompt[id] = len(a.Prompt)
	return w.step(event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: a})
}

// finish ends the batch that runs at p with what models and router say.
func (w *world) finish(p event.Peer) error {
	b := w.f.Core(p).Running()
	res := &event.StepResult{Batch: b.ID, ExecNs: 1}
	for i := range b.Rows {
		v, _ := w.f.Core(p).View(b.Rows[i].Req)
		row := w.router(p, v)
		row.Req = b.Rows[i].Req
		res.Rows = append(res.Rows, row)
	}
	return w.step(p, event.Event{Kind: event.StepDone, Step: res})
}

// moves lists what could happen next: links that deliver, batches that end, and
// cores that dispatch.
type move struct {
	deliver  bool
	from, to event.Peer
	finish   bool
}

func (w *world) moves() []move {
	var out []move
	n := event.Peer(w.f.Len())
	for from := range n {
		for to := range n {
			if _, ok := w.f.Next(from, to); ok {
				out = append(out, move{deliver: true, from: from, to: to})
			}
		}
	}
	for p := range n {
		if w.f.Core(p).Running() != nil {
			out = append(out, move{finish: true, to: p})
		} else if w.f.Core(p).Load().Ready > 0 {
			out = append(out, move{to: p})
		}
	}
	return out
}

func (w *world) make(m move) error {
	switch {
	case m.deliver:
		return w.deliver(m.from, m.to)
	case m.finish:
		return w.finish(m.to)
	default:
		return w.step(m.to, event.Event{Kind: event.Dispatch})
	}
}

// drain lets everything run to its end, choosing among the moves by pick. Time
// passes by tick with each move. Where nobody can move but by a timer, time
// jumps to it if guard is set; else that is a deadlock.
func (w *world) drain(pick func(n int) int, tick int64, guard bool) error {
	quiet := 0
	for limit := 200_000; limit > 0; limit-- {
		ms := w.moves()
		if len(ms) == 0 {
			if !w.f.Idle() {
				return fmt.Errorf("nothing can move and requests are left")
			}
			return nil
		}
		batches := w.running()
		m := ms[pick(len(ms))]
		w.now += tick
		if err := w.make(m); err != nil {
			return err
		}
		if m.deliver || m.finish || w.running() != batches {
			quiet = 0
			continue
		}
		if quiet++; quiet < 50*len(ms) || slices.ContainsFunc(ms, func(m move) bool { return m.deliver || m.finish }) {
			continue
		}
		if !guard {
			return fmt.Errorf("INV-7: every ready request waits for others:\n%s", w.loads())
		}
		if err := w.fire(); err != nil {
			return err
		}
		quiet = 0
	}
	return fmt.Errorf("no end in sight:\n%s", w.loads())
}

// fire lets the earliest timer pass and dispatches.
func (w *world) fire() error {
	first := -1
	for p, c := range w.wake {
		if c.Kind == event.WakeAt && c.At > w.now && (first < 0 || c.At < w.wake[first].At) {
			first = p
		}
	}
	if first < 0 {
		return fmt.Errorf("INV-8: everybody waits and no timer is out:\n%s", w.loads())
	}
	c := w.wake[first]
	w.now = c.At
	p := event.Peer(first)
	if err := w.step(p, event.Event{Kind: event.Wake, Gen: c.Gen}); err != nil {
		return err
	}
	return w.step(p, event.Event{Kind: event.Dispatch})
}

func (w *world) running() (n int) {
	for p := range event.Peer(w.f.Len()) {
		if w.f.Core(p).Running() != nil {
			n++
		}
	}
	return n
}

func (w *world) loads() string {
	s := ""
	for p := range event.Peer(w.f.Len()) {
		s += fmt.Sprintf("%d: %+v\n", p, w.f.Core(p).Load())
	}
	return s
}

// leftovers says what a drained world still holds.
func (w *world) leftovers() error {
	for p, kv := range w.kv {
		if len(kv) > 0 {
			return fmt.Errorf("INV-4: subserver %d still has KV of %d requests", p, len(kv))
		}
		if l := w.f.Core(event.Peer(p)).Load(); l.KVUsed != 0 {
			return fmt.Errorf("INV-4: subserver %d still counts %d tokens of KV", p, l.KVUsed)
		}
	}
	k := w.f.Core(event.Front).Counts()
	if k.Arrived != k.Finished+k.Cancelled+k.Rejected || k.Arrived != len(w.done) {
		return fmt.Errorf("INV-3: %+v with %d ends seen", k, len(w.done))
	}
	return nil
}
