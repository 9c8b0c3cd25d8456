package live

import (
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// scorer makes what evaluates heads for the router of a subserver. Each machine of
// Lua gets its own: the one that decides, and each one that is tried.
//
// A head reads what the runner computed in the step whose rows are routed. The
// runner rests meanwhile: the next batch is ordered when the step's result has been
// stated, and KV is dropped between batches (see flush).
func (r *Runtime) scorer(p event.Peer) scripting.Scorer {
	if r.cfg.Scorer == nil {
		return noModel{}
	}
	if s := r.cfg.Scorer(p); s != nil {
		return s
	}
	return noModel{}
}

// noModel is the scorer where tokens are drawn, or repeated by who keeps no scores.
type noModel struct{}

func (noModel) Check(string) error { return scripting.ErrNoModel }

func (noModel) Score(string, *scripting.Row) (float64, error) { return 0, scripting.ErrNoModel }

// announce tells the scorer which rows are about to be routed.
func (s *subserver) announce(b *event.Batch, outs []event.Output) {
	step, ok := s.scorer.(scripting.StepScorer)
	if !ok {
		return
	}
	s.scored = s.scored[:0]
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Sample {
			s.scored = append(s.scored, scripting.StepRow{Req: row.Req, Output: &outs[len(s.scored)]})
		}
	}
	step.Step(s.scored)
}
