package board

import (
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/theme"
)

// Bounds of what a Model keeps.
const (
	keptFinished = 64     // finished requests
	keptTokens   = 65_536 // tokens of finished requests, all together
	keptEvents   = 256
)

// Model is what the board knows. It belongs to one goroutine at a time.
type Model struct {
	info   Info
	status Status
	theme  *theme.Theme
	fold   *metrics.Board
	n      int // subservers

	cores []coreState
	reqs  map[event.ReqID]*request
	slots []*request // rows of the request pane; a new request takes the place of a finished one
	done  []*request // finished requests, oldest first
	sum   int        // tokens kept of finished requests
	ended int        // requests that have finished

	events  []eventLine // oldest first
	evSeq   int         // events ever seen
	evLines int         // lines ever added for them
	machine *tape.Telemetry
	latest  int64      // time of the newest record
	seq     uint64     // of the newest record
	begin   int64      // time of the first record that was seen
	faulty  *eventLine // why the router file on disk is not the one that is live
	policy  string     // newest words about the policy
	kind    event.PolicyKind
	fixed   []int            // thresholds that were last set by hand, nil before
	starred string           // newest words about B*
	warned  map[string]int64 // warnings of plans, and when they were last given
	knobs   Knobs            // as they stand
	hold    int              // tokens that the router of the newest decision holds back

	resubmits bool // hand-offs give KV back, as to ordinary servers

	UI UI
	// Explain says which line of the router decided a row, or why that cannot be
	// told; may be nil. It answers at once.
	Explain func(d Decided) string

	figs  figures
	still requestsStill
	line  *frame.Line // scratch of drawing
}

// coreState is what the board itself follows of a subserver; rates come from
// metrics.
type coreState struct {
	load    tape.Load
	running *batch
	rows    []event.Row // of the running batch
	sampled []int       // indices of its sampling rows
	lost    loss        // the newest one
	seen    coreLook
}

// coreLook is a subserver as it is shown until the next look.
type coreLook struct {
	load tape.Load
	rows int        // of the running batch, 0 when idle
	rule event.Rule // why it was started
}

func (c *coreState) see() {
	c.seen = coreLook{load: c.load, rows: len(c.rows)}
	if c.running != nil {
		c.seen.rule = c.running.rule
	}
}

// New returns the model for a session.
func New(info Info, th *theme.Theme) *Model {
	n := max(len(info.Models), 1)
	m := &Model{
		info:   info,
		theme:  th,
		n:      n,
		fold:   metrics.NewBoard(n),
		cores:  make([]coreState, n),
		reqs:   map[event.ReqID]*request{},
		line:   frame.NewLine(0, th.G.ASCII),
		begin:  -1,
		warned: map[string]int64{},
	}
	m.UI = newUI()
	return m
}

// SetTheme changes how everything is drawn.
func (m *Model) SetTheme(th *theme.Theme) {
	m.theme = th
	m.line = frame.NewLine(0, th.G.ASCII)
}

// SetStatus tells the model how the runtime runs now.
func (m *Model) SetStatus(s Status) {
	m.status = s
	m.UI.clamp(m)
}

// Status is the last one that was set.
func (m *Model) Status() Status { return m.status }

// Seq is the number of the newest record that was folded.
func (m *Model) Seq() uint64 { return m.seq }

// role names subserver p.
func (m *Model) role(p event.Peer) string {
	if p >= 0 && int(p) < len(m.info.Models) && m.info.Models[p].Role != "" {
		return m.info.Models[p].Role
	}
	return event.Role(p, m.n)
}

// text gives the text of a token for a person.
func (m *Model) text(id event.Token) []byte {
	if m.info.Text == nil {
		return nil
	}
	return m.info.Text(id)
}

// shown is the text of a single token, cleaned, in one line.
func (m *Model) shown(id event.Token) string {
	if m.isEnd(id) {
		return "<end>"
	}
	return frame.Clean(flat(string(m.text(id))), m.theme.G.ASCII)
}

func (m *Model) isEnd(id event.Token) bool {
	for _, e := range m.info.EOS {
		if e == id {
			return true
		}
	}
	return false
}
