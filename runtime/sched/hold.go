package sched

import (
	"fmt"
	"slices"

	"tokenrouter/runtime/event"
)

// What is here keeps tokens back (hold) and takes them back (TRUNCATE).
//
// A position is emitted once, by one core (INV-9): only the holder of the pen
// emits, from the length that has been emitted on, and the message with the pen
// carries that length and who wrote the tokens behind it. What has been emitted
// is final (INV-19): nothing is cut below it.
//
// A request ends: per subserver the positions that are truncated to rise, so
// there are at most MaxLen truncations by each; between two of them the text
// never gets shorter, and each step writes a position or drops it, which it may
// once per subserver.

// letOut emits what the hold lets go.
func (c *Core) letOut(r *request) { c.emitTo(r, len(r.tokens)-r.hold) }

// flush emits all that is held back: the answer ends.
func (c *Core) flush(r *request) { c.emitTo(r, len(r.tokens)) }

func (c *Core) emitTo(r *request, n int) {
	for r.emitted < n {
		cmd := event.Command{Kind: event.Emit, Req: r.id, Pos: r.emitted, Token: r.tokens[r.emitted]}
		if w := r.writers[0]; w != c.self {
			cmd.Wrote = 1 + w
		}
		r.writers = r.writers[1:]
		r.emitted++
		c.emit(cmd)
	}
}

// wrongCut says why tokens that were committed cannot be truncated, "" if they
// can (INV-20).
func (c *Core) wrongCut(r *request, d *event.RowResult) string {
	pos := len(r.tokens)
	switch {
	case d.At > pos:
		return fmt.Sprintf("TRUNCATE(%d) lies behind position %d, which is being written", d.At, pos)
	case d.Dest == c.self:
		return fmt.Sprintf("position %d is truncated for the subserver that truncates it", d.At)
	case d.Hold < 1:
		return fmt.Sprintf("TRUNCATE(%d) of a router that holds nothing back: hold(n) belongs at the top of the file", d.At)
	case d.At < r.emitted:
		return fmt.Sprintf("TRUNCATE(%d) lies below position %d: what lies before that has been emitted", d.At, r.emitted)
	case d.At <= r.truncated:
		return fmt.Sprintf("TRUNCATE(%d) after TRUNCATE(%d) here; the positions of a subserver must rise", d.At, r.truncated)
	case d.At == r.dropped:
		return fmt.Sprintf("position %d is dropped here a second time", d.At)
	}
	return ""
}

// truncate takes back the tokens from position at on.
func (c *Core) truncate(r *request, at int) {
	c.shorten(r, at)
	r.truncated, r.dropped = at, at
	r.shortened = true
}

// shorten forgets tokens that were held back. What others hold beyond that is in
// no text any more.
func (c *Core) shorten(r *request, at int) {
	c.cut(r, at)
	r.writers = slices.Clip(r.writers[:at-r.emitted])
	for p := range r.seen {
		r.seen[p] = min(r.seen[p], at)
	}
}

// holdsBack says whether a message is of a router that holds tokens back, or
// held some; any other brings a text that has been emitted in full.
func holdsBack(m *event.PeerReq) bool {
	return m.Hold != 0 || m.Emitted != 0 || len(m.Writers) > 0 || m.Cut
}

// wrongHold says why what a message tells of tokens held back cannot be, "" if
// it can.
func (c *Core) wrongHold(r *request, m *event.PeerReq, prompt int) string {
	known := prompt
	if r != nil {
		known = r.emitted
	}
	end := m.Loc + len(m.Suffix)
	switch {
	case m.Hold < 0 || m.Emitted < known || m.Emitted+len(m.Writers) != end:
		return fmt.Sprintf("a message of subserver %d says that %d of %d tokens were emitted and who wrote %d, where %d are known to be",
			m.From, m.Emitted, end, len(m.Writers), known)
	case len(m.Writers) > 0 && (slices.Min(m.Writers) < 0 || int(slices.Max(m.Writers)) >= c.n):
		return fmt.Sprintf("a message of subserver %d names writers that do not exist", m.From)
	}
	return ""
}

// takeHeld takes over what a message tells of tokens held back.
func (c *Core) takeHeld(r *request, m *event.PeerReq) {
	if m.Status == event.Error && !holdsBack(m) && r.emitted < len(r.tokens) {
		// Who refuses a request that it never saw knows nothing of it: others may
		// have emitted what was held back here, or taken it back.
		c.shorten(r, r.emitted)
	}
	r.hold, r.emitted, r.writers, r.shortened = 0, len(r.tokens), nil, false
	if holdsBack(m) {
		r.hold, r.emitted, r.writers, r.shortened = m.Hold, m.Emitted, slices.Clip(m.Writers), m.Cut
	}
}
