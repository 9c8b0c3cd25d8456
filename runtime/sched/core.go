package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
	"tokenrouter/runtime/tape"
)

// Config describes the cluster as one of its subservers sees it. All cores of a
// cluster are given the same, but for Self and Domain.
type Config struct {
	Self     event.Peer
	Seats    []int // most rows of a batch, one entry per subserver
	KVTokens []int // size of the KV pool in tokens, one entry per subserver
	Block    int   // tokens per KV block; 0 means 16

	Chunk      int    // most tokens that one row feeds in a step; 0: no bound
	Budget     int    // most tokens that one batch feeds; 0: no bound
	NoPrefix   bool   // requests share no KV of common beginnings
	Overcommit int    // how much of the smallest pool the front may promise, in %; 0 means 100, beyond that KV may have to be preempted
	MaxActive  int    // most requests that are admitted at a time; 0: as many as fit
	Resubmit   bool   // a hand-off leaves the KV to the prefix cache: wherever the request comes it is a new one
	Timeout    int64  // ns after which the front gives up a request that a peer has; 0: never
	Domain     uint64 // model and tokenizer whose KV this is, part of the prefix hash
}

// Core is one subserver. It belongs to one goroutine.
type Core struct {
	self    event.Peer
	n       int   // subservers
	seats   []int // never changed after New
	chunk   int
	budget  int
	timeout int64

	resubmit   bool
	maxActive  int // requests that the front admits at a time; 0: no bound
	overcommit int // in %; above 100 KV may be taken from the younger
	limit      int // blocks that the front may promise
	largest    int // blocks of the largest request that may come in
	minPool    event.Peer

	now   int64
	pool  *kv.Pool
	reqs  map[event.ReqID]*request // looked up, never iterated by Step
	ready []*request               // see before
	keep  []*request               // those that hold KV, by id
	away  []*request               // those a peer has, by the time they left
	count [numPhases]int

	running *event.Batch
	rows    []*request // of the running batch, in its order
	batches uint64

	rule  policy
	peers []batchNews // by subserver

	toldRows int   // of the running batch, as the peers were told
	w        int64 // guard in ns; 0: not known, everything is eager
	clamped  int   // the lowered B last noted, 0 if none
	armed    bool  // a WakeAt is out for wakeAt
	wakeAt   int64
	gen      uint64

	active int // admitted and unfinished, as this core knows it
	dead   graves

	front front
	audit audit
	slabs slabs
	out   []event.Command
	vec   []int     // scratch of the clamp
	sit   situation // scratch of threshold
}

// New returns the core of subserver cfg.Self.
func New(cfg Config) (*Core, error) {
	if cfg.Block == 0 {
		cfg.Block = 16
	}
	if cfg.Overcommit == 0 {
		cfg.Overcommit = 100
	}
	n := len(cfg.Seats)
	switch {
	case n == 0 || len(cfg.KVTokens) != n:
		return nil, fmt.Errorf("a cluster needs as many KV pools as subservers, at least one: %d subservers, %d pools", n, len(cfg.KVTokens))
	case cfg.Self < 0 || int(cfg.Self) >= n:
		return nil, fmt.Errorf("there is no subserver %d in a cluster of %d", cfg.Self, n)
	case cfg.Chunk < 0 || cfg.Budget < 0:
		return nil, fmt.Errorf("a row feeds at most %d tokens and a batch %d; give 1 or more, or 0 for no bound", cfg.Chunk, cfg.Budget)
	case cfg.Overcommit < 1 || cfg.Overcommit > maxOvercommit:
		return nil, fmt.Errorf("%d %% of the smallest KV pool may be promised; give 1 to %d", cfg.Overcommit, maxOvercommit)
	case cfg.MaxActive < 0:
		return nil, fmt.Errorf("at most %d requests would be admitted at a time; give 1 or more, or 0 for no bound", cfg.MaxActive)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("a time-out of %d ns is over before it begins; give 0 for none", cfg.Timeout)
	}
	c := &Core{
		self:       cfg.Self,
		n:          n,
		seats:      slices.Clone(cfg.Seats),
		chunk:      cfg.Chunk,
		budget:     cfg.Budget,
		resubmit:   cfg.Resubmit,
		maxActive:  cfg.MaxActive,
		overcommit: cfg.Overcommit,
		timeout:    min(cfg.Timeout, longest),
		reqs:       map[event.ReqID]*request{},
		rule:       eager{},
		peers:      make([]batchNews, n),
	}
	least := 0
	for m := range n {
		if cfg.Seats[m] < 1 {
			return nil, fmt.Errorf("subserver %d has %d seats in a batch; give at least 1", m, cfg.Seats[m])
		}
		blocks, err := kv.Size(cfg.KVTokens[m], cfg.Block)
		if err != nil {
			return nil, fmt.Errorf("subserver %d: %w", m, err)
		}
		if m == 0 || blocks < least {
			least, c.minPool = blocks, event.Peer(m)
		}
	}
	if c.limit = least * cfg.Overcommit / 100; c.limit == 0 {
		return nil, fmt.Errorf("%d %% of the %d KV blocks of subserver %d are none; promise more or enlarge the pool", cfg.Overcommit, least, c.minPool)
	}
	c.largest = min(c.limit, least)
	var err error
	c.pool, err = kv.New(kv.Config{Tokens: cfg.KVTokens[c.self], Block: cfg.Block, NoPrefix: cfg.NoPrefix, Domain: cfg.Domain})
	return c, err
}

// maxOvercommit is far beyond sense and keeps the product within an int.
const maxOvercommit = 100_000

// Step takes one fact and appends the orders that follow from it to out.
// Commands and what they point to are never changed afterwards.
func (c *Core) Step(ev *event.Event, out []event.Command) []event.Command {
	c.out = out
	c.now = max(c.now, ev.At)
	switch ev.Kind {
	case event.Arrive:
		c.arrive(ev.Req, ev.Arrival)
	case event.Dispatch:
		c.settle()
		c.dispatch()
	case event.StepDone:
		c.stepDone(ev.Step)
	case event.PeerIn:
		c.peerIn(ev.Peer, &ev.Verdict)
	case event.Active:
		c.heard(ev.N)
	case event.Wake:
		if ev.Gen == c.gen {
			c.armed = false
		}
	case event.Stop:
		c.stop(ev.Req, ev.Pos)
	case event.Cancel:
		c.cancel(ev.Req, ev.Pos)
	case event.SetPolicy:
		c.setPolicy(ev.Policy)
	case event.Busy:
		c.busy(ev.From, ev.N, ev.Until)
	default:
		c.note(event.NoteUnknown, ev.Req, 0, fmt.Sprintf("an event of kind %d dropped", ev.Kind))
	}
	c.settle()
	if Enabled && c.audit.due(len(c.reqs), c.pool.Total()) {
		if err := c.Check(); err != nil {
			panic(fmt.Sprintf("subserver %d after %v: %v", c.self, ev.Kind, err))
		}
	}
	out, c.out = c.out, nil
	return out
}

// settle draws what follows from the time and from the requests that ended.
func (c *Core) settle() {
	c.overdue()
	if c.self == event.Front {
		c.admit()
	}
}

// Running is the batch that runs now, nil when idle.
func (c *Core) Running() *event.Batch { return c.running }

// Load is how full the subserver is. Ready are all that wait for a batch here,
// also those that find no KV blocks: they count towards B, as waiting for others
// would not help them. KVUsed is what requests hold; what is only cached for
// later ones is as good as free.
func (c *Core) Load() tape.Load {
	return tape.Load{
		Ready:   len(c.ready),
		Running: c.count[Running],
		Pending: c.count[Pending],
		Waiting: c.count[Waiting],
		Active:  c.active,
		B:       c.threshold(len(c.ready)).b,
		KVUsed:  c.pool.Used() * c.pool.Block(),
		KVTotal: c.pool.Total() * c.pool.Block(),
	}
}

// KV counts the blocks of the pool: free, cached for later requests, and used.
// Together they are always the whole pool (INV-4).
func (c *Core) KV() (free, cached, used int) {
	return c.pool.Free(), c.pool.Cached(), c.pool.Used()
}

// Clone returns a core that continues exactly as this one would. Tokens already
// written and payloads already handed out are shared, as nobody changes them.
func (c *Core) Clone() *Core {
	d := *c
	d.out, d.vec, d.sit, d.slabs = nil, nil, situation{}, slabs{}
	d.pool = c.pool.Clone()
	d.peers = slices.Clone(c.peers)
	d.reqs = make(map[event.ReqID]*request, len(c.reqs))
	for id, r := range c.reqs {
		d.reqs[id] = r.clone()
	}
	remap := func(in []*request) []*request {
		out := make([]*request, len(in))
		for i, r := range in {
			out[i] = d.reqs[r.id]
		}
		return out
	}
	d.ready, d.keep, d.away = remap(c.ready), remap(c.keep), remap(c.away)
	d.rows = remap(c.rows)
	d.front.waiting = remap(c.front.waiting)
	d.dead = c.dead.clone()
	return &d
}

func (c *Core) emit(cmd event.Command) { c.out = append(c.out, cmd) }

func (c *Core) note(kind event.NoteKind, id event.ReqID, n int, text string) {
	c.emit(event.Command{Kind: event.Note, Note: kind, Req: id, N: n, Text: text})
}

// find returns the living request id. Where there is none it notes why the
// event called what is dropped.
func (c *Core) find(id event.ReqID, what string) *request {
	if c.isDead(id) {
		c.note(event.NoteDead, id, 0, what+" for a finished request dropped")
		return nil
	}
	r := c.reqs[id]
	if r == nil {
		c.note(event.NoteUnknown, id, 0, what+" for a request never seen dropped")
	}
	return r
}

// isDead says whether id has ended. The front has seen every id up to the last
// arrival; its peers remember what the front told them.
func (c *Core) isDead(id event.ReqID) bool {
	if c.self == event.Front {
		r := c.reqs[id]
		return id <= c.front.last && (r == nil || r.phase == Ended)
	}
	return c.dead.has(id)
}
