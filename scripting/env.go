package scripting

import (
	"time"

	"tokenrouter/runtime/event"
)

// Env is the subserver that a VM decides for.
type Env struct {
	Self  event.Peer
	Peers int    // subservers in all, 1 or more
	Seed  uint64 // the session's: r.random depends on it
	Vocab int    // APPEND accepts ids below it; 0 accepts any

	// Text decodes one token for r.text; nil shows ids as "<17>".
	Text func(event.Token) string
	// Load tells how full a subserver is and how old that number is; ok is
	// false while nothing is known. Nil knows nothing.
	Load func(p event.Peer) (ready, batch int, age time.Duration, ok bool)
	// Print receives the lines of print(); nil drops them.
	Print func(line string)
	// Knobs holds the values behind param(); nil leaves every knob at its default.
	Knobs *Knobs
	// Scorer evaluates trained heads for r.score; nil has none.
	Scorer Scorer
}

// Scorer evaluates the trained heads that a router names. It is asked by the
// goroutine of its VM, about the rows that VM routes.
type Scorer interface {
	// Check says why a head cannot be used in this session, nil if it can: it is
	// not known, is damaged, or belongs to other models. Of which subserver's rows
	// it is, Score says.
	Check(head string) error
	// Score is the head's score of a row, a probability between 0 and 1. Its
	// error becomes a fault of the router.
	Score(head string, row *Row) (float64, error)
}

// Row is one decode step of one request, as route and send see it. Nothing in
// it is changed, and it is not kept after the call.
type Row struct {
	Req       event.ReqID
	Output    *event.Output
	Pos       int // position of the candidate
	PromptLen int
	Step      int    // tokens written so far, by anybody
	Prefill   bool   // the first candidate of this subserver for the request
	State     []byte // r.state before the decision, in canonical form
	Fields    []byte // what the sender's send gave, in canonical form
	Emitted   int    // length that has been emitted: TRUNCATE goes down to it and no further
	Last      bool   // committing the candidate would end the answer: an end token, or the last one allowed
}

// Decision is what route decided. Fault is empty, or one line that names file,
// line and cause; Dest and Action are then the default: KEEP, and STAY at home,
// HOME elsewhere. Dest is always a subserver, the own one for STAY.
type Decision struct {
	Dest   event.Peer
	Action event.Action
	At     int    // Truncate: the position that Dest writes
	State  []byte // r.state after the decision; the row's own slice when unchanged
	Fault  string
	Score  float64 // what the last r.score gave
	Scored bool    // there was one
}
