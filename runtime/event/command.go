package event

// CmdKind says which order a Command gives.
type CmdKind uint8

// The orders of a core. Fields of Command that a kind uses are named behind it.
const (
	_          CmdKind = iota
	Admit              // Req, N: the request is admitted, N active now
	Reject             // Req, Text: the request can never run here
	RunBatch           // Batch: execute one forward step
	SendPeer           // To, Peer: deliver a message
	TellActive         // N: deliver Active{N} to every peer, in order with messages
	Emit               // Req, Pos, Token, Wrote: a committed token, from now on the client's
	Finish             // Req, Reason, N, Text: the request is over with N tokens (prompt included); only the front
	Free               // Req: drop the request's KV
	WakeAt             // At, Gen: tell Wake{Gen} at that time
	Note               // Note, Req, Text: something worth a line on the tape
	TellBusy           // N, At: deliver Busy{N, Until: At} to every peer, in order with messages
	Preempt            // Req, N: N positions of KV are taken from the request; what it does not find again it will feed again
)

// Reason says how a request ended.
type Reason uint8

// Ends: EOS or stop string, max_tokens, the client, a failure.
const (
	ReasonStop Reason = iota
	ReasonLength
	ReasonAborted
	ReasonError
)

var reasonNames = [...]string{"stop", "length", "aborted", "error"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "?"
}

// NoteKind classifies a Note.
type NoteKind uint8

// Notes never change what happens; they make it visible.
const (
	NoteStale   NoteKind = iota // a message with another hop was dropped
	NoteDead                    // an event for a finished request was dropped
	NoteUnknown                 // an event for a request never seen was dropped
	NoteFault                   // a router fault and the default taken
	NoteCut                     // N tokens after a stop were cut
	NoteClamp                   // B was lowered to stay feasible
	NoteFull                    // KV is full: a ready request waits for blocks
	NoteBudget                  // the hand-off's budget forced the request home
	NoteResend                  // a gap was answered by resend
	NoteTimeout                 // a peer kept a request for too long
	noteKinds
)

var noteNames = [noteKinds]string{"stale", "dead", "unknown", "fault", "cut", "clamp", "kv-full", "budget", "resend", "timeout"}

func (k NoteKind) String() string {
	if int(k) < len(noteNames) {
		return noteNames[k]
	}
	return "?"
}

// Command is one order of a core.
type Command struct {
	Kind   CmdKind
	Req    ReqID
	Batch  *Batch
	To     Peer
	Peer   *PeerReq
	N      int
	Pos    int
	Token  Token
	Reason Reason
	At     int64
	Gen    uint64
	Note   NoteKind
	Text   string
	Wrote  Peer // Emit: 1 + the subserver that wrote the token, 0 for the one that emits it
}

// Rule says why a batch started.
type Rule uint8

// A batch starts because the policy is eager, because ready reached B, because
// the guard W fired, or because waiting on would cost more than it saves.
const (
	RuleEager Rule = iota
	RuleB
	RuleGuard
	RuleAhead
	ruleKinds
)

var ruleNames = [ruleKinds]string{"eager", "B", "guard", "look-ahead"}

func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return "?"
}

// Batch is one forward step over mixed prefill and decode rows.
type Batch struct {
	ID    uint64 // rising per core from 1
	Rule  Rule
	Ready int // ready requests when it started
	B     int // threshold in force
	Rows  []Row
}

// Block is a KV block of one subserver's pool, from 0.
type Block = int32

// Row feeds Tokens at positions Start, Start+1, ... of one request; KV at and
// behind Start is overwritten. With Sample, a candidate for position
// Start+len(Tokens) is drawn from the last token's logits; a row without is a
// part of a prefill that goes on in a later batch.
type Row struct {
	Req        ReqID
	Start      int
	Tokens     []Token
	Sample     bool
	Prefill    bool    // this subserver held no KV of the request before
	Cached     int     // positions before Start that come from the prefix cache, on a Prefill row
	Blocks     []Block // where the KV is: of positions 0.. on a Prefill row, else from the block of Start on
	Recomputed int     // positions among Tokens whose KV was here once and was lost
	WaitedNs   int64
	PromptLen  int
	Sampling   Sampling
}
