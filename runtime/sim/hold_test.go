package sim_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/sched"
	"tokenrouter/runtime/sim"
)

// holding lets a source's router hold tokens back and take some back where it
// hands a request on.
type holding struct {
	sim.Source
	seed uint64
}

func (h holding) Answer(at int64, p event.Peer, core *sched.Core, b *event.Batch, step *event.StepResult) {
	h.Source.Answer(at, p, core, b, step)
	for i := range step.Rows {
		row := &step.Rows[i]
		v, _ := core.View(row.Req)
		pos := len(v.Tokens)
		key := rng.Key{Seed: h.seed, Req: uint64(row.Req), Pos: pos, Model: int(p), Purpose: 98}
		row.Hold = 5
		if cut := max(v.Emitted, pos-int(key.Uint64(0)%5)); row.Dest != p && key.Float64(1) < 0.4 {
			row.Action, row.At = event.Truncate, cut
		}
	}
}

// held is full under a router that takes tokens back.
func held(t testing.TB, seed uint64) sim.Config {
	cfg := full(t, seed)
	cfg.Source = holding{cfg.Source, seed}
	return cfg
}

// In virtual time every position of a request is emitted once and in order, and a
// request ends with as many as were asked for, also where tokens are taken back,
// KV runs short and every switch is a new request.
func TestHeldTokensComeInOrder(t *testing.T) {
	for seed := range uint64(3) {
		cfg := held(t, seed)
		cfg.Until = 12 * second
		_, log := logged(t, cfg)
		next, length := map[event.ReqID]int{}, map[event.ReqID]int{}
		cuts, others, ends := 0, 0, 0
		for _, e := range log {
			if a := e.ev.Arrival; a != nil {
				next[e.ev.Req], length[e.ev.Req] = len(a.Prompt), len(a.Prompt)+a.MaxTokens
			}
			if e.ev.Step != nil {
				for _, row := range e.ev.Step.Rows {
					if row.Action == event.Truncate {
						cuts++
					}
				}
			}
			for _, c := range e.cmds {
				switch c.Kind {
				case event.Emit:
					if c.Pos != next[c.Req] {
						t.Fatalf("seed %d: request %d emits position %d, the next is %d", seed, c.Req, c.Pos, next[c.Req])
					}
					next[c.Req]++
					if c.Wrote > 0 {
						others++
					}
				case event.Finish:
					ends++
					if c.N != next[c.Req] || c.N != length[c.Req] {
						t.Fatalf("seed %d: request %d ends with %d tokens of %d, emitted up to %d", seed, c.Req, c.N, length[c.Req], next[c.Req])
					}
				}
			}
		}
		if cuts < 100 || others < 100 || ends < 20 {
			t.Errorf("seed %d: %d truncations, %d tokens emitted for another, %d ends; the test has lost its sense", seed, cuts, others, ends)
		}
	}
}
