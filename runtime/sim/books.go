package sim

import (
	"math"
	"math/bits"

	"tokenrouter/runtime/event"
)

// Result is what a run measured so far. Rates and means are of the window from
// From to To, in ns of virtual time: up to Until where that is over, else to the
// present, else, when every request is over, to the end of the last. Counts of
// requests are of the whole run.
type Result struct {
	From, To int64
	Tokens   int     // committed within the window
	Rate     float64 // of those, per second
	RateErr  float64 // standard error of Rate, from parts of the window; 0 before Until
	Gap50    float64 // ms between two tokens of a request, the later in the window: median
	Gap99    float64 // and 99th percentile, both within 0.4 %
	Cores    []CoreResult

	Sent     int   // requests
	Finished int   // of them: over, however they ended
	Failed   int   // of those, with an error or rejected
	Stuck    int   // requests that are not over although nothing is due any more; 0 with Until
	LastEnd  int64 // when the last request was over
	Events   int   // things that happened
}

// CoreResult is what one subserver did within the window.
type CoreResult struct {
	Batches   int     // that ended
	Rows      int     // of those
	Busy      float64 // fraction of time a batch ran
	MeanBatch float64 // rows
	Waiting   float64 // mean number of requests ready and not running
	MaxWait   int64   // ns that a row had been ready when its batch started, the longest
	Rules     [4]int  // batches that started, by event.Rule
}

// parts is into how many the window is cut for the standard error.
const parts = 32

// books is what the run writes down as it goes.
type books struct {
	from, to int64
	part     [parts]int
	tokens   int
	all      int     // tokens, also outside the window
	last     []int64 // by request: when its last token was committed, -1 before the first
	gaps     gaps
	cores    []coreBooks

	events, finished, failed int
	lastEnd                  int64
}

type coreBooks struct {
	CoreResult
	busy, waited int64
}

func newBooks(cfg *Config) books {
	b := books{from: cfg.WarmUp, to: math.MaxInt64, cores: make([]coreBooks, len(cfg.Cluster))}
	if cfg.Until > 0 {
		b.to = cfg.Until
	}
	return b
}

// in says whether what happens now counts.
func (b *books) in(now int64) bool { return now > b.from && now <= b.to }

// within is the part of lo to hi that lies in the window.
func (b *books) within(lo, hi int64) int64 { return max(0, min(hi, b.to)-max(lo, b.from)) }

func (b *books) started(p event.Peer, now int64, batch *event.Batch) {
	c := &b.cores[p]
	for i := range batch.Rows {
		w := batch.Rows[i].WaitedNs
		c.waited += b.within(now-w, now)
		if b.in(now) {
			c.MaxWait = max(c.MaxWait, w)
		}
	}
	if b.in(now) && int(batch.Rule) < len(c.Rules) {
		c.Rules[batch.Rule]++
	}
}

func (b *books) ended(p event.Peer, now int64, batch *event.Batch, run *coreState) {
	c := &b.cores[p]
	c.busy += b.within(run.started, run.until(now))
	if b.in(now) {
		c.Batches++
		c.Rows += len(batch.Rows)
	}
}

// killed books what a batch ran until its subserver was killed.
func (b *books) killed(p event.Peer, now int64, c *coreState) {
	if c.batch != nil {
		b.cores[p].busy += b.within(c.started, c.until(now))
	}
}

func (b *books) emitted(now int64, id event.ReqID) {
	for int(id) >= len(b.last) {
		b.last = append(b.last, -1)
	}
	before := b.last[id]
	b.last[id] = now
	b.all++
	if !b.in(now) {
		return
	}
	b.tokens++
	if b.to < math.MaxInt64 {
		i := float64(now-b.from) / float64(b.to-b.from) * parts
		b.part[min(int(i), parts-1)]++
	}
	if before >= 0 {
		b.gaps.add(now - before)
	}
}

func (b *books) over(now int64, cmd *event.Command) {
	b.finished++
	b.lastEnd = now
	if cmd.Kind == event.Reject || cmd.Reason == event.ReasonError {
		b.failed++
	}
}

// Result is what was measured up to now.
func (s *Sim) Result() Result {
	b := &s.books
	r := Result{
		From: b.from, To: max(b.from, min(b.to, s.now)), Tokens: b.tokens,
		Gap50: b.gaps.quantile(0.5), Gap99: b.gaps.quantile(0.99),
		Sent: s.fab.Core(event.Front).Counts().Arrived, Finished: b.finished, Failed: b.failed, LastEnd: b.lastEnd, Events: b.events,
	}
	if s.cfg.Until == 0 && s.begun && !s.more() {
		r.To, r.Stuck = max(b.from, b.lastEnd), s.open()
	}
	width := r.To - r.From
	seconds := float64(width) / 1e9
	if width > 0 {
		r.Rate = float64(b.tokens) / seconds
	}
	if s.now >= b.to {
		r.RateErr = b.rateErr(seconds)
	}
	for p := range b.cores {
		c := &b.cores[p]
		out := c.CoreResult
		busy := c.busy
		if run := &s.cores[p]; run.batch != nil {
			busy += b.within(run.started, run.until(s.now))
		}
		if width > 0 {
			out.Busy, out.Waiting = float64(busy)/float64(width), float64(c.waited)/float64(width)
		}
		if c.Batches > 0 {
			out.MeanBatch = float64(c.Rows) / float64(c.Batches)
		}
		r.Cores = append(r.Cores, out)
	}
	return r
}

// rateErr is the standard error of the rate by the method of batch means.
func (b *books) rateErr(seconds float64) float64 {
	mean := float64(b.tokens) / parts
	sum := 0.0
	for _, n := range b.part {
		sum += (float64(n) - mean) * (float64(n) - mean)
	}
	return math.Sqrt(sum/(parts-1)/parts) * parts / seconds
}

// gaps counts times in buckets of at most 0.4 % of their length.
type gaps struct {
	n       int
	buckets []int
}

const gapSub = 256 // buckets per octave

func (g *gaps) add(ns int64) {
	u := uint64(max(ns, 0))
	shift := max(bits.Len64(u)-9, 0)
	i := shift*gapSub + int(u>>shift)
	for i >= len(g.buckets) {
		g.buckets = append(g.buckets, make([]int, gapSub)...)
	}
	g.buckets[i]++
	g.n++
}

// quantile is the nearest-rank quantile in ms, at the middle of its bucket.
func (g *gaps) quantile(p float64) float64 {
	rank := max(1, int(math.Ceil(p*float64(g.n))))
	before := 0
	for i, n := range g.buckets {
		if before += n; before >= rank {
			shift := max(i/gapSub-1, 0)
			low, width := int64(i-shift*gapSub)<<shift, int64(1)<<shift
			return (float64(low) + float64(width-1)/2) / 1e6
		}
	}
	return 0
}
