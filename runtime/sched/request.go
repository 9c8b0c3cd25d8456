package sched

import (
	"cmp"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// Phase is where a request stands at one core.
type Phase uint8

// A request waits at the front until it is admitted; then it is ready, running
// or pending at every core that knows it. Ended is a request that finished while
// its row still runs: the step's end frees it.
const (
	Waiting Phase = iota
	Ready
	Running
	Pending
	Ended
	numPhases
)

var phaseNames = [numPhases]string{"waiting", "ready", "running", "pending", "ended"}

func (p Phase) String() string {
	if p < numPhases {
		return phaseNames[p]
	}
	return "?"
}

// request is what one core knows of a request.
//
//	tokens  [ prompt | written by any subserver        ]  held = len(tokens)
//	client  [ emitted: final      |  held back: writers ]  emitted <= held
//	KV      [ fed positions              |  not yet fed ]  fed <= held
//
// After a step that sampled, fed is held-1 where it committed and held where it
// dropped (INV-5).
type request struct {
	id       event.ReqID
	phase    Phase
	tokens   []event.Token // only ever appended to, or replaced: slices of it are handed out
	fed      int           // positions in KV: fed by a step of this core, or found in the prefix cache
	had      int           // positions of tokens that were ever in KV here: more than fed once KV was lost
	robbed   bool          // KV was taken from it
	seq      kv.Seq
	feed     int  // tokens of its row in the batch being composed or running
	fresh    bool // that row found no KV of the request
	limits   event.Limits
	sampling event.Sampling

	emitted   int          // length that has been emitted, as far as this core knows
	hold      int          // tokens that the last decision holds back
	writers   []event.Peer // who wrote the tokens held back; only ever appended to, or replaced
	shortened bool         // tokens were truncated: others may hold what is in no text any more
	truncated int          // the position that this core last truncated to, 0 if none

	seen    []int  // per subserver: the length of this text it is known to hold
	hop     uint32 // of the last hand-off this core took part in
	sent    *event.PeerReq
	sentTo  event.Peer
	leftAt  int64 // when it became pending, or its peer was last asked about it
	budget  int   // ceiling of the hand-off that brought it here, 0 = none
	wrote   int   // tokens committed here under that hand-off
	dropped int   // the position last dropped here, -1 if none
	sampled bool  // a step of this core has drawn a candidate for it

	state  []byte
	fields []byte
	router string

	readyAt  int64 // its place: when it became ready; a prefill in parts keeps it
	since    int64 // when it last began to wait for a batch
	full     bool  // noted that it waits for KV
	reserved int   // blocks in every pool, in the ledger of the front
}

func (r *request) clone() *request {
	q := *r
	// The spare capacity belongs to the original.
	q.tokens, q.writers = slices.Clip(r.tokens), slices.Clip(r.writers)
	q.seen = slices.Clone(r.seen)
	q.seq = r.seq.Clone()
	return &q
}

// suffix is what comes from position loc on; it stays as it is for ever (INV-15).
func (r *request) suffix(loc int) []event.Token {
	return r.tokens[loc:len(r.tokens):len(r.tokens)]
}

// room is how many tokens a request that holds some gets memory for: all it may
// become, as long as that is near. A request that may go on without end would
// else take the memory of the whole pool at once.
func room(held, most int) int { return min(most, held+1024) }

// over says whether the newest token ends the request, and how.
func (r *request) over() (event.Reason, bool) {
	held := len(r.tokens)
	if held > r.limits.PromptLen && slices.Contains(r.limits.EOS, r.tokens[held-1]) {
		return event.ReasonStop, true
	}
	return event.ReasonLength, held >= r.limits.MaxLen
}

// View is a request as one core knows it, to be read and not changed.
type View struct {
	ID        event.ReqID
	Phase     Phase
	Tokens    []event.Token // all token ids held here, prompt first
	Emitted   int           // how many of them have been emitted, as far as this subserver knows
	Hold      int           // tokens that the router holds back
	Fed       int           // positions in this subserver's KV
	PromptLen int
	MaxLen    int // prompt and new tokens together
	EOS       []event.Token
	Sampling  event.Sampling
	State     []byte // the router's r.state
	Fields    []byte // what send returned for the hand-off that brought it here
	Router    string // hash of the router that decided last
	Hop       uint32
	Budget    int // ceiling of that hand-off, 0 = none
	KVBlocks  int
	Sampled   bool // a step of this subserver has drawn a candidate for it
	Full      bool // it is ready and found no KV blocks
}

// View shows what this core knows of request id; ok is false for one that it
// never saw or has freed.
func (c *Core) View(id event.ReqID) (v View, ok bool) {
	r := c.reqs[id]
	if r == nil {
		return View{}, false
	}
	return View{
		ID:        r.id,
		Phase:     r.phase,
		Tokens:    r.suffix(0),
		Emitted:   r.emitted,
		Hold:      r.hold,
		Fed:       r.fed,
		PromptLen: r.limits.PromptLen,
		MaxLen:    r.limits.MaxLen,
		EOS:       r.limits.EOS,
		Sampling:  r.sampling,
		State:     r.state,
		Fields:    r.fields,
		Router:    r.router,
		Hop:       r.hop,
		Budget:    r.budget,
		KVBlocks:  r.seq.Blocks(),
		Sampled:   r.sampled,
		Full:      r.phase == Ready && r.full,
	}, true
}

// Requests lists the ids this core knows, rising.
func (c *Core) Requests() []event.ReqID {
	ids := make([]event.ReqID, 0, len(c.reqs))
	for id := range c.reqs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// enter moves a request to another phase.
func (c *Core) enter(r *request, p Phase) {
	c.count[r.phase]--
	c.count[p]++
	r.phase = p
}

// add makes a request known in phase p.
func (c *Core) add(r *request, p Phase) {
	r.phase = p
	c.count[p]++
	c.reqs[r.id] = r
}

// drop forgets a request and frees its KV.
func (c *Core) drop(r *request) {
	if c.release(r) > 0 {
		c.emit(event.Command{Kind: event.Free, Req: r.id})
	}
	c.count[r.phase]--
	delete(c.reqs, r.id)
}

// release gives the request's KV back; its full blocks may be found again.
func (c *Core) release(r *request) int {
	c.unhold(r)
	n := c.pool.Release(&r.seq, r.tokens[:r.fed])
	r.fed = 0
	return n
}

// hold lists a request among those that hold KV.
func (c *Core) hold(r *request) {
	i, _ := slices.BinarySearchFunc(c.keep, r.id, byID)
	c.keep = slices.Insert(c.keep, i, r)
}

func (c *Core) unhold(r *request) {
	if i, ok := slices.BinarySearchFunc(c.keep, r.id, byID); ok {
		c.keep = slices.Delete(c.keep, i, i+1)
	}
}

func byID(r *request, id event.ReqID) int { return cmp.Compare(r.id, id) }
