package metrics

import (
	"maps"
	"slices"
	"time"

	"tokenrouter/runtime/event"
)

// Summary is what a run comes to.
type Summary struct {
	Tokens           int
	TokensByRole     []RoleSummary // in the order of the subservers; adds up to Tokens
	LargeTokens      int
	LargeShare       float64
	SwitchesPerToken float64
	Correct, Total   int // checked answers
	CorrectLo        float64
	CorrectHi        float64 // 95 %, Wilson

	// TokensPerS is of Window: running time from the first token of the run to
	// the last, less the time without an active request. The tokens of its first
	// instant are not counted in: n tokens have n-1 gaps. Loading, the first
	// prefill and pauses are outside.
	TokensPerS float64
	Window     time.Duration

	TTFTms, ITLms Quantiles
	Requests      int            // arrived
	Ends          map[string]int // requests by end reason; "rejected" never ran, "open" has not ended
	Recomputed    int            // fed positions that a model once had and lost
	Faults        int            // router faults
	ElapsedS      float64        // session time since the first record
}

// RoleSummary is one subserver's part of a run.
type RoleSummary struct {
	Role                 string
	Tokens               int
	Rows, Dropped        int // candidates drawn, and discarded by the router
	Batches              int
	MeanBatch            float64
	BusyS                float64 // session time in which a batch ran
	DeviceSecondsPerMTok float64 // BusyS per million tokens of the run
}

// Summary gives the figures at now, session time in ns. Requests that have not
// ended count with what they have written.
func (r *Run) Summary(now int64) Summary {
	sum := r.sum
	sum.tokens, sum.ttft, sum.itl = slices.Clone(sum.tokens), slices.Clone(sum.ttft), slices.Clone(sum.itl)
	s := Summary{
		Correct:    r.answers.right,
		Total:      r.answers.checked,
		Ends:       maps.Clone(r.ends),
		Recomputed: int(r.recomputed),
		Faults:     r.faults,
	}
	for _, e := range r.ledger.active {
		sum.add(e, len(e.writers), r.first)
		s.Ends["open"]++
	}
	for _, n := range s.Ends {
		s.Requests += n
	}
	s.CorrectLo, s.CorrectHi = Wilson(s.Correct, s.Total)
	if r.began {
		s.ElapsedS = max(time.Duration(now-r.start).Seconds(), 0)
	}
	for _, n := range sum.tokens {
		s.Tokens += int(n)
	}
	for p := range r.cores {
		s.TokensByRole = append(s.TokensByRole, r.role(p, int(sum.tokens[p]), s.Tokens))
	}
	if n := len(r.cores); n > 1 {
		s.LargeTokens = int(sum.tokens[n-1])
	}
	s.LargeShare = share(int64(s.LargeTokens), int64(s.Tokens))
	s.SwitchesPerToken = share(sum.switches, int64(s.Tokens))
	if r.emitted {
		s.Window = time.Duration(max(sum.last-r.first-sum.idle, 0))
		s.TokensPerS = perSecond(float64(int64(s.Tokens)-sum.atFirst), s.Window)
	}
	s.TTFTms, s.ITLms = exact(sum.ttft), exact(sum.itl)
	return s
}

func (r *Run) role(p, tokens, all int) RoleSummary {
	c := &r.cores[p]
	out := RoleSummary{
		Role:    event.Role(event.Peer(p), len(r.cores)),
		Tokens:  tokens,
		Rows:    int(c.rows),
		Dropped: int(c.dropped),
		Batches: int(c.batches),
		BusyS:   time.Duration(c.busyNs).Seconds(),
	}
	if c.batches > 0 {
		out.MeanBatch = float64(c.batchRows) / float64(c.batches)
	}
	if all > 0 {
		out.DeviceSecondsPerMTok = out.BusyS * 1e6 / float64(all)
	}
	return out
}

// exact gives the quantiles of durations in ns.
func exact(ns []float64) Quantiles {
	return Quantiles{N: len(ns), P50: Percentile(ns, 0.5) / 1e6, P99: Percentile(ns, 0.99) / 1e6}
}
