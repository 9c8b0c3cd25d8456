package tape

import "tokenrouter/runtime/event"

// Kind says which of a Record's fields is set.
type Kind uint8

// Event and Command are the input and output of a core, as they were. All other
// kinds state what happened around the cores; Core is event.None where no
// subserver is meant.
const (
	_           Kind = iota
	KindEvent        // Event, at Core
	KindCommand      // Command, by Core
	KindLoad         // Load, of Core, after a Step that changed it
	KindHost         // Host: one of the payloads below
)

// Record is one thing that happened.
type Record struct {
	Seq     uint64 // from 1, without gaps
	At      int64  // ns since the session began
	Core    event.Peer
	Kind    Kind
	Event   *event.Event
	Command *event.Command
	Load    *Load
	Host    Host
}

// Writer is the subserver that wrote the token of an emit. It is the one that
// emits it, unless the token was held back when the request went on.
func (r *Record) Writer() event.Peer {
	if r.Command != nil && r.Command.Wrote > 0 {
		return r.Command.Wrote - 1
	}
	return r.Core
}

// Load is how full a subserver is.
type Load struct {
	Ready   int // could be in the next batch here
	Running int // in the running batch
	Pending int // known here while another subserver holds the pen
	Waiting int // arrived and not yet admitted (front only)
	Active  int // admitted and unfinished, as this core knows it
	B       int // threshold in force after the clamp
	KVUsed  int // tokens
	KVTotal int // tokens
}

// Host is a payload that comes from around the cores. Its Name is stable: it is
// what sessions store.
type Host interface{ Name() string }

// Request is what the client asked, before it was tokens.
type Request struct {
	Req       event.ReqID `json:"req"`
	Task      string      `json:"task"`
	Question  string      `json:"question"`
	Answer    string      `json:"answer,omitempty"`
	HasAnswer bool        `json:"has_answer,omitempty"`
	Family    string      `json:"family,omitempty"` // that right answers are counted by
	Check     string      `json:"check,omitempty"`  // how an answer is judged, in JSON; empty: literally by Answer
}

// Result is how a request ended for its client.
type Result struct {
	Req     event.ReqID `json:"req"`
	Task    string      `json:"task"`
	Reason  string      `json:"reason"` // stop, length, aborted, error
	Tokens  int         `json:"tokens"` // new tokens that reached the client
	Answer  string      `json:"answer,omitempty"`
	Checked bool        `json:"checked,omitempty"`
	Correct bool        `json:"correct,omitempty"`
	Text    string      `json:"text,omitempty"` // of the failure
}

// RouterPhase says how far a router has come.
type RouterPhase string

// A router is loaded (compiled and dry-run), then every subserver swaps to it,
// then it is live: the last one has swapped and "after" begins. Rejected is a
// file that failed; the last good router stays.
const (
	RouterLoaded   RouterPhase = "loaded"
	RouterSwapped  RouterPhase = "swapped"
	RouterLive     RouterPhase = "live"
	RouterRejected RouterPhase = "rejected"
	RouterCleared  RouterPhase = "cleared" // a rejected file is good again or gone back to what is live
)

// Router records the life of a router file.
type Router struct {
	Phase RouterPhase `json:"phase"`
	File  string      `json:"file"` // base name, e.g. r2r.lua
	Path  string      `json:"path,omitempty"`
	Hash  string      `json:"hash,omitempty"`
	Text  string      `json:"text,omitempty"` // with loaded
	Err   string      `json:"err,omitempty"`  // with rejected: file:line and what is wrong
}

// Knob records a declared or moved knob.
type Knob struct {
	Router  string  `json:"router"` // base name of the file
	Knob    string  `json:"knob"`
	Help    string  `json:"help,omitempty"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Default float64 `json:"default"`
	Old     float64 `json:"old"`
	New     float64 `json:"new"`
	Source  string  `json:"source"` // file, head, slider, flag
	Hash    string  `json:"hash,omitempty"`
}

// Setting records how the runtime runs (Old is empty where the session states
// what it begins with) and each change: clock, speed, paused, concurrency, batch.
type Setting struct {
	Setting string `json:"setting"`
	Old     string `json:"old,omitempty"`
	New     string `json:"new"`
}

// GPU is one device as the driver reports it.
type GPU struct {
	Device string  `json:"device"`
	Util   float64 `json:"util"` // %
	Used   uint64  `json:"used"` // bytes
	Total  uint64  `json:"total"`
	Watts  float64 `json:"watts"`
}

// Telemetry is the machine at one moment; a figure that the platform does not
// give is -1.
type Telemetry struct {
	CPU     float64 `json:"cpu"`     // % of one core used by this process
	Machine float64 `json:"machine"` // % of all cores in use
	Cores   int     `json:"cores"`
	RSS     uint64  `json:"rss"` // bytes
	GPUs    []GPU   `json:"gpus,omitempty"`
	GPUNote string  `json:"gpu_note,omitempty"` // why there is none
}

// Level grades a Message.
type Level string

// Levels of a Message.
const (
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
	Print Level = "print" // a line that a router printed
)

// Message is a line for the person at the screen.
type Message struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// Plan is what the throughput model expects of the cluster as it is measured:
// once when it is first known, then whenever a figure on screen would change.
type Plan struct {
	Policy    string      `json:"policy"`             // in force, as event.Policy.Form writes it
	N         int         `json:"n"`                  // active requests that the figures are for
	B         []int       `json:"b"`                  // B* for N: the vector of the highest throughput
	Table     [][]int     `json:"table,omitempty"`    // row n-1: B* for n active
	P         [][]float64 `json:"p"`                  // routing matrix, rows sum to 1
	K         [][]float64 `json:"k"`                  // tokens committed by a step at i routed to j
	Step      []StepFit   `json:"step"`               // per subserver, stalls included
	Rows      []int       `json:"rows"`               // observations behind each row of P
	Predicted float64     `json:"predicted"`          // tokens/s with the policy in force
	Best      float64     `json:"best"`               // tokens/s at B
	Eager     float64     `json:"eager"`              // tokens/s when nothing waits
	Lockstep  float64     `json:"lockstep"`           // tokens/s when all wait for all
	Low       float64     `json:"low"`                // Best while the step time of one model is up to 2 % off: the least
	High      float64     `json:"high"`               // and the most
	Method    string      `json:"method"`             // of the search: chain, countsim, fluid
	Warnings  []string    `json:"warnings,omitempty"` // why not to trust it, or not to bother
	SolveNs   int64       `json:"solve_ns"`           // what planning took
	Interval  []Interval  `json:"interval,omitempty"` // send intervals, per subserver
}

// StepFit is an affine step time, ms = Base + PerRow x rows, and the batch sizes
// that it was measured at.
type StepFit struct {
	Base   float64 `json:"base_ms"`
	PerRow float64 `json:"per_row_ms"`
	Low    int     `json:"low"`
	High   int     `json:"high"`
}

// Interval describes the tokens between two sends of a subserver, beside what a
// geometric law of the same mean would give.
type Interval struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	CV2  float64 `json:"cv2"`  // variance / mean squared; geometric: 1 - 1/mean
	Geom float64 `json:"geom"` // that of the geometric law
	Far  bool    `json:"far"`  // the geometric law is refused at 1 %
}

// Closed is the last record of a session that ended in order.
type Closed struct {
	Reason string `json:"reason"`
}

// Name implements Host.
func (*Request) Name() string   { return "request" }
func (*Result) Name() string    { return "result" }
func (*Router) Name() string    { return "router" }
func (*Knob) Name() string      { return "knob" }
func (*Setting) Name() string   { return "setting" }
func (*Telemetry) Name() string { return "telemetry" }
func (*Message) Name() string   { return "message" }
func (*Plan) Name() string      { return "plan" }
func (*Closed) Name() string    { return "closed" }

// NewHost returns an empty payload of the given name, or nil if there is none.
func NewHost(name string) Host {
	switch name {
	case "request":
		return new(Request)
	case "result":
		return new(Result)
	case "router":
		return new(Router)
	case "knob":
		return new(Knob)
	case "setting":
		return new(Setting)
	case "telemetry":
		return new(Telemetry)
	case "message":
		return new(Message)
	case "plan":
		return new(Plan)
	case "closed":
		return new(Closed)
	}
	return nil
}
