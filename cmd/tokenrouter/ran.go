package main

// ranJSON is the part of --json that says under which clock and load a run was,
// and what it took here.
type ranJSON struct {
	TokensFrom string  `json:"tokens_from"` // models, drawn, or a session
	Arrivals   string  `json:"arrivals"`
	Achieved   float64 `json:"arrivals_per_s"` // that came, 0 in the closed loop
	WarmUpS    float64 `json:"warm_up_s"`
	SessionS   float64 `json:"session_s"` // of the clock's time, virtual for sim
	WallS      float64 `json:"wall_s"`
	Factor     float64 `json:"factor"`             // session_s / wall_s
	Unrecorded uint64  `json:"unrecorded_answers"` // that a session repeated here does not have, and that were drawn
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
	if r.Arrivals != closedLoop {
		row("arrivals", "%s; %.3g a second came", r.Arrivals, r.Achieved)
	}
	if virtual {
		row("virtual time", "%.2f s in %.2f s, %.0f times as fast as the clock", r.SessionS, r.WallS, r.Factor)
	}
}
