package metrics

import (
	"time"

	"tokenrouter/runtime/event"
)

// flight is the time that a message with a request is under way, from the order
// of its sender to the event at its receiver: an EWMA in ns.
type flight struct {
	mean float64
	n    int
}

// flightShare is the weight of the newest message.
const flightShare = 1.0 / 64

func (f *flight) add(ns int64) {
	f.n++
	f.mean += (float64(ns) - f.mean) * max(flightShare, 1/float64(f.n))
}

// sent notes when a message took a request along.
func (e *Estimator) sent(m *event.PeerReq, at int64) {
	if v := e.visits[m.ID]; v != nil && (m.Status == event.New || m.Status == event.Alive) {
		v.hop, v.sentAt = m.Hop, at
	}
}

// arrived measures the message that has come.
func (e *Estimator) arrived(m *event.PeerReq, at int64) {
	if v := e.visits[m.ID]; v != nil && v.hop == m.Hop && v.hop > 0 && (m.Status == event.New || m.Status == event.Alive) {
		e.flight.add(max(0, at-v.sentAt))
		v.hop = 0
	}
}

// latency is the mean time that a message is under way, 0 while none was seen.
func (f *flight) latency() time.Duration { return time.Duration(f.mean) }
