package event

// Status says what a PeerReq means for the request it names.
type Status uint8

// New and Alive hand the pen over; Finished and Abort end the request; Error
// reports a failure to the front; Resend asks for the suffix from Loc on.
const (
	New Status = iota
	Alive
	Finished
	Abort
	Error
	Resend
)

var statusNames = [...]string{"new", "alive", "finished", "abort", "error", "resend"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "?"
}

// Limits travel with a request to every subserver it visits.
type Limits struct {
	PromptLen int
	MaxLen    int // prompt and new tokens together
	EOS       []Token
}

// PeerReq carries a request between subservers. Loc is the length the sender
// believes the receiver holds and Suffix the token ids from there on; the
// receiver keeps the longest common prefix of its own tail and the suffix, so a
// Loc that is too low costs bytes and nothing else. Seen[p] is the length that
// subserver p is known to hold. Hop counts hand-offs of this request: a message
// with another hop than the next one is stale and dropped.
type PeerReq struct {
	ID       ReqID
	From     Peer
	Hop      uint32
	Loc      int
	Suffix   []Token
	Seen     []int
	Status   Status
	Budget   int // ceiling on tokens the receiver may write, 0 = none
	Limits   Limits
	Sampling Sampling
	State    []byte
	Fields   []byte
	Router   string
	Err      string

	// Of a router that holds tokens back: how many, the length that has been
	// emitted, who wrote the tokens behind it, and that the text has been cut
	// since the request began: what the receiver holds beyond Loc and Suffix is in
	// it no more. All zero where everything was emitted and nothing ever cut.
	Hold    int
	Emitted int
	Writers []Peer
	Cut     bool
}

// VerdictKind is what the router's receive decided about a message's suffix.
type VerdictKind uint8

// Commit takes the suffix over; Append commits the verdict's ids, which begin
// with the suffix, as that was committed already, and may go on behind it.
const (
	Commit VerdictKind = iota
	Append
)

// Verdict is the answer of receive. A router fault leaves Commit and a text. Stop
// is as in a RowResult, for ids of Append that end the answer.
type Verdict struct {
	Kind  VerdictKind
	Ids   []Token
	Fault string
	Stop  int
}
