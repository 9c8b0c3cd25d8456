package main

import (
	"slices"
	"strings"

	"tokenrouter/kernels/cpu"
)

// ranJSON is the part of --json that says under which clock and load a run was,
// and what it took here.
type ranJSON struct {
	TokensFrom string  `json:"tokens_from"` // models, drawn, or a session
	Arrivals   string  `json:"arrivals"`
	Achieved   float64 `json:"arrivals_per_s"` // that came, 0 in the closed loop
	Stalls     bool    `json:"stalls"`         // steps stall as the cost profile has it
	Jitter     float64 `json:"jitter"`
	Late       int64   `json:"late_steps"`  // that took longer here than the cost profile allows
	Outside    int     `json:"outside_box"` // batches that the step times were not measured at
	WarmUpS    float64 `json:"warm_up_s"`
	SessionS   float64 `json:"session_s"` // of the clock's time, virtual for sim
	WallS      float64 `json:"wall_s"`
	Factor     float64 `json:"factor"`             // session_s / wall_s
	Unrecorded uint64  `json:"unrecorded_answers"` // that a session repeated here does not have, and that were drawn

	Held    []string `json:"held"`    // formats of weights and KV of models that compute, by model; empty where none does
	Kernels string   `json:"kernels"` // level of the arithmetic, likewise ""
	Threads int      `json:"threads"` // likewise 0
	chosen  bool     // a model is from disk, or formats were asked for
}

// rows are those of the summary that only some runs have.
func (r *ranJSON) rows(row func(name, format string, args ...any), virtual bool) {
	switch r.TokensFrom {
	case tokensModels:
	case tokensDrawn:
		row("tokens from", "a law of signals, drawn")
	default:
		row("tokens from", "session %s; %d answers that it does not have were drawn from its others", r.TokensFrom, r.Unrecorded)
	}
	if r.chosen {
		row("held as", "%s; kernels %s, threads %d", strings.Join(r.Held, " + "), r.Kernels, r.Threads)
	}
	switch {
	case r.Stalls && r.Jitter > 0:
		row("steps", "stall as the cost profile has it, and vary by a factor with coefficient of variation %g", r.Jitter)
	case r.Stalls:
		row("steps", "stall as the cost profile has it")
	case r.Jitter > 0:
		row("steps", "vary by a factor with coefficient of variation %g", r.Jitter)
	}
	if r.Arrivals != closedLoop {
		row("arrivals", "%s; %.3g a second came", r.Arrivals, r.Achieved)
	}
	if virtual {
		digits := 0
		if r.Factor < 10 {
			digits = 1
		}
		row("virtual time", "%.2f s in %.2f s, %.*f times as fast as the clock", r.SessionS, r.WallS, digits, r.Factor)
	}
}

// computed says what computed the tokens, if models did.
func (r *ranJSON) computed(c *cluster) {
	r.Held = []string{}
	if c.cast.shelf == nil {
		return
	}
	for _, m := range c.cast.models {
		r.Held = append(r.Held, heldText(m.Weights, m.KV))
	}
	r.Kernels, r.Threads = cpu.Current().String(), c.flags.threads()
	r.chosen = c.cast.shelf.own() || slices.ContainsFunc(c.cast.shelf.origins, func(o origin) bool { return o.weights != "" || o.kv != "" })
}
