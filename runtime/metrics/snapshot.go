package metrics

import (
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Quantiles of N durations, in ms. Board's are known within 3 %, Run's exactly.
type Quantiles struct {
	N             int
	P50, P95, P99 float64
}

// Snapshot is what the board shows at one moment. Rates, shares and quantiles
// are of Window: the last 10 s of running time, or the time since the last change
// of router, knob, thresholds, clock, speed or concurrency.
type Snapshot struct {
	Window           time.Duration
	Since            bool // the window starts at a change or at the beginning
	Paused           bool
	Tokens           int // in the window
	TokensPerS       float64
	LargeShare       float64
	SwitchesPerToken float64
	// Right of Checked answers, with the 95 % interval, of all requests that
	// arrived since the last change of router or knob: nothing else changes
	// tokens.
	Right, Checked   int
	RightLo, RightHi float64
	Families         []FamilySummary // the same answers by kind of problem
	TTFT, ITL        Quantiles
	Active           int
	Peers            []PeerSnapshot // CommittedPerS adds up to TokensPerS

	Policy string        // thresholds in force, as event.Policy.Form writes them
	W      time.Duration // the guard, 0 while it is not known
	Plan   *tape.Plan    // the latest for the router, the clock and the speed that are live, nil before the first. It is never changed
	Waits  []Wait        // subservers that have been idle with something ready for longer than W
}

// PeerSnapshot is one subserver's part.
type PeerSnapshot struct {
	Load          tape.Load
	Batch         int     // rows in the running batch, 0 when idle
	MeanBatch     float64 // rows of a finished batch, prefill chunks included
	StepMs        float64 // mean time from the start of a batch to its end
	ExecMs        float64 // mean part of it that the forward pass took
	RowsPerS      float64 // candidates drawn
	CommittedPerS float64
	DroppedPerS   float64
	VisitsPerS    float64 // hand-offs that came in
	ExtendPerHop  float64 // mean tokens fed when a request comes back
	Hops          int     // how many came back
	Busy          float64 // fractions of the window that add up to 1
	WaitB         float64
	Idle          float64
	LastRule      event.Rule // why the last batch started

	// Shares of finished batches by the rule that started them; together 1, or
	// all 0 where none has finished.
	ByEager, ByB, ByGuard, ByAhead float64

	PrefixHits float64 // part of Prompt that the prefix cache had
	Prompt     int     // prompt positions of the requests that came without KV
	Recomputed int     // positions fed again after their KV was taken
	Preempted  int     // requests whose KV was taken, each time
}

// Snapshot gives the figures at now, session time in ns. Nothing is changed by
// asking.
func (b *Board) Snapshot(now int64) Snapshot {
	w := b.window
	t := max(b.clock.at(sessionTime(now)), w.start)
	begin := w.begin(t)
	s := Snapshot{
		Paused:  b.clock.paused,
		Right:   b.answers.right,
		Checked: b.answers.checked,
		Active:  b.cores[event.Front].load.Active,
		Peers:   make([]PeerSnapshot, len(b.cores)),
		Policy:  b.policy,
		W:       time.Duration(b.guard),
		Plan:    b.plan,
	}
	s.RightLo, s.RightHi = Wilson(s.Right, s.Checked)
	s.Families = b.families.summaries()
	if !b.began {
		for i := range b.cores {
			s.Peers[i].Load, s.Peers[i].Idle = b.cores[i].load, 1
		}
		return s
	}
	v := &b.view
	w.view(v, t)
	s.Window, s.Since = time.Duration(t-begin), begin == w.from
	var tokens, large int64
	for i := range b.cores {
		c, n := &b.cores[i], &v.peers[i]
		busy, wait := c.peek(max(c.until, begin), t)
		s.Peers[i] = peerSnapshot(c, n, n.busyNs+busy, n.waitNs+wait, s.Window)
		tokens += max(n.tokens, 0)
		if b.large(event.Peer(i)) {
			large = n.tokens
		}
	}
	s.Tokens = int(tokens)
	s.TokensPerS = perSecond(float64(tokens), s.Window)
	s.LargeShare = share(large, tokens)
	s.SwitchesPerToken = share(v.switches, tokens)
	s.TTFT, s.ITL = quantiles(&v.ttft), quantiles(&v.itl)
	s.Waits = b.waits(t)
	return s
}

func peerSnapshot(c *core, n *peerCount, busy, wait int64, window time.Duration) PeerSnapshot {
	p := PeerSnapshot{
		Load:          c.load,
		Batch:         c.rows,
		RowsPerS:      perSecond(float64(n.rows), window),
		CommittedPerS: perSecond(float64(max(n.tokens, 0)), window),
		DroppedPerS:   perSecond(float64(max(n.dropped, 0)), window),
		VisitsPerS:    perSecond(float64(n.visits), window),
		Hops:          int(n.resumes),
		LastRule:      c.lastRule,
		Idle:          1,
		PrefixHits:    share(n.cached, n.prompt),
		Prompt:        int(n.prompt),
		Recomputed:    int(n.recomputed),
		Preempted:     int(n.preempted),
	}
	if n.batches > 0 {
		k := float64(n.batches)
		p.MeanBatch = float64(n.batchRows) / k
		p.StepMs = float64(n.stepNs) / k / 1e6
		p.ExecMs = float64(n.execNs) / k / 1e6
		p.ByB, p.ByGuard, p.ByAhead = float64(n.byB)/k, float64(n.byGuard)/k, float64(n.byAhead)/k
		p.ByEager = float64(n.batches-n.byB-n.byGuard-n.byAhead) / k
	}
	if n.resumes > 0 {
		p.ExtendPerHop = float64(n.extended) / float64(n.resumes)
	}
	if window > 0 {
		p.Busy = min(float64(busy)/float64(window), 1)
		p.WaitB = min(float64(wait)/float64(window), 1-p.Busy)
		p.Idle = 1 - p.Busy - p.WaitB
	}
	return p
}

func quantiles(h *hist) Quantiles {
	return Quantiles{N: int(h.n), P50: h.quantile(0.5) / 1e6, P95: h.quantile(0.95) / 1e6, P99: h.quantile(0.99) / 1e6}
}
