// Package synth makes tapes for tests of the screens: a small cluster in virtual
// time whose records have the order, the rhythm and the sums of a real one.
//
// The invariant that matters: the same Config gives the same records. It is no
// second scheduler: nothing but tests of the screens reads it.
package synth

import (
	"math"
	"math/rand/v2"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Config is a cluster of len(Steps) subservers in a closed loop.
type Config struct {
	N      int
	P      float64 // share of positions that the small model's router gives away
	Steps  []int64 // ns a step takes
	B      []int
	Plan   *tape.Plan // the table of this plan is in force from the beginning
	Seed   uint64
	Tokens int // per request, 0 = the length of the text
	Texts  []string
	Quiet  bool // no records are kept, only counted
}

// Paper is the paper's pair at N = 4 and p = 0.35.
func Paper() Config {
	return Config{N: 4, P: 0.35, Steps: []int64{6_000_000, 27_900_000}, B: []int{1, 3}, Seed: 7}
}

// Hash is the router's hash in every decision.
const Hash = "3f2a91c0"

const hop = 200_000 // ns

// Every prompt begins with the same instruction: all but the first request at a
// subserver find it in the prefix cache.
const (
	prompt      = 51
	instruction = 16
	kvTokens    = 2048
)

// some are tokens of rows: what they are is of no interest here.
var some = make([]event.Token, 4096)

type request struct {
	id     event.ReqID
	text   []event.Token
	pos    int
	prompt int
	held   []bool // per subserver: has KV
	lost   []int  // per subserver: positions whose KV was taken
}

type core struct {
	ready   []*request
	since   []int64
	running []*request
	until   int64
	batch   uint64
	pending int
	started int64
	warm    bool // the prefix cache has the instruction
	full    bool // ready requests find no KV
	stalled bool // nobody asks it to start a batch
}

type message struct {
	at int64
	to event.Peer
	r  *request
}

// Cluster produces records as time goes on.
type Cluster struct {
	cfg    Config
	rng    *rand.Rand
	now    int64
	cores  []core
	mail   []message
	active int
	next   event.ReqID
	out    []tape.Record
	seq    uint64
	gone   int // arrivals owed
	policy event.Policy
	tokens int
}

// New starts a cluster: its first records are the router, the machine and the
// policy.
func New(cfg Config) *Cluster {
	c := &Cluster{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), cores: make([]core, len(cfg.Steps))}
	c.host(&tape.Router{Phase: tape.RouterLive, File: "r2r.lua", Hash: Hash})
	c.host(&tape.Telemetry{CPU: 43, Machine: 51, Cores: 8, RSS: 84_300_000, GPUNote: "no NVIDIA driver"})
	if p := cfg.Plan; p != nil {
		c.SetPolicy(event.Policy{Kind: event.Table, Table: p.Table, B: p.B})
		c.host(p)
	} else {
		c.SetB(cfg.B...)
	}
	for range cfg.N {
		c.arrive()
	}
	return c
}

func (c *Cluster) rec(core event.Peer, r tape.Record) {
	if r.Kind == tape.KindCommand && r.Command.Kind == event.Emit {
		c.tokens++
	}
	if c.cfg.Quiet {
		return
	}
	c.seq++
	r.Seq, r.At, r.Core = c.seq, c.now, core
	c.out = append(c.out, r)
}

func (c *Cluster) ev(core event.Peer, e *event.Event) {
	e.At = c.now
	c.rec(core, tape.Record{Kind: tape.KindEvent, Event: e})
}

func (c *Cluster) cmd(core event.Peer, cmd *event.Command) {
	c.rec(core, tape.Record{Kind: tape.KindCommand, Command: cmd})
}

func (c *Cluster) host(h tape.Host) { c.rec(event.None, tape.Record{Kind: tape.KindHost, Host: h}) }

// Now is the virtual time in ns.
func (c *Cluster) Now() int64 { return c.now }

func (c *Cluster) arrive() {
	c.next++
	r := &request{id: c.next, text: c.text(), prompt: prompt, held: make([]bool, len(c.cores)), lost: make([]int, len(c.cores))}
	q := problems[int(r.id)%len(problems)]
	c.host(&tape.Request{Req: r.id, Task: "equations", Question: q.question, Answer: q.answer, HasAnswer: true})
	c.ev(0, &event.Event{Kind: event.Arrive, Req: r.id, Arrival: &event.Arrival{Prompt: make([]event.Token, r.prompt), MaxTokens: 160}})
	c.active++
	c.cmd(0, &event.Command{Kind: event.Admit, Req: r.id, N: c.active})
	c.enqueue(0, r)
}

func (c *Cluster) enqueue(p event.Peer, r *request) {
	k := &c.cores[p]
	k.ready = append(k.ready, r)
	k.since = append(k.since, c.now)
}

// b is the threshold in force.
func (c *Cluster) b(p int) int {
	if c.policy.Kind == event.LockStep && p == int(event.Front) {
		return max(c.active, 1)
	}
	b := c.policy.B
	if n := len(c.policy.Table); c.policy.Kind == event.Table && n > 0 {
		b = c.policy.Table[min(max(c.active, 1), n)-1]
	}
	if p < len(b) {
		return b[p]
	}
	return 1
}

// dispatch starts batches where the policy says so.
func (c *Cluster) dispatch() {
	for p := range c.cores {
		k := &c.cores[p]
		if k.running == nil && len(k.ready) > 0 && !k.full && !k.stalled {
			guard := c.now-k.since[0] >= c.guard() && c.policy.Kind != event.LockStep
			if len(k.ready) >= c.b(p) || guard {
				c.start(event.Peer(p), guard)
			}
		}
		c.rec(event.Peer(p), tape.Record{Kind: tape.KindLoad, Load: c.load(p)})
	}
}

func (c *Cluster) load(p int) *tape.Load {
	k := &c.cores[p]
	used := 0
	for _, r := range k.running {
		used += r.prompt + r.pos
	}
	for _, r := range k.ready {
		used += r.prompt + r.pos
	}
	ready, b := len(k.ready), c.b(p)
	if c.policy.Kind == event.LookAhead { // as the core says that it starts or holds
		if b > ready {
			b = ready + 1
		} else {
			b = 1
		}
	}
	if k.full {
		ready, used = 0, kvTokens
	}
	return &tape.Load{Ready: ready, Running: len(k.running), Pending: k.pending, Active: c.active, B: b, KVUsed: used, KVTotal: kvTokens}
}

func (c *Cluster) start(p event.Peer, guard bool) {
	k := &c.cores[p]
	k.batch++
	b := &event.Batch{ID: k.batch, Rule: event.RuleB, Ready: len(k.ready), B: c.b(int(p))}
	switch {
	case guard && b.Ready < b.B:
		b.Rule = event.RuleGuard
	case c.policy.Kind == event.LookAhead:
		b.Rule, b.B = event.RuleAhead, 1
	case c.policy.Kind == event.Eager:
		b.Rule = event.RuleEager
	}
	for i, r := range k.ready {
		b.Rows = append(b.Rows, c.row(p, r, c.now-k.since[i]))
	}
	k.running, k.ready, k.since = k.ready, nil, nil
	k.started, k.until = c.now, c.now+c.cfg.Steps[p]
	c.cmd(p, &event.Command{Kind: event.RunBatch, Batch: b})
}

// row feeds what the request's KV at p lacks.
func (c *Cluster) row(p event.Peer, r *request, waited int64) event.Row {
	k, end := &c.cores[p], r.prompt+r.pos
	row := event.Row{Req: r.id, Start: end - 1, Tokens: some[:1], Sample: true, WaitedNs: waited, PromptLen: r.prompt}
	if !r.held[p] {
		row.Prefill, row.Start, row.Tokens = true, 0, some[:end]
		if k.warm {
			row.Start, row.Cached, row.Tokens = instruction, instruction, some[:end-instruction]
		}
		row.Recomputed = max(r.lost[p]-row.Start, 0)
	}
	r.held[p], r.lost[p], k.warm = true, 0, true
	return row
}

// finish ends the batch of p: every row is a token of the text.
func (c *Cluster) finish(p event.Peer) {
	k := &c.cores[p]
	rows := k.running
	k.running = nil
	step := &event.StepResult{Batch: k.batch, ExecNs: c.now - k.started}
	for _, r := range rows {
		res := event.RowResult{Req: r.id, Dest: p, Router: Hash}
		if !c.cfg.Quiet {
			res.Output = c.output(r.text[r.pos], p)
		}
		if p == event.Front && len(c.cores) > 1 && c.rng.Float64() < c.cfg.P {
			res.Dest, res.Action = c.away(), event.Drop
		} else if p != event.Front {
			res.Dest = event.Front
		}
		step.Rows = append(step.Rows, res)
	}
	c.ev(p, &event.Event{Kind: event.StepDone, Step: step})
	for i, r := range rows {
		c.settle(p, r, &step.Rows[i])
	}
	for ; c.gone > 0; c.gone-- {
		c.arrive()
	}
}

func (c *Cluster) away() event.Peer {
	if n := len(c.cores); n > 2 {
		return event.Peer(1 + c.rng.IntN(n-1))
	}
	return 1
}

func (c *Cluster) settle(p event.Peer, r *request, res *event.RowResult) {
	if res.Action == event.Keep {
		c.cmd(p, &event.Command{Kind: event.Emit, Req: r.id, Pos: r.prompt + r.pos, Token: r.text[r.pos]})
		r.pos++
		if r.pos == len(r.text) {
			c.end(p, r)
			return
		}
	}
	if res.Dest == p {
		c.enqueue(p, r)
		return
	}
	if p == event.Front {
		c.cores[0].pending++
	}
	c.cmd(p, &event.Command{Kind: event.SendPeer, To: res.Dest, Peer: &event.PeerReq{ID: r.id, From: p, Status: event.Alive}})
	c.mail = append(c.mail, message{c.now + hop, res.Dest, r})
}

func (c *Cluster) end(p event.Peer, r *request) {
	c.active--
	if p != event.Front {
		c.cores[0].pending--
	}
	c.cmd(0, &event.Command{Kind: event.Finish, Req: r.id, N: r.prompt + r.pos, Reason: event.ReasonStop})
	q := problems[int(r.id)%len(problems)]
	right := c.rng.Float64() < 0.96
	given := q.answer
	if !right {
		given = "21"
	}
	c.host(&tape.Result{Req: r.id, Task: "equations", Reason: "stop", Tokens: r.pos, Answer: given, Checked: true, Correct: right})
	c.gone++
}

// Until runs the cluster up to session time t and returns its records since the
// last call.
func (c *Cluster) Until(t int64) []tape.Record {
	for {
		c.dispatch()
		at := int64(math.MaxInt64)
		for i := range c.cores {
			k := &c.cores[i]
			if k.running != nil {
				at = min(at, k.until)
			} else if len(k.ready) > 0 && !k.full && !k.stalled {
				at = min(at, max(k.since[0]+c.guard(), c.now))
			}
		}
		for _, m := range c.mail {
			at = min(at, m.at)
		}
		if at > t {
			break
		}
		c.now = at
		mail := c.mail
		c.mail = nil
		for _, m := range mail {
			if m.at > at {
				c.mail = append(c.mail, m)
				continue
			}
			c.ev(m.to, &event.Event{Kind: event.PeerIn, Peer: &event.PeerReq{ID: m.r.id, Status: event.Alive}})
			if m.to == event.Front {
				c.cores[0].pending--
			}
			c.enqueue(m.to, m.r)
		}
		for i := range c.cores {
			if k := &c.cores[i]; k.running != nil && k.until <= at {
				c.finish(event.Peer(i))
			}
		}
	}
	c.now = t
	out := c.out
	c.out = nil
	return out
}

func (c *Cluster) output(id event.Token, p event.Peer) event.Output {
	sure := 0.55 + 0.44*c.rng.Float64()
	if p == event.Front && c.rng.Float64() < 0.3 {
		sure = 0.3 + 0.3*c.rng.Float64()
	}
	o := event.Output{Token: id, Top1: float32(sure), Top2: float32((1 - sure) * 0.6)}
	left := 1 - sure
	o.TopK = append(o.TopK, event.TokenProb{Token: id, Logprob: float32(math.Log(sure))})
	h := -sure * math.Log(sure)
	for i := 1; i < 5; i++ {
		q := left * 0.6
		left -= q
		h -= q * math.Log(q)
		o.TopK = append(o.TopK, event.TokenProb{Token: event.Token((int(id) + i) % len(vocab)), Logprob: float32(math.Log(q))})
	}
	o.Entropy, o.EntropyNorm = float32(h), float32(h/math.Log(424))
	return o
}
