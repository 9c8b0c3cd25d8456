package metrics

import "tokenrouter/runtime/event"

// tail is what a request has beyond the tokens that were emitted, where a router
// holds some back: who wrote them. What is taken back was never anybody's token.
type tail struct {
	writers []event.Peer
	holds   bool   // the router holds tokens back
	taking  bool   // and has just taken some back
	fault   string // of its decision, which stands all the same
}

func (l *tail) row(row *event.RowResult, p event.Peer) {
	l.holds = row.Hold > 0 || len(l.writers) > 0
	l.taking, l.fault = row.Action == event.Truncate, row.Fault
	if l.holds && row.Action == event.Keep {
		l.writers = append(l.writers, p)
	}
}

// write notes a candidate that was committed against the router's decision.
func (l *tail) write(p event.Peer) {
	l.taking = false
	l.writers = append(l.writers, p)
}

// emit takes the oldest out; what receive appended was never counted in.
func (l *tail) emit() {
	if n := len(l.writers); n > 0 {
		copy(l.writers, l.writers[1:])
		l.writers = l.writers[:n-1]
	}
}

// leave takes over what a message says is held back and returns the writers of
// what is missing there, valid until the next call.
func (l *tail) leave(m *event.PeerReq) (taken []event.Peer) {
	if m.Status == event.Resend {
		return nil
	}
	n := len(m.Writers)
	if l.taking && n < len(l.writers) {
		taken = append(taken, l.writers[n:]...)
	}
	l.taking = false
	l.writers = append(l.writers[:0], m.Writers...)
	return taken
}
