package board

import (
	"time"

	"tokenrouter/runtime/event"
)

// Info is what stays the same for a whole session.
type Info struct {
	Program string      // name and version
	Models  []ModelInfo // in the order of the subservers, small first
	Session string      // folder of the session, "" when nothing is recorded
	Profile string      // cost profile that the paced clock uses
	Seed    uint64
	// Step is the time that the cost profile gives a step of rows decode rows,
	// nil when there is none.
	Step    func(p event.Peer, rows int) time.Duration
	GPUNote string                   // why no GPU is shown, "" when one is
	Text    func(event.Token) []byte // bytes of a token; may be part of a UTF-8 sequence
	EOS     []event.Token            // end marks, shown as a mark and not as text

	Tokens   string // who writes them: models ("" too), drawn, or a session
	Arrivals string // how requests come in the open loop, "" for the closed one
}

// Answers says that there may be right ones: what is drawn answers no question.
func (i *Info) Answers() bool { return i.Tokens != "drawn" }

// ModelInfo names the model behind one subserver.
type ModelInfo struct {
	Role   string
	Name   string
	Params int64
	Hash   string
	Seats  int // rows in a batch at most, 0 = not known
}

// Status is how the runtime runs at this moment.
type Status struct {
	Router      string // base name of the file, e.g. r2r.lua
	Hash        string // of the router that is live, shortened
	Clock       string // live, paced, emulated, sim
	Profile     string
	Speed       float64 // factor on the clock; 0, in virtual time only, is as fast as it can
	Reached     float64 // by how much virtual time has gone faster than the wall's of late
	Wall        int64   // ns of wall time since the session began, where the clock is virtual
	Paused      bool
	Over        bool // no request is left, and none will come
	Concurrency int
	Policy      string // eager, fixed, table, look-ahead, lock-step
	B           []int  // threshold per subserver, as set
	Recorded    uint64 // bytes
	Recording   bool
	RecordNote  string // why nothing is recorded, or what was left out
	Knobs       []KnobState
	Routers     []string // names for SetRouter, in the order that keys walk through them
	Editable    string   // path of the router file that Edit opens, "" before the first edit of an embedded one
}

// Virtual says that session time is not the wall's.
func (s *Status) Virtual() bool { return s.Clock == "sim" }

// ByProfile says that steps take what a cost profile has.
func (s *Status) ByProfile() bool { return s.Clock != "live" }

// Decided is a row that a router has decided: what it was asked about, and the
// answer.
type Decided struct {
	Core      event.Peer
	Pos       int // position of the candidate
	Emitted   int // length that had been emitted
	PromptLen int
	MaxLen    int // prompt and new tokens that the request may have, 0 if not known
	Prefill   bool
	State     []byte // r.state before the decision, nil before the first
	Fields    []byte // what send gave for the hand-off that brought the request here
	Knobs     Knobs  // as they stood
	Row       event.RowResult
}

// Knobs are values by router file and knob. They are never changed, only
// replaced.
type Knobs map[string]map[string]float64

// KnobState is one knob of the live router.
type KnobState struct {
	Name, Help               string
	Value, Default, Min, Max float64
}
