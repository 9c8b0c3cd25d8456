package app

import (
	"context"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/board"
)

// The values that a Runtime answers with; the board shows them.
type (
	Info      = board.Info
	ModelInfo = board.ModelInfo
	Status    = board.Status
	KnobState = board.KnobState
	Decided   = board.Decided
)

// Runtime is all that the screens know of what runs behind them. Every call
// returns at once, from any goroutine; only Edit, Export and Close may touch
// files, and the screens call those outside of Update. What a call changes is
// seen in Status and as a record on the tape.
type Runtime interface {
	Tape() *tape.Tape
	Now() int64 // ns since the session began, the time base of records
	Info() Info
	Status() Status

	SetPaused(bool)
	SetSpeed(float64) error
	SetClock(string) error
	SetConcurrency(int) error
	SetRouter(name string) error
	SetKnob(name string, v float64) error
	SetB(p event.Peer, b int) error
	// SetPolicy sets the threshold policy by its form, as event.Policy.Form
	// writes it: eager, fixed:1,3, table or look-ahead.
	SetPolicy(form string) error

	// Edit returns the path of the live router's file for an editor. An
	// embedded router is copied into the routers folder first.
	Edit() (path string, err error)
	// Explain says which line of the router decided a row, e.g.
	// `r2r.lua:7  return to("large"), DROP`, or why that cannot be told.
	Explain(d Decided) string
	// Export writes the session so far as jsonl or perfetto and returns the
	// path.
	Export(format string) (path string, err error)
	// Close ends running requests as aborted and closes the session.
	Close(ctx context.Context) error
}
