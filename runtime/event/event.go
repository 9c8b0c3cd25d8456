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
	Cancel         // Req, Pos: the client is gone, and had all tokens before Pos; only at the front
	SetPolicy      // Policy: thresholds and guard from now on
	Busy           // From, N, Until: what another subserver runs (under look-ahead)
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
	From    Peer
	Until   int64 // ns; when the batch of N rows is expected to end, N = 0 when idle
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
// write the same position; Truncate discards it and every token from a position
// on that has not been emitted, and asks the destination to write that position.
const (
	Keep Action = iota
	Drop
	Truncate
	actions
)

var actionNames = [actions]string{"KEEP", "DROP", "TRUNCATE"}

func (a Action) String() string {
	if a < actions {
		return actionNames[a]
	}
	return "?"
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

	At     int     // Truncate: the position that the destination writes
	Hold   int     // tokens that stay behind unemitted, as the router declares with hold(n)
	Stop   int     // where the text ends if the candidate ends the answer: behind the token in which a stop string begins; 0: none is completed
	Score  float32 // what the router's last r.score gave
	Scored bool    // it asked for one
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
// requests at subserver m; Table does so with the vector for the active count;
// LookAhead weighs, at every moment, what waiting for the peers' batches costs
// and saves; LockStep lets the front wait until all active requests are back, as
// the public R2R loop does: the vector (active, 1, ..., 1).
const (
	Eager PolicyKind = iota
	Fixed
	Table
	LookAhead
	LockStep
	policyKinds
)

var policyNames = [policyKinds]string{"eager", "fixed", "table", "look-ahead", "lock-step"}

func (k PolicyKind) String() string {
	if k < policyKinds {
		return policyNames[k]
	}
	return "?"
}

// Policy is the same for all cores; core m reads its own entry. The core clamps
// thresholds to what is feasible for the active count (INV-7). W is the guard in
// ns: a ready request waits no longer than that for others. While W is 0, not
// yet known, every policy acts eagerly; so do a Table without rows and a
// LookAhead without a forecast. LockStep alone needs no W and obeys none, unless
// more KV is promised than there is: then it is as any other policy.
type Policy struct {
	Kind     PolicyKind
	B        []int     // Fixed
	Table    [][]int   // Table: row n-1 is the vector for n active; beyond the last row the last one holds
	Forecast *Forecast // LookAhead
	W        int64
}

// Forecast is what look-ahead expects of the cluster. Its figures are integers,
// so that a core decides the same on every machine.
type Forecast struct {
	Step    []StepTime // per subserver
	Share   [][]int    // Share[i][j]: of a million rows that end at i, how many go to j
	Latency int64      // ns a message is under way
}

// StepTime is the affine time of a decode step: Base + PerRow x rows, in ns.
type StepTime struct{ Base, PerRow int64 }

// Of is the time of a step with that many rows.
func (s StepTime) Of(rows int) int64 { return s.Base + s.PerRow*int64(rows) }
