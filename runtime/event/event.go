package event

// Kind says which fact an Event states.
type Kind uint8

// The facts a core can be told. Fields of Event that a kind uses are named
// behind it; all others are zero.
const (
	_         Kind = iota
	Arrive         // Req, Arrival: a client's request reaches the front
	Dispatch       // everything due at At has been delivered: start a batch if the policy says so
	StepDone       // Step: the running batch is over, rows sampled and routed
	PeerIn         // Peer, Verdict: a message from another subserver
	Active         // N: how many requests are admitted and unfinished (peers hear it from the front)
	Wake           // Gen: the timer that WakeAt asked for
	Stop           // Req, Pos: a stop string began in the token at Pos; only at the front
	Cancel         // Req: the client is gone; only at the front
	SetPolicy      // Policy: thresholds and guard from now on
)

// Event is one fact with the time at which the driver states it. A core sees
// nothing else of the world.
type Event struct {
	Kind    Kind
	At      int64 // ns since the session began; never falls within one core
	Req     ReqID
	Arrival *Arrival
	Step    *StepResult
	Peer    *PeerReq
	Verdict Verdict
	N       int
	Gen     uint64
	Pos     int
	Policy  *Policy
}

// Sampling is how a request's tokens are drawn. Temperature 0 is greedy; TopK 0
// and TopP 0 or 1 do not truncate. Seed is the session's: the draw at a position
// depends on (Seed, request, position, model) and on nothing else.
type Sampling struct {
	Temperature float32
	TopK        int
	TopP        float32
	Seed        uint64
}

// Arrival is a request as the client states it.
type Arrival struct {
	Prompt    []Token
	MaxTokens int     // at most this many new tokens
	EOS       []Token // any of them ends the request where committed
	Sampling  Sampling
}

// Action is what happens to the candidate token of a decode step.
type Action uint8

// Keep commits the candidate; Drop discards it and asks the destination to
// write the same position.
const (
	Keep Action = iota
	Drop
)

func (a Action) String() string {
	if a == Drop {
		return "DROP"
	}
	return "KEEP"
}

// TokenProb is one of the most likely tokens of a row.
type TokenProb struct {
	Token   Token
	Logprob float32 // nats, raw logits at temperature 1
}

// Output is what one row's forward pass yields: the sampled candidate and the
// routing signals. Signals describe the raw logits at temperature 1 over all V
// rows of the vocabulary, before any truncation.
type Output struct {
	Token       Token
	Entropy     float32 // nats
	EntropyNorm float32 // Entropy / ln V
	Top1, Top2  float32 // probabilities of the two most likely tokens
	LogSumExp   float32
	TopK        []TokenProb // five most likely, falling
}

// Margin is the gap between the two largest probabilities.
func (o *Output) Margin() float32 { return o.Top1 - o.Top2 }

// RowResult is one finished row of a batch: what the model said and what the
// router decided about it.
type RowResult struct {
	Req    ReqID
	Output Output
	Dest   Peer // where the request goes; the own index means stay
	Action Action
	Budget int    // ceiling on tokens at the destination, 0 = none
	State  []byte // the router's r.state after this decision, opaque here
	Fields []byte // what send() returned, opaque here
	Fault  string // router fault; Dest and Action are then the documented default
	Router string // hash of the router that decided
}

// StepResult ends the running batch. Rows answer the batch's sampling rows in
// their order. Err is set when the runner failed: then Rows is empty and every
// request of the batch fails.
type StepResult struct {
	Batch   uint64
	Rows    []RowResult
	ExecNs  int64 // forward pass and sampling (or the cost profile's step time)
	RouteNs int64 // route and send in Lua
	Err     string
}

// PolicyKind names a threshold policy.
type PolicyKind uint8

// Eager starts a batch whenever something is ready; Fixed waits for B[m] ready
// requests at subserver m.
const (
	Eager PolicyKind = iota
	Fixed
)

func (k PolicyKind) String() string {
	if k == Fixed {
		return "fixed"
	}
	return "eager"
}

// Policy is the same for all cores; core m reads its own entry of B. The core
// clamps B to what is feasible for the active count (INV-7). W is the guard in
// ns: a ready request waits no longer than that for others. While W is 0, not
// yet known, every policy acts eagerly.
type Policy struct {
	Kind PolicyKind
	B    []int
	W    int64
}
