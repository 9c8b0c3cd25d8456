// Package tapetest makes tapes for tests: the real cores of runtime/fabric in
// virtual time, with scripted models and a scripted router in place of weights
// and Lua. It holds what a real session holds: several subservers, hand-offs,
// drops, stops found late, cancelled requests, reloads and knobs.
//
// The invariant that matters: the same Config gives the same tape, and the
// counts of Outcome come from the clients' side, not from the tape.
//
// Read tapetest.go; it is one loop.
package tapetest

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/tape"
)

// Config describes a run. Zero values are filled in.
type Config struct {
	Models      int // subservers, default 2
	Requests    int // default 20
	Concurrency int // default 4
	Vocab       int // default 64
	MaxTokens   int // default 40
	Seed        uint64
	Large       float64 // chance that a small candidate goes to the large model, default 0.3
	Cancel      float64 // chance that a request is cancelled on its way
	Policy      *event.Policy
	Hold        int // tokens that the router holds back; it then takes some back in place of every second drop
}

// Outcome is what the clients saw.
type Outcome struct {
	Emitted   map[event.ReqID]int // new tokens by request
	Text      map[event.ReqID][]event.Token
	Drops     int // candidates dropped, and tokens taken back, within texts
	Truncated int // how often tokens were taken back within texts
	HandOffs  int
	Cut       int // tokens written behind a stop
	Cancelled int
}

// Tokens that the scripted models use for something.
const (
	tokenEOS  = 0
	tokenStop = 1 // the client stops at it, one message later
)

// Hash is the router's version before and after the reload.
const (
	HashBefore = "aaaa1111"
	HashAfter  = "bbbb2222"
)

type driver struct {
	cfg   Config
	fab   *fabric.Fabric
	now   int64
	recs  []tape.Record
	loads []tape.Load
	done  []int64 // when the running batch of a core ends, 0 if idle
	wakes []wake
	stops []stop
	next  event.ReqID
	open  int
	out   Outcome
	all   map[event.ReqID]map[int]event.Token
	drops map[event.ReqID][]int
	ends  map[event.ReqID]int
	cuts  map[event.ReqID][]int
	back  map[event.ReqID]int // highest position that the front dropped or truncated to
	hash  string
}

type wake struct {
	core event.Peer
	at   int64
	gen  uint64
}

type stop struct {
	at     int64
	req    event.ReqID
	pos    int
	cancel bool
}

const (
	linkNs   = 40_000
	clientNs = 7_000_000
	prompt   = 5
)

// Run drives the cores until every request is over.
func Run(cfg Config) ([]tape.Record, Outcome, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.Models, 2)
	def(&cfg.Requests, 20)
	def(&cfg.Concurrency, 4)
	def(&cfg.Vocab, 64)
	def(&cfg.MaxTokens, 40)
	if cfg.Large == 0 {
		cfg.Large = 0.3
	}
	d := &driver{
		cfg: cfg, loads: make([]tape.Load, cfg.Models), done: make([]int64, cfg.Models), hash: HashBefore,
		all: map[event.ReqID]map[int]event.Token{}, drops: map[event.ReqID][]int{}, ends: map[event.ReqID]int{}, back: map[event.ReqID]int{}, cuts: map[event.ReqID][]int{},
		out: Outcome{Emitted: map[event.ReqID]int{}, Text: map[event.ReqID][]event.Token{}},
	}
	seats, kv := make([]int, cfg.Models), make([]int, cfg.Models)
	for i := range seats {
		seats[i], kv[i] = 8, 1<<16
	}
	var err error
	if d.fab, err = fabric.New(fabric.Uniform(seats, kv, 16), nil); err != nil {
		return nil, d.out, err
	}
	err = d.run()
	return d.recs, d.out, err
}

func (d *driver) run() error {
	d.host(event.None, &tape.Router{Phase: tape.RouterLoaded, File: "r2r.lua", Hash: HashBefore, Text: "return"})
	d.host(event.None, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: HashBefore})
	if d.cfg.Policy != nil {
		for i := range d.cfg.Models {
			d.step(event.Peer(i), &event.Event{Kind: event.SetPolicy, Policy: d.cfg.Policy})
		}
	}
	for d.open < d.cfg.Concurrency && d.arrive() {
	}
	d.dispatch()
	for {
		at, ok := d.due()
		if !ok {
			break
		}
		d.now = max(d.now, at)
		d.deliver()
		d.dispatch()
	}
	if d.open > 0 {
		return fmt.Errorf("nothing is due at %d ns and %d requests are open", d.now, d.open)
	}
	if !d.fab.Idle() {
		return fmt.Errorf("every request is over at %d ns and the cluster still holds something", d.now)
	}
	d.countDrops()
	d.host(event.None, &tape.Closed{Reason: "done"})
	return nil
}

func (d *driver) host(core event.Peer, h tape.Host) {
	d.record(tape.Record{Core: core, Kind: tape.KindHost, Host: h})
}

func (d *driver) record(r tape.Record) {
	r.Seq, r.At = uint64(len(d.recs)+1), d.now
	d.recs = append(d.recs, r)
}

func (d *driver) arrive() bool {
	if int(d.next) == d.cfg.Requests {
		return false
	}
	d.next++
	d.open++
	id := d.next
	if int(id) == d.cfg.Requests/2 {
		d.reload()
	}
	d.host(event.Front, &tape.Request{Req: id, Task: fmt.Sprintf("task-%d", id), Question: "?"})
	toks := make([]event.Token, prompt)
	for i := range toks {
		toks[i] = event.Token(2 + i)
	}
	d.all[id] = map[int]event.Token{}
	if d.draw(id, 0, 9) < d.cfg.Cancel {
		d.out.Cancelled++
		d.stops = append(d.stops, stop{at: d.now + int64(d.draw(id, 1, 9)*60e6), req: id, cancel: true})
	}
	d.step(event.Front, &event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{
		Prompt: toks, MaxTokens: d.cfg.MaxTokens, EOS: []event.Token{tokenEOS},
	}})
	return true
}

func (d *driver) reload() {
	d.hash = HashAfter
	d.host(event.None, &tape.Router{Phase: tape.RouterLoaded, File: "r2r.lua", Hash: HashAfter, Text: "return 0"})
	for i := range d.cfg.Models {
		d.host(event.Peer(i), &tape.Router{Phase: tape.RouterSwapped, File: "r2r.lua", Hash: HashAfter})
	}
	d.host(event.None, &tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: HashAfter})
	d.host(event.None, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Max: 4, Old: 0.5, New: 0.25, Source: "slider"})
	d.host(event.None, &tape.Telemetry{CPU: 150, Machine: 80, Cores: 2, RSS: 1 << 28})
}

// draw is a number in [0, 1) that depends on its arguments only.
func (d *driver) draw(id event.ReqID, pos int, purpose uint64) float64 {
	return rng.Key{Seed: d.cfg.Seed, Req: uint64(id), Pos: pos, Purpose: rng.Purpose(purpose)}.Float64(0)
}

func (d *driver) step(p event.Peer, ev *event.Event) {
	ev.At = d.now
	d.log(p, ev, d.fab.Step(p, ev, nil))
}

// log records an event and what followed from it, and carries the orders out
// that are not messages.
func (d *driver) log(p event.Peer, ev *event.Event, cmds []event.Command) {
	if ev.Kind == event.Dispatch && len(cmds) == 0 {
		return
	}
	d.record(tape.Record{Core: p, Kind: tape.KindEvent, Event: ev})
	for i := range cmds {
		d.record(tape.Record{Core: p, Kind: tape.KindCommand, Command: &cmds[i]})
	}
	if l := d.fab.Core(p).Load(); l != d.loads[p] {
		d.loads[p] = l
		d.record(tape.Record{Core: p, Kind: tape.KindLoad, Load: &l})
	}
	for i := range cmds {
		d.obey(p, &cmds[i])
	}
}

func (d *driver) obey(p event.Peer, c *event.Command) {
	switch c.Kind {
	case event.RunBatch:
		d.done[p] = d.now + int64(p+1)*3_000_000 + int64(len(c.Batch.Rows))*100_000
	case event.WakeAt:
		d.wakes = append(d.wakes, wake{p, c.At, c.Gen})
	case event.SendPeer:
		if c.Peer.Status == event.New || c.Peer.Status == event.Alive {
			d.out.HandOffs++
		}
	case event.Emit:
		d.all[c.Req][c.Pos] = c.Token
		if c.Token == tokenStop {
			d.stops = append(d.stops, stop{at: d.now + clientNs, req: c.Req, pos: c.Pos})
		}
	case event.Finish:
		d.finish(c)
	}
}

func (d *driver) finish(c *event.Command) {
	for pos := range d.all[c.Req] {
		if pos >= c.N {
			d.out.Cut++
		}
	}
	text := make([]event.Token, 0, c.N-prompt)
	for pos := prompt; pos < c.N; pos++ {
		text = append(text, d.all[c.Req][pos])
	}
	d.out.Text[c.Req] = text
	d.out.Emitted[c.Req] = c.N - prompt
	d.ends[c.Req] = c.N
	if c.Reason == event.ReasonAborted {
		d.ends[c.Req]++
	}
	d.open--
	d.host(event.Front, &tape.Result{Req: c.Req, Task: fmt.Sprintf("task-%d", c.Req), Reason: c.Reason.String(), Tokens: c.N - prompt})
	d.arrive()
}

// countDrops counts candidates dropped and tokens taken back at positions that
// the text has, or where a cancelled one broke off.
func (d *driver) countDrops() {
	within := func(all map[event.ReqID][]int) (n int) {
		for id, list := range all {
			for _, pos := range list {
				if pos < d.ends[id] {
					n++
				}
			}
		}
		return n
	}
	d.out.Drops, d.out.Truncated = within(d.drops), within(d.cuts)
}

// due is the time of the next thing that happens.
func (d *driver) due() (int64, bool) {
	var at []int64
	for _, t := range d.done {
		if t > 0 {
			at = append(at, t)
		}
	}
	for _, w := range d.wakes {
		at = append(at, w.at)
	}
	for _, s := range d.stops {
		at = append(at, s.at)
	}
	for _, m := range d.fab.InFlight() {
		at = append(at, m.SentAt+linkNs)
	}
	if len(at) == 0 {
		return 0, false
	}
	return slices.Min(at), true
}

// deliver states everything that is due now.
func (d *driver) deliver() {
	for i := range d.done {
		if d.done[i] > 0 && d.done[i] <= d.now {
			d.done[i] = 0
			d.finishStep(event.Peer(i))
		}
	}
	for {
		i := slices.IndexFunc(d.fab.InFlight(), func(m fabric.Message) bool { return m.SentAt+linkNs <= d.now })
		if i < 0 {
			break
		}
		m := d.fab.InFlight()[i]
		ev, cmds, _ := d.fab.Deliver(m.From, m.To, d.now, nil)
		d.log(m.To, &ev, cmds)
	}
	for i := 0; i < len(d.wakes); {
		w := d.wakes[i]
		if w.at > d.now {
			i++
			continue
		}
		d.wakes = slices.Delete(d.wakes, i, i+1)
		d.step(w.core, &event.Event{Kind: event.Wake, Gen: w.gen})
	}
	for i := 0; i < len(d.stops); {
		s := d.stops[i]
		if s.at > d.now {
			i++
			continue
		}
		d.stops = slices.Delete(d.stops, i, i+1)
		kind := event.Stop
		if s.cancel {
			kind = event.Cancel
		}
		d.step(event.Front, &event.Event{Kind: kind, Req: s.req, Pos: s.pos})
	}
}

func (d *driver) dispatch() {
	for i := range d.cfg.Models {
		d.step(event.Peer(i), &event.Event{Kind: event.Dispatch})
	}
}

// finishStep answers the running batch of p as model and router would.
func (d *driver) finishStep(p event.Peer) {
	b := d.fab.Core(p).Running()
	st := &event.StepResult{Batch: b.ID, ExecNs: 2_500_000, RouteNs: int64(len(b.Rows)) * 2000}
	for _, row := range b.Rows {
		if !row.Sample {
			continue
		}
		pos := row.Start + len(row.Tokens)
		st.Rows = append(st.Rows, d.answer(p, row.Req, pos))
	}
	d.step(p, &event.Event{Kind: event.StepDone, Step: st})
}

// takeBack makes a drop at pos one that takes back tokens before it, where some
// may be.
func (d *driver) takeBack(r *event.RowResult, pos int) {
	v, ok := d.fab.Core(event.Front).View(r.Req)
	if !ok || v.Phase == sched.Ended {
		return
	}
	at := max(v.Emitted, d.back[r.Req]+1, pos-3)
	if at >= pos {
		return
	}
	r.Action, r.At = event.Truncate, at
	r.Score, r.Scored = r.Output.Top1, true
	d.cuts[r.Req] = append(d.cuts[r.Req], pos)
	for k := at; k < pos; k++ {
		d.drops[r.Req] = append(d.drops[r.Req], k)
	}
}

func (d *driver) answer(p event.Peer, id event.ReqID, pos int) event.RowResult {
	model := uint64(p) + 1
	o := event.Output{
		Token:   event.Token(d.draw(id, pos, 20+model) * float64(d.cfg.Vocab)),
		Entropy: float32(4 * d.draw(id, pos, 40+model)),
		Top1:    float32(d.draw(id, pos, 60+model)),
	}
	o.EntropyNorm, o.Top2, o.LogSumExp = o.Entropy/4.2, o.Top1/2, 10+o.Top1
	for k := range 5 {
		o.TopK = append(o.TopK, event.TokenProb{Token: o.Token + event.Token(k), Logprob: -float32(k) - o.Top1})
	}
	r := event.RowResult{Req: id, Output: o, Dest: p, Router: d.hash, Budget: 0, Hold: d.cfg.Hold}
	large := event.Peer(d.cfg.Models - 1)
	switch u := d.draw(id, pos, 80+model); {
	case d.cfg.Models == 1:
	case p == large:
		r.Dest = event.Front
		if u < 0.2 {
			r.Dest = p
		}
	case u < d.cfg.Large:
		r.Dest, r.Action = large, event.Drop
		if p == event.Front && d.cfg.Hold > 0 && u < d.cfg.Large/2 {
			d.takeBack(&r, pos)
		}
		if p == event.Front {
			d.back[id] = max(d.back[id], pos)
		}
		d.drops[id] = append(d.drops[id], pos)
	case u < 1.3*d.cfg.Large:
		r.Dest = p + 1
	case u > 0.99:
		r.Dest, r.Fault = event.Front, "r2r.lua:7: nothing was returned"
	}
	return r
}
