package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// report is the summary of a run, for a person or for a program.
type report struct {
	summary metrics.Summary
	models  string
	late    int64
	batches int  // that ran under a cost profile
	virtual bool // the clock is sim
	out     reportJSON
}

// quantiles are of a latency, in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

func quantilesOf(q metrics.Quantiles) quantiles { return quantiles{q.P50, q.P95, q.P99} }

// speeds are of requests, in tokens/s.
type speeds struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P5   float64 `json:"p5"`
}

// familyJSON is the right answers of one family of problems.
type familyJSON struct {
	Family    string  `json:"family"`
	Correct   int     `json:"correct"`
	Total     int     `json:"total"`
	CorrectLo float64 `json:"correct_lo"`
	CorrectHi float64 `json:"correct_hi"`
}

// reportJSON is the stable form of --json; docs/cli.md describes each key.
type reportJSON struct {
	Tokens           int                `json:"tokens"`
	TokensByRole     map[string]int     `json:"tokens_by_role"`
	LargeTokens      int                `json:"large_tokens"`
	LargeShare       float64            `json:"large_share"`
	SwitchesPerToken float64            `json:"switches_per_token"`
	Correct          int                `json:"correct"`
	Total            int                `json:"total"`
	TokensPerS       float64            `json:"tokens_per_s"`
	TTFT             quantiles          `json:"ttft_ms"`
	ITL              quantiles          `json:"itl_ms"`
	Concurrency      int                `json:"concurrency"`
	Seed             uint64             `json:"seed"`
	Router           string             `json:"router"`
	Params           map[string]float64 `json:"params"`
	Models           []string           `json:"models"`
	Session          string             `json:"session"`

	CorrectLo            float64            `json:"correct_lo"`
	CorrectHi            float64            `json:"correct_hi"`
	Clock                string             `json:"clock"`
	Batch                string             `json:"batch"`
	Greedy               bool               `json:"greedy"`
	Temperature          float64            `json:"temperature"`
	TopK                 int                `json:"top_k"`
	TopP                 float64            `json:"top_p"`
	MaxTokens            int                `json:"max_tokens"`
	Workload             string             `json:"workload"`
	Requests             int                `json:"requests"`
	Ends                 map[string]int     `json:"ends"`
	WindowS              float64            `json:"window_s"`
	WindowFromS          float64            `json:"window_from_s"`
	WindowToS            float64            `json:"window_to_s"`
	PeakPerS             float64            `json:"peak_tokens_per_s"`
	User                 speeds             `json:"user_tokens_per_s"`
	Queue                quantiles          `json:"queue_ms"`
	Latency              quantiles          `json:"latency_ms"`
	ElapsedS             float64            `json:"elapsed_s"`
	DeviceSecondsPerMTok map[string]float64 `json:"device_s_per_mtok"`
	MeanBatch            map[string]float64 `json:"mean_batch"`
	Idle                 map[string]float64 `json:"idle"`
	Switches             int                `json:"switches"`
	Resumes              int                `json:"resumes"`
	Extended             int                `json:"extended_tokens"`
	Recomputed           int                `json:"recomputed_tokens"`
	PromptTokens         int                `json:"prompt_tokens"`
	CachedTokens         int                `json:"cached_tokens"`
	Faults               int                `json:"router_faults"`
	Families             []familyJSON       `json:"families,omitempty"`
	Plan                 *planJSON          `json:"plan"`

	ranJSON
}

// planJSON is what the throughput model expected of the run.
type planJSON struct {
	BStar     []int    `json:"B_star"`
	Predicted *float64 `json:"predicted_tokens_per_s"` // of the policy in force, null for look-ahead
	Best      float64  `json:"best_tokens_per_s"`
	Eager     float64  `json:"eager_tokens_per_s"`
	Lockstep  float64  `json:"lockstep_tokens_per_s"`
	Warnings  []string `json:"warnings"`
}

// takePlan takes the newest plan for all outstanding requests over: one of the
// end of a run is for those that were left.
func (o *reportJSON) takePlan(p *tape.Plan) {
	if p == nil {
		return
	}
	o.Plan = &planJSON{
		BStar: p.B, Best: p.Best, Eager: p.Eager, Lockstep: p.Lockstep,
		Warnings: append([]string{}, p.Warnings...),
	}
	if p.Predicted > 0 {
		o.Plan.Predicted = &p.Predicted
	}
}

// fill takes the figures of a summary over.
func (o *reportJSON) fill(s *metrics.Summary) {
	o.Tokens, o.LargeTokens, o.LargeShare = s.Tokens, s.LargeTokens, s.LargeShare
	o.SwitchesPerToken, o.Correct, o.Total = s.SwitchesPerToken, s.Correct, s.Total
	o.CorrectLo, o.CorrectHi = s.CorrectLo, s.CorrectHi
	for _, f := range s.Families {
		o.Families = append(o.Families, familyJSON{f.Family, f.Correct, f.Total, f.Lo, f.Hi})
	}
	o.TokensPerS, o.WindowS, o.ElapsedS = s.TokensPerS, s.Window.Seconds(), s.ElapsedS
	o.WindowFromS, o.WindowToS, o.PeakPerS = s.From.Seconds(), s.To.Seconds(), s.PeakPerS
	o.User = speeds{s.User.N, s.User.Mean, s.User.P50, s.User.P5}
	o.TTFT, o.ITL = quantilesOf(s.TTFTms), quantilesOf(s.ITLms)
	o.Queue, o.Latency = quantilesOf(s.Queuems), quantilesOf(s.E2Ems)
	o.Requests, o.Ends, o.Faults = s.Requests, s.Ends, s.Faults
	o.Switches, o.Resumes, o.Extended, o.Recomputed = s.Switches, s.Resumes, s.Extended, s.Recomputed
	o.PromptTokens, o.CachedTokens = s.PromptTokens, s.CachedTokens
	o.TokensByRole, o.DeviceSecondsPerMTok = map[string]int{}, map[string]float64{}
	o.MeanBatch, o.Idle = map[string]float64{}, map[string]float64{}
	for _, r := range s.TokensByRole {
		o.TokensByRole[r.Role] = r.Tokens
		o.DeviceSecondsPerMTok[r.Role] = r.DeviceSecondsPerMTok
		o.MeanBatch[r.Role] = r.MeanBatch
		o.Idle[r.Role] = r.Idle
	}
}

func vectorText(b []int) string {
	parts := make([]string, len(b))
	for i, v := range b {
		parts[i] = strconv.Itoa(v)
	}
	return strings.Join(parts, ",")
}

func (r *report) print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(&r.out)
	}
	_, err := io.WriteString(w, onTerminal(r.text()))
	return err
}

// window says what the rates are of.
func (r *report) window() string {
	if r.summary.Whole {
		return "first token to last"
	}
	return fmt.Sprintf("%.2f to %.2f s after the first request", r.out.WindowFromS, r.out.WindowToS)
}

func (r *report) text() string {
	var b strings.Builder
	s, o := &r.summary, &r.out
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-16s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("models", "%s", r.models)
	row("router", "%s%s", o.Router, paramText(o.Params))
	load := fmt.Sprintf("concurrency %d", o.Concurrency)
	if o.Arrivals != closedLoop {
		load = "open loop"
	}
	row("run", "%s clock, batch %s, %s, seed %d", o.Clock, o.Batch, load, o.Seed)
	o.ranJSON.rows(row, r.virtual)
	row("requests", "%d%s", o.Requests, endsText(o.Ends))
	row("throughput", "%.1f tok/s over %.2f s (%s), peak %.1f", o.TokensPerS, o.WindowS, r.window(), o.PeakPerS)
	if o.User.N > 0 {
		row("per user", "%.1f tok/s on average, median %.1f, 19 of 20 at least %.1f (first token of a request to its last)", o.User.Mean, o.User.P50, o.User.P5)
	}
	if p := o.Plan; p != nil {
		predicted := "no prediction for this policy"
		if p.Predicted != nil {
			predicted = fmt.Sprintf("predicted %.1f tok/s", *p.Predicted)
		}
		row("plan", "%s; B* %s: %.1f tok/s, %+.1f %% over eager, %+.1f %% over lock-step", predicted, vectorText(p.BStar),
			p.Best, 100*(p.Best/p.Eager-1), 100*(p.Best/p.Lockstep-1))
	}
	var parts []string
	for _, t := range s.TokensByRole {
		parts = append(parts, fmt.Sprintf("%s %d", t.Role, t.Tokens))
	}
	row("tokens", "%d = %s", o.Tokens, strings.Join(parts, " + "))
	row("large share", "%.2f %%, %.3f switches per token", 100*o.LargeShare, o.SwitchesPerToken)
	row("TTFT", "p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", o.TTFT.P50, o.TTFT.P95, o.TTFT.P99)
	row("inter-token", "p50 %.2f ms, p95 %.2f ms, p99 %.2f ms", o.ITL.P50, o.ITL.P95, o.ITL.P99)
	if s.E2Ems.N > 0 {
		row("latency", "p50 %.0f ms, p95 %.0f ms, p99 %.0f ms; until admitted p50 %.0f ms, p99 %.0f ms",
			o.Latency.P50, o.Latency.P95, o.Latency.P99, o.Queue.P50, o.Queue.P99)
	}
	if o.Total > 0 {
		row("right", "%d of %d, %.1f %% (95 %% interval %.1f to %.1f %%)", o.Correct, o.Total,
			100*float64(o.Correct)/float64(o.Total), 100*o.CorrectLo, 100*o.CorrectHi)
	}
	for _, f := range o.Families {
		row("  "+f.Family, "%d of %d, %.1f %% (%.1f to %.1f %%)", f.Correct, f.Total,
			100*float64(f.Correct)/float64(f.Total), 100*f.CorrectLo, 100*f.CorrectHi)
	}
	for _, t := range s.TokensByRole {
		back := ""
		if t.Truncated > 0 {
			back = fmt.Sprintf(", %d of them written and taken back", t.Truncated)
		}
		row(t.Role, "%.0f device-s per million tokens, %d batches of %.2f rows, idle %.1f %%, %d candidates dropped%s",
			t.DeviceSecondsPerMTok, t.Batches, t.MeanBatch, 100*t.Idle, t.Dropped, back)
	}
	row("recomputed", "%d tokens; extended by %d that others wrote, beyond one at each of %d resumes", o.Recomputed, o.Extended, o.Resumes)
	if o.PromptTokens > 0 {
		row("prefix cache", "%.1f %% of %d prompt tokens", 100*float64(o.CachedTokens)/float64(o.PromptTokens), o.PromptTokens)
	}
	if o.Faults > 0 {
		row("router faults", "%d; the default decision was taken", o.Faults)
	}
	if r.late > 0 {
		row("late steps", "%d took longer here than the cost profile allows", r.late)
	}
	if o.Outside > 0 {
		row("outside box", "%d of %d batches are unlike those that the cost profile was measured at: their times are a guess", o.Outside, r.batches)
	}
	if o.Session != "" {
		row("session", "%s", o.Session)
	}
	return b.String()
}
