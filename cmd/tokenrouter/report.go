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
	out     reportJSON
}

// quantiles are of a latency, in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
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
	ElapsedS             float64            `json:"elapsed_s"`
	DeviceSecondsPerMTok map[string]float64 `json:"device_s_per_mtok"`
	MeanBatch            map[string]float64 `json:"mean_batch"`
	Recomputed           int                `json:"recomputed_tokens"`
	Faults               int                `json:"router_faults"`
	Plan                 *planJSON          `json:"plan"`
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
	o.TokensPerS, o.WindowS, o.ElapsedS = s.TokensPerS, s.Window.Seconds(), s.ElapsedS
	o.TTFT, o.ITL = quantiles{s.TTFTms.P50, s.TTFTms.P99}, quantiles{s.ITLms.P50, s.ITLms.P99}
	o.Requests, o.Ends, o.Recomputed, o.Faults = s.Requests, s.Ends, s.Recomputed, s.Faults
	o.TokensByRole, o.DeviceSecondsPerMTok, o.MeanBatch = map[string]int{}, map[string]float64{}, map[string]float64{}
	for _, r := range s.TokensByRole {
		o.TokensByRole[r.Role] = r.Tokens
		o.DeviceSecondsPerMTok[r.Role] = r.DeviceSecondsPerMTok
		o.MeanBatch[r.Role] = r.MeanBatch
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
	_, err := io.WriteString(w, r.text())
	return err
}

func (r *report) text() string {
	var b strings.Builder
	s, o := &r.summary, &r.out
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-16s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("models", "%s", r.models)
	row("router", "%s%s", o.Router, paramText(o.Params))
	row("run", "%s clock, batch %s, concurrency %d, seed %d", o.Clock, o.Batch, o.Concurrency, o.Seed)
	row("requests", "%d%s", o.Requests, endsText(o.Ends))
	row("throughput", "%.1f tok/s over %.2f s (first token to last)", o.TokensPerS, o.WindowS)
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
	row("TTFT", "p50 %.1f ms, p99 %.1f ms", o.TTFT.P50, o.TTFT.P99)
	row("inter-token", "p50 %.2f ms, p99 %.2f ms", o.ITL.P50, o.ITL.P99)
	if o.Total > 0 {
		row("right", "%d of %d, %.1f %% (95 %% interval %.1f to %.1f %%)", o.Correct, o.Total,
			100*float64(o.Correct)/float64(o.Total), 100*o.CorrectLo, 100*o.CorrectHi)
	}
	for _, t := range s.TokensByRole {
		row(t.Role, "%.0f device-s per million tokens, %d batches of %.2f rows, %d candidates dropped",
			t.DeviceSecondsPerMTok, t.Batches, t.MeanBatch, t.Dropped)
	}
	row("recomputed", "%d tokens", o.Recomputed)
	if o.Faults > 0 {
		row("router faults", "%d; the default decision was taken", o.Faults)
	}
	if r.late > 0 {
		row("late steps", "%d took longer here than the cost profile allows", r.late)
	}
	if o.Session != "" {
		row("session", "%s", o.Session)
	}
	return b.String()
}
