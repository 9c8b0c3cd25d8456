package metrics

import (
	"math"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
)

// stepTimes measures the steps of one subserver.
type stepTimes struct {
	exec, whole *cost.Fitter
	keep        float64
	brought     brought // with weights
	running     bool
	batch       uint64
	started     int64
	now         brought // by the running batch
}

// brought is what batches feed, counted as cost.Of does: a row that decodes is a
// decode row with one token and brings prefill tokens beyond it, any other one
// brings prefill tokens only.
type brought struct{ rows, decode, tokens float64 }

func newStepTimes(halfLife float64) stepTimes {
	if !(halfLife > 0) {
		halfLife = cost.DefaultHalfLife
	}
	return stepTimes{
		exec: cost.NewFitter(halfLife), whole: cost.NewFitter(halfLife), keep: math.Exp2(-1 / halfLife),
	}
}

// restart forgets the times, also that of the batch which runs.
func (s *stepTimes) restart() {
	s.exec.Reset()
	s.whole.Reset()
	s.started = -1
}

func (s *stepTimes) start(b *event.Batch, at int64) {
	s.running, s.batch, s.started = true, b.ID, max(at, 0)
	s.now = brought{rows: float64(len(b.Rows))}
	for i := range b.Rows {
		n := float64(len(b.Rows[i].Tokens))
		if !cost.Decodes(&b.Rows[i]) {
			s.now.tokens += n
			continue
		}
		s.now.decode++
		s.now.tokens += max(n-1, 0)
	}
}

// done takes the end of a step; false for one that was not seen to start.
func (s *stepTimes) done(r *event.StepResult, at int64) bool {
	if !s.running || r.Batch != s.batch {
		return false
	}
	s.running = false
	if s.started < 0 || r.Err != "" {
		return true
	}
	b := &s.brought
	b.rows = s.keep*b.rows + s.now.rows
	b.decode = s.keep*b.decode + s.now.decode
	b.tokens = s.keep*b.tokens + s.now.tokens
	rows, tokens := int(s.now.decode), int(s.now.tokens)
	s.exec.Add(rows, tokens, time.Duration(r.ExecNs))
	s.whole.Add(rows, tokens, time.Duration(at-s.started))
	return true
}

// Mix is what a row of a batch brings in the mean, over the half-life of step
// times.
type Mix struct {
	Decode float64 // share of decode rows, the rest are prefill
	Tokens float64 // prefill tokens: of prompts, and what resumed rows feed beyond one
}

// mix of a subserver that has run nothing is that of plain decode.
func (s *stepTimes) mix() Mix {
	if s.brought.rows == 0 {
		return Mix{Decode: 1}
	}
	return Mix{Decode: s.brought.decode / s.brought.rows, Tokens: s.brought.tokens / s.brought.rows}
}
