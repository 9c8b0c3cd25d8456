package metrics

import (
	"maps"
	"time"

	"tokenrouter/runtime/event"
)

// Summary is what a run comes to. Requests, Ends, answers, faults and ElapsedS
// are of the whole run; everything else is of the part that Measure gave, which
// is all of it unless told. What takes time belongs to where it ends: a token
// with the gap before it, a batch, the latency of a request.
type Summary struct {
	Tokens           int
	TokensByRole     []RoleSummary // in the order of the subservers; adds up to Tokens
	LargeTokens      int
	LargeShare       float64
	Switches         int // changes of writer along a request's positions
	SwitchesPerToken float64
	Correct, Total   int // checked answers
	CorrectLo        float64
	CorrectHi        float64         // 95 %, Wilson
	Families         []FamilySummary // the same of requests that have one, by name

	// TokensPerS is of Window: running time from the first token of the run, or
	// the end of the warm-up, to the last token, or the end of the measured part,
	// less the time without an active request. The tokens of its first instant
	// are not counted in: n tokens have n-1 gaps. Loading, the first prefill and
	// pauses are outside. From and To are its ends since the first arrival; Whole
	// says that Measure left nothing out.
	TokensPerS float64
	Window     time.Duration
	From, To   time.Duration
	Whole      bool

	// PeakPerS is the most tokens/s in any of the equal parts of 1 to 2 s that
	// Window has: never below TokensPerS, and the same below 2 s.
	PeakPerS float64

	TTFTms, ITLms Quantiles
	Queuems       Quantiles // from arrival to admission, of requests admitted; not of those that ended by force before a token
	E2Ems         Quantiles // from arrival to the last token, of requests that ended by themselves

	// User is the speed of a request from its first token to its last, waiting
	// for the first one not included. A request that the window cuts, or that has
	// not ended by itself, counts with its tokens in the window if they are 32 or
	// more.
	User Speeds

	Requests     int            // arrived
	Ends         map[string]int // requests by end reason; "rejected" never ran, "open" has not ended
	Resumes      int            // times that a request drew again where it had been before
	Extended     int            // tokens fed on those beyond one each: what others wrote meanwhile
	Recomputed   int            // fed positions that a model once had and lost
	PromptTokens int            // prompt positions of requests that came to a subserver without KV
	CachedTokens int            // of them, those that the prefix cache had
	Faults       int            // router faults
	ElapsedS     float64        // session time since the first record
}

// RoleSummary is one subserver's part of a run.
type RoleSummary struct {
	Role                 string
	Tokens               int
	Rows, Dropped        int // candidates drawn, and discarded by the router or taken back before they were emitted
	Truncated            int // those that were taken back, of Dropped
	Batches              int
	MeanBatch            float64
	Idle                 float64 // share of Window in which no batch ran
	Extended, Recomputed int     // as in Summary
	BusyS                float64 // session time that batches took
	DeviceSecondsPerMTok float64 // BusyS per million tokens of the run
}

// Summary gives the figures at now, session time in ns. Requests that have not
// ended count with what they have written.
func (r *Run) Summary(now int64) Summary {
	sum := r.sum.clone()
	s := Summary{
		Correct: r.answers.right,
		Total:   r.answers.checked,
		Ends:    maps.Clone(r.ends),
		Faults:  r.faults,
		Whole:   r.span.Span == Span{},
	}
	for _, e := range r.ledger.active { // sums and sorted lists: the order does not matter
		sum.add(e, len(e.writers), r.lo(), &r.span, false)
		s.Ends["open"]++
	}
	for _, n := range s.Ends {
		s.Requests += n
	}
	s.CorrectLo, s.CorrectHi = Wilson(s.Correct, s.Total)
	s.Families = r.families.summaries()
	if r.began {
		s.ElapsedS = max(time.Duration(now-r.start).Seconds(), 0)
	}
	for _, n := range sum.tokens {
		s.Tokens += int(n)
	}
	win := r.window(&sum, r.clock.at(sessionTime(now)))
	length := win.length()
	for p := range r.cores {
		role := r.role(p, int(sum.tokens[p]), s.Tokens, &win)
		s.TokensByRole = append(s.TokensByRole, role)
		c := &r.cores[p]
		s.Resumes += int(c.resumes)
		s.Extended += role.Extended
		s.Recomputed += role.Recomputed
		s.PromptTokens += int(c.prompt)
		s.CachedTokens += int(c.cached)
	}
	if n := len(r.cores); n > 1 {
		s.LargeTokens = int(sum.tokens[n-1])
	}
	s.LargeShare = share(int64(s.LargeTokens), int64(s.Tokens))
	s.Switches = int(sum.switches)
	s.SwitchesPerToken = share(sum.switches, int64(s.Tokens))
	if r.emitted {
		s.Window = time.Duration(length)
		s.From, s.To = time.Duration(win.lo-r.span.origin), time.Duration(win.hi-r.span.origin)
		s.TokensPerS = perSecond(float64(int64(s.Tokens)-sum.atFirst), s.Window)
		s.PeakPerS = win.peak(sum.times)
	}
	s.TTFTms, s.ITLms, s.Queuems, s.E2Ems = exact(sum.ttft), exact(sum.itl), exact(sum.queue), exact(sum.e2e)
	s.User = sum.speeds()
	return s
}

// window is that of the rates, at running time now.
func (r *Run) window(sum *totals, now int64) measured {
	win := measured{lo: r.lo(), hi: sum.last, quiet: r.quiet}
	if r.span.To > 0 {
		win.hi = min(r.span.hi(), now)
		if len(r.active) == 0 && r.emitted && r.since < win.hi {
			win.quiet = append(win.quiet[:len(win.quiet):len(win.quiet)], lapse{r.since, win.hi})
		}
	}
	win.hi = max(win.hi, win.lo)
	return win
}

func (r *Run) role(p, tokens, all int, win *measured) RoleSummary {
	c := &r.cores[p]
	out := RoleSummary{
		Role:       event.Role(event.Peer(p), len(r.cores)),
		Tokens:     tokens,
		Rows:       int(c.rows),
		Dropped:    int(c.dropped),
		Truncated:  int(c.taken),
		Batches:    int(c.batches),
		Extended:   int(c.extended - c.resumes),
		Recomputed: int(c.recomputed),
		BusyS:      time.Duration(c.busyNs).Seconds(),
	}
	if c.batches > 0 {
		out.MeanBatch = float64(c.batchRows) / float64(c.batches)
	}
	if all > 0 {
		out.DeviceSecondsPerMTok = out.BusyS * 1e6 / float64(all)
	}
	var running lapse
	if c.running {
		running = lapse{c.began, win.hi}
	}
	if length := win.length(); length > 0 {
		busy := c.busy.until(win.lo, win.hi, running)
		out.Idle = max(1-float64(busy)/float64(length), 0)
	}
	return out
}
