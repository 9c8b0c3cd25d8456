package board

import (
	"unicode/utf8"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
)

// state is where a request stands.
type state uint8

const (
	waiting  state = iota // arrived, not yet admitted
	ready                 // at home or at a peer, not in a batch
	running               // in a batch
	inFlight              // in a message between two subservers
	finished
)

// batch is what the tokens of one batch share.
type batch struct {
	id     uint64
	core   event.Peer
	rule   event.Rule
	rows   int
	ready  int
	b      int
	execNs int64
}

// decision is one sampled row: what a model said and what the router decided.
type decision struct {
	core    event.Peer
	row     *event.RowResult
	batch   *batch
	at      int64 // when it was sampled
	waited  int64
	shown   string // text of the candidate, cleaned
	pos     int    // of the candidate
	emitted int    // length that the client had
	prefill bool   // the first one there
	state   []byte // r.state and the fields of the hand-off that the router saw
	fields  []byte
	knobs   Knobs

	overruled bool // the core committed the candidate all the same
	taken     bool // a later decision took the token back
}

// token is one committed token of a request.
type token struct {
	id     event.Token
	writer event.Peer
	at     int64      // when it was sampled; when it was emitted where that is not known
	by     decision   // by.row is nil where the row is not known
	drops  []decision // candidates that were dropped, and tokens that were taken back, for this position
	text   string     // cleaned, "" while bytes of a character are missing
	w      int
	brk    bool // a line may be broken before it
	nl     bool // breaks the line
	end    bool // an end mark
}

// request is one request as far as the screen needs it. Only the last maxTokens
// tokens are kept.
type request struct {
	id       event.ReqID
	task     string
	question string
	answer   string
	state    state
	at       event.Peer // where it is or goes
	prefill  bool
	since    int64 // of the state
	away     int64 // when it left home, while it is away
	prompt   int   // tokens
	most     int   // prompt and new tokens that it may have, 0 if not known

	tokens []token
	gone   int // tokens before tokens[0] that are not kept any more
	// inspected requests keep their tokens: the text must not move under the cursor.
	inspected bool
	byRole    []int
	switches  int

	hop    uint32 // of the newest message that was taken
	router []byte // r.state as it travels with the request
	fields []byte // of the newest message

	seenBy uint64 // subservers that have drawn a candidate for it, a bit each

	last  decision   // newest row, until it is committed or dropped
	kept  []decision // of tokens that are held back, by position
	drops []decision // for the next positions
	held  []byte     // of an unfinished character

	reason  string
	right   int8 // 1 right, -1 wrong, 0 not checked
	given   string
	flow    flow
	updated uint64 // grows with every change of tokens
	seen    reqLook
}

// reqLook is where a request stands as it is shown until the next look.
type reqLook struct {
	looked  bool
	state   state
	at      event.Peer
	prefill bool
	away    int64
	rate    float64 // tokens per second
	share   float64 // of the last subserver
}

func (r *request) see(peers int) {
	r.seen = reqLook{true, r.state, r.at, r.prefill, r.away, r.rate(), r.share(peer(peers - 1))}
}

// look is the newest look, or the first one of a request that has none; that it
// was admitted or has ended is seen at once, as its text is.
func (r *request) look(peers int) *reqLook {
	if !r.seen.looked || r.state == finished && r.seen.state != finished || r.state != waiting && r.seen.state == waiting {
		r.see(peers)
	}
	return &r.seen
}

const maxTokens = 1024

func (r *request) len() int { return r.gone + len(r.tokens) }

// push appends a committed token and returns how many tokens were let go.
func (r *request) push(t token, raw []byte, ascii bool) (let int) {
	text, held := complete(r.held, raw)
	r.held = held
	t.nl, t.brk = hasNewline(text), startsWord(text)
	t.text = frame.Clean(flat(text), ascii)
	t.w = frame.Width(t.text)
	most := maxTokens
	if r.inspected {
		most = keptTokens
	}
	if len(r.tokens) >= most {
		let = len(r.tokens) - most*3/4
		r.tokens = append(r.tokens[:0], r.tokens[let:]...)
		r.gone += let
	}
	if n := len(r.tokens); n > 0 && r.tokens[n-1].writer != t.writer {
		r.switches++
	}
	r.tokens = append(r.tokens, t)
	r.updated++
	return let
}

// cut forgets tokens behind the first n new ones.
func (r *request) cut(n int) {
	if n < r.gone {
		n = r.gone
	}
	for len(r.tokens) > n-r.gone {
		t := r.tokens[len(r.tokens)-1]
		if int(t.writer) < len(r.byRole) {
			r.byRole[t.writer]--
		}
		r.tokens = r.tokens[:len(r.tokens)-1]
		r.updated++
		r.flow = flow{}
	}
}

// rate is tokens per second over the last tokens, 0 when it cannot be told.
func (r *request) rate() float64 {
	n := len(r.tokens)
	if n < 8 {
		return 0
	}
	k := min(n-1, 32)
	d := r.tokens[n-1].at - r.tokens[n-1-k].at
	if d <= 0 {
		return 0
	}
	return float64(k) * 1e9 / float64(d)
}

// share is the part of tokens that subserver p wrote.
func (r *request) share(p event.Peer) float64 {
	sum := 0
	for _, n := range r.byRole {
		sum += n
	}
	if sum == 0 || int(p) >= len(r.byRole) {
		return 0
	}
	return float64(r.byRole[p]) / float64(sum)
}

// complete joins held and raw and splits off the bytes of a last character that
// is not complete.
func complete(held, raw []byte) (text string, rest []byte) {
	data := raw
	if len(held) > 0 {
		data = append(append(make([]byte, 0, len(held)+len(raw)), held...), raw...)
	}
	for k := 1; k <= min(3, len(data)); k++ {
		i := len(data) - k
		if !utf8.RuneStart(data[i]) {
			continue
		}
		if !utf8.FullRune(data[i:]) {
			rest = append([]byte(nil), data[i:]...)
			data = data[:i]
		}
		break
	}
	return string(data), rest
}

func hasNewline(s string) bool {
	for i := range len(s) {
		if s[i] == '\n' {
			return true
		}
	}
	return false
}

func startsWord(s string) bool {
	return s != "" && (s[0] == ' ' || s[0] == '\n' || s[0] == '\t')
}

// flat makes one line of a text: runs of white space with a line break in them
// become one blank, as in a paragraph.
func flat(s string) string {
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' || s[i] == '\t' {
			goto rewrite
		}
	}
	return s
rewrite:
	b := make([]byte, 0, len(s))
	broke := false
	for i := range len(s) {
		switch c := s[i]; c {
		case '\n', '\r', '\t':
			if !broke {
				b = append(b, ' ')
			}
			broke = true
		case ' ':
			if !broke {
				b = append(b, ' ')
			}
		default:
			b = append(b, c)
			broke = false
		}
	}
	return string(b)
}
