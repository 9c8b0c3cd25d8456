package fabric_test

import (
	"fmt"
	"math"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/kv"
	"tokenrouter/runtime/sched"
)

// entry is one Step of one core, what it was told and what it ordered; or its
// restart.
type entry struct {
	core    event.Peer
	ev      event.Event
	cmds    []event.Command
	restart bool
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
	cfgs   []sched.Config
	router func(p event.Peer, v sched.View) event.RowResult
	now    int64
	log    []entry

	text    map[event.ReqID][]wrote      // emitted, from the prompt on
	prompt  map[event.ReqID]int          // its length
	done    map[event.ReqID]event.Reason // finished, with the reason
	runners []*runner
	wake    []event.Command // the WakeAt of each core that was not answered
	seen    map[string]int  // what happened
}

func newWorld(cfgs []sched.Config, receive fabric.Receive) (*world, error) {
	f, err := fabric.New(cfgs, receive)
	if err != nil {
		return nil, err
	}
	w := &world{
		f:      f,
		cfgs:   cfgs,
		text:   map[event.ReqID][]wrote{},
		prompt: map[event.ReqID]int{},
		done:   map[event.ReqID]event.Reason{},
		wake:   make([]event.Command, len(cfgs)),
		seen:   map[string]int{},
	}
	for _, cfg := range cfgs {
		w.runners = append(w.runners, newRunner(cfg))
	}
	return w, nil
}

func (w *world) step(p event.Peer, ev event.Event) error {
	ev.At = w.now
	batch := w.f.Core(p).Running()
	before := w.texts(p, &ev)
	cmds := w.f.Step(p, &ev, nil)
	switch {
	case ev.Kind == event.StepDone && ev.Step.Err == "":
		w.runners[p].done(batch)
	case ev.Kind == event.Wake && ev.Gen == w.wake[p].Gen:
		w.wake[p] = event.Command{}
	}
	w.cut(p, before, math.MaxInt)
	return w.after(p, ev, cmds)
}

func (w *world) deliver(from, to event.Peer) error {
	m, _ := w.f.Next(from, to)
	before := w.texts(to, &event.Event{Peer: m.Peer})
	ev, cmds, ok := w.f.Deliver(from, to, w.now, nil)
	if !ok {
		return fmt.Errorf("nothing from %d to %d", from, to)
	}
	most := math.MaxInt
	if m.Peer != nil && m.Peer.Cut {
		most = m.Peer.Loc + len(m.Peer.Suffix) // also where receive writes again what stood there
	}
	w.cut(to, before, most)
	return w.after(to, ev, cmds)
}

// texts is what core p holds of the requests that an event is about.
func (w *world) texts(p event.Peer, ev *event.Event) []sched.View {
	var out []sched.View
	add := func(id event.ReqID) {
		if v, ok := w.f.Core(p).View(id); ok {
			out = append(out, v)
		}
	}
	if ev.Step != nil {
		for i := range ev.Step.Rows {
			add(ev.Step.Rows[i].Req)
		}
	}
	if ev.Peer != nil {
		add(ev.Peer.ID)
	}
	return out
}

// cut tells the runner of core p how much of each text still stands, at most so
// much.
func (w *world) cut(p event.Peer, before []sched.View, most int) {
	for _, b := range before {
		v, _ := w.f.Core(p).View(b.ID)
		n := 0
		for n < min(len(b.Tokens), len(v.Tokens), most) && b.Tokens[n] == v.Tokens[n] {
			n++
		}
		if v.ID != 0 && n < len(b.Tokens) {
			w.runners[p].cut(b.ID, n)
		}
	}
}

func (w *world) restart(p event.Peer) error {
	if err := w.f.Restart(p); err != nil {
		return err
	}
	w.log = append(w.log, entry{core: p, restart: true})
	w.runners[p] = newRunner(w.cfgs[p])
	w.wake[p] = event.Command{}
	w.seen["restart"]++
	return w.f.Check()
}

func (w *world) after(p event.Peer, ev event.Event, cmds []event.Command) error {
	w.log = append(w.log, entry{core: p, ev: ev, cmds: cmds})
	for i := range cmds {
		err := w.ordered(p, &cmds[i])
		if err == nil {
			err = w.handedOver(p, cmds, i)
		}
		if err != nil {
			return fmt.Errorf("subserver %d, %v, %v: %w", p, ev, cmds[i], err)
		}
	}
	if err := w.f.Check(); err != nil {
		return fmt.Errorf("after %v at %d: %w", ev, p, err)
	}
	if err := w.final(p); err != nil {
		return fmt.Errorf("after %v at %d: %w", ev, p, err)
	}
	if free, cached, used := w.f.Core(p).KV(); (free+cached+used)*w.cfgs[p].Block > w.cfgs[p].KVTokens[p] || free < 0 || cached < 0 {
		return fmt.Errorf("INV-4: %d free, %d cached, %d used", free, cached, used)
	}
	return w.workConserved(p, ev)
}

// final tests what core p knows to be emitted: the client has it, and whoever
// has the pen knows of all that the client has (INV-18, INV-19).
func (w *world) final(p event.Peer) error {
	c := w.f.Core(p)
	for _, id := range c.Requests() {
		v, _ := c.View(id)
		text := w.text[id]
		have := w.prompt[id] + len(text)
		if v.Emitted > have || v.Emitted < have && (v.Phase == sched.Ready || v.Phase == sched.Running) {
			return fmt.Errorf("INV-18: %d tokens of request %d are known to be emitted, %d are", v.Emitted, id, have)
		}
		for k := w.prompt[id]; k < v.Emitted; k++ {
			if v.Tokens[k] != text[k-w.prompt[id]].token {
				return fmt.Errorf("INV-19: position %d of request %d was emitted as %d and is %d", k, id, text[k-w.prompt[id]].token, v.Tokens[k])
			}
		}
	}
	return nil
}

func (w *world) ordered(p event.Peer, c *event.Command) error {
	w.count(c)
	if _, over := w.done[c.Req]; over && (c.Kind == event.Finish || c.Kind == event.Reject || c.Kind == event.Admit) {
		return fmt.Errorf("INV-10: %v behind the end", c.Kind)
	}
	switch c.Kind {
	case event.Emit:
		if want := w.prompt[c.Req] + len(w.text[c.Req]); c.Pos != want {
			return fmt.Errorf("INV-9: position %d follows %d", c.Pos, want-1)
		}
		by := p
		if c.Wrote > 0 {
			by = c.Wrote - 1
			w.seen["emit for another"]++
		}
		if v, ok := w.f.Core(p).View(c.Req); ok && c.Pos+1 < len(v.Tokens) {
			w.seen["emit later"]++
		}
		w.text[c.Req] = append(w.text[c.Req], wrote{c.Token, by})
	case event.Finish:
		w.done[c.Req] = c.Reason
		if have := w.prompt[c.Req] + len(w.text[c.Req]); c.N > have {
			return fmt.Errorf("finished with %d tokens of %d", c.N, have)
		}
	case event.Reject:
		w.done[c.Req] = event.ReasonError
	case event.RunBatch:
		return w.runners[p].run(c.Batch, func(id event.ReqID) sched.View {
			v, _ := w.f.Core(p).View(id)
			return v
		})
	case event.Free:
		return w.runners[p].free(c.Req)
	case event.Preempt:
		return w.runners[p].preempt(c.Req, c.N)
	case event.WakeAt:
		if old := &w.wake[p]; old.Kind == event.WakeAt && old.At <= c.At {
			return fmt.Errorf("INV-8: a timer for %d and one for %d", old.At, c.At)
		}
		w.wake[p] = *c
	case event.TellActive:
		if p != event.Front {
			return fmt.Errorf("only the front counts")
		}
	}
	return nil
}

// handedOver tests the i-th order where it takes KV or passes the pen: nobody is
// preempted where all that is admitted fits, and under Resubmit whoever passes
// the pen has given the KV back just before, on the record (INV-13, INV-14).
func (w *world) handedOver(p event.Peer, cmds []event.Command, i int) error {
	pen := func(c *event.Command) bool {
		return c.Kind == event.SendPeer && (c.Peer.Status == event.New || c.Peer.Status == event.Alive)
	}
	c, cfg := &cmds[i], &w.cfgs[p]
	switch {
	case c.Kind == event.Preempt && cfg.Overcommit <= 100 &&
		(!cfg.Resubmit || i+1 == len(cmds) || !pen(&cmds[i+1]) || cmds[i+1].Req != c.Req):
		return fmt.Errorf("INV-13: preempted although all that is admitted fits")
	case pen(c) && cfg.Resubmit:
		w.seen["switch without KV"]++
		if h := w.runners[p].kv[c.Req]; h != nil {
			return fmt.Errorf("INV-14: %d positions are kept of a request that is new elsewhere", h.n)
		}
	}
	return nil
}

// count books what happened, for tests that must not lose their sense.
func (w *world) count(c *event.Command) {
	name := c.Kind.String()
	switch c.Kind {
	case event.Note:
		name += " " + c.Note.String()
	case event.RunBatch:
		name += " " + c.Batch.Rule.String()
		for i := range c.Batch.Rows {
			row := &c.Batch.Rows[i]
			if !row.Sample {
				w.seen["row part"]++
			}
			if row.Cached > 0 {
				w.seen["row cached"]++
			}
			if row.Recomputed > 0 {
				w.seen["row recomputed"]++
			}
		}
	case event.Finish:
		name += " " + c.Reason.String()
	}
	w.seen[name]++
}

// workConserved: an idle core that was told to dispatch runs a batch, waits for
// a timer, or has nothing that fits its KV (case E5).
func (w *world) workConserved(p event.Peer, ev event.Event) error {
	c := w.f.Core(p)
	l := c.Load()
	if ev.Kind != event.Dispatch || c.Running() != nil || l.Ready == 0 {
		return nil
	}
	if l.Ready < l.B && w.wake[p].Kind == event.WakeAt {
		return nil
	}
	if why := w.fits(p); why != "" {
		return fmt.Errorf("INV-8: subserver %d idles with %d ready and B = %d: %s", p, l.Ready, l.B, why)
	}
	return nil
}

// fits says which ready request of p could run, as far as one can see without
// knowing what is shared: the oldest beside all that holds KV, or beside all that
// is older where KV may be taken.
func (w *world) fits(p event.Peer) string {
	c, cfg := w.f.Core(p), w.cfgs[p]
	others := 0
	for _, id := range c.Requests() {
		v, _ := c.View(id)
		if v.Phase != sched.Ready {
			others += v.KVBlocks
			continue
		}
		if !v.Full {
			return fmt.Sprintf("request %d was not told to wait for KV", id)
		}
		need := kv.Blocks(len(v.Tokens), cfg.Block)
		if v.KVBlocks > 0 {
			need = kv.Blocks(min(v.Fed, len(v.Tokens)-1)+1, cfg.Block)
		}
		if cfg.Overcommit <= 100 {
			_, _, used := c.KV()
			others = used - v.KVBlocks
		}
		if total := cfg.KVTokens[p] / cfg.Block; need+others <= total {
			return fmt.Sprintf("request %d needs %d blocks of %d beside %d", id, need, total, others)
		}
		return ""
	}
	return ""
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
		if !b.Rows[i].Sample {
			continue
		}
		v, _ := w.f.Core(p).View(b.Rows[i].Req)
		row := w.router(p, v)
		row.Req = b.Rows[i].Req
		if row.Action == event.Truncate && row.At < len(v.Tokens) && row.At >= v.Emitted && row.Hold > 0 {
			w.seen["truncate"]++
		}
		res.Rows = append(res.Rows, row)
	}
	return w.step(p, event.Event{Kind: event.StepDone, Step: res})
}

// leftovers says what a drained world still holds.
func (w *world) leftovers() error {
	for p, r := range w.runners {
		if len(r.kv) > 0 {
			return fmt.Errorf("INV-4: subserver %d still has KV of %d requests", p, len(r.kv))
		}
		free, cached, used := w.f.Core(event.Peer(p)).KV()
		if total := w.cfgs[p].KVTokens[p] / w.cfgs[p].Block; used != 0 || free+cached != total {
			return fmt.Errorf("INV-4: subserver %d has %d blocks free, %d cached and %d used of %d", p, free, cached, used, total)
		}
	}
	k := w.f.Core(event.Front).Counts()
	if k.Arrived != k.Finished+k.Cancelled+k.Rejected || k.Arrived != len(w.done) {
		return fmt.Errorf("INV-3: %+v with %d ends seen", k, len(w.done))
	}
	return nil
}

// writers is what the clients saw: tokens, who wrote them, and how it ended.
type writers struct {
	text map[event.ReqID][]wrote
	done map[event.ReqID]event.Reason
}

func (w *world) saw() writers { return writers{w.text, w.done} }

func (w *world) loads() string {
	s := ""
	for p := range event.Peer(w.f.Len()) {
		s += fmt.Sprintf("%d: %+v %v\n", p, w.f.Core(p).Load(), w.wake[p])
	}
	return s
}

func (w *world) running() (n int) {
	for p := range event.Peer(w.f.Len()) {
		if w.f.Core(p).Running() != nil {
			n++
		}
	}
	return n
}

// busy says whether something moves without a batch having to start.
func busy(ms []move) bool {
	return slices.ContainsFunc(ms, func(m move) bool { return m.deliver || m.finish })
}
