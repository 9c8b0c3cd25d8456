package metrics_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

const ms = int64(1e6)

// folder is what both folds are.
type folder interface{ Add(*tape.Record) }

// script writes records as the runtime would, to every fold of a test.
type script struct {
	folds []folder
	batch [8]uint64
	all   []tape.Record
}

func newScript(folds ...folder) *script { return &script{folds: folds} }

func (s *script) add(r tape.Record) {
	s.all = append(s.all, r)
	for _, f := range s.folds {
		f.Add(&r)
	}
}

func (s *script) event(at int64, core event.Peer, ev event.Event) {
	ev.At = at
	s.add(tape.Record{At: at, Core: core, Kind: tape.KindEvent, Event: &ev})
}

func (s *script) command(at int64, core event.Peer, c event.Command) {
	s.add(tape.Record{At: at, Core: core, Kind: tape.KindCommand, Command: &c})
}

func (s *script) host(at int64, h tape.Host) {
	s.add(tape.Record{At: at, Core: event.None, Kind: tape.KindHost, Host: h})
}

func (s *script) load(at int64, core event.Peer, l tape.Load) {
	s.add(tape.Record{At: at, Core: core, Kind: tape.KindLoad, Load: &l})
}

// arrive lets a request reach the front and be admitted there.
func (s *script) arrive(at int64, id event.ReqID, prompt int) {
	s.event(at, event.Front, event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: make([]event.Token, prompt), MaxTokens: 100}})
	s.command(at, event.Front, event.Command{Kind: event.Admit, Req: id, N: 1})
}

func (s *script) emit(at int64, core event.Peer, id event.ReqID, pos int) {
	s.command(at, core, event.Command{Kind: event.Emit, Req: id, Pos: pos})
}

func (s *script) finish(at int64, id event.ReqID, n int) {
	s.command(at, event.Front, event.Command{Kind: event.Finish, Req: id, N: n, Reason: event.ReasonStop})
}

func (s *script) run(at int64, core event.Peer, rule event.Rule, rows ...event.Row) {
	s.batch[core]++
	s.command(at, core, event.Command{Kind: event.RunBatch, Batch: &event.Batch{ID: s.batch[core], Rule: rule, Rows: rows}})
}

func (s *script) done(at int64, core event.Peer, execNs int64, rows ...event.RowResult) {
	s.event(at, core, event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: s.batch[core], Rows: rows, ExecNs: execNs}})
}

func row(id event.ReqID, tokens int) event.Row {
	return event.Row{Req: id, Tokens: make([]event.Token, tokens), Sample: true}
}

func drop(id event.ReqID, dest event.Peer) event.RowResult {
	return event.RowResult{Req: id, Dest: dest, Action: event.Drop}
}

func keep(id event.ReqID, dest event.Peer) event.RowResult {
	return event.RowResult{Req: id, Dest: dest}
}

// near fails unless got is want within eps.
func near(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > eps {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// newNormal gives standard normal numbers from a seed.
func newNormal(seed uint64) func() float64 {
	return rand.New(rand.NewPCG(seed, 1)).NormFloat64
}
