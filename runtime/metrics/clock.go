package metrics

import (
	"math"
	"slices"
	"sort"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// virtual says of a setting of the clock that time is virtual from then on: what
// its speed is changes nothing that is measured.
func virtual(clock string) bool { return clock == "sim" || strings.HasPrefix(clock, "sim ") }

// maxPauses bounds what running remembers for turning running time back.
const maxPauses = 1024

// maxTime keeps the times of a damaged session within what sums can hold.
const maxTime = math.MaxInt64 / 4

func sessionTime(t int64) int64 { return min(max(t, 0), maxTime) }

// running turns session time into running time, which stands still in a pause.
type running struct {
	paused  bool
	from    int64 // session time of the last resume
	to      int64 // session time of the pause that is on
	lost    int64 // ns of pauses so far
	resumes []resume
	forgot  int64 // ns of the pauses before those in resumes
}

// resume says how much lies between running and session time from a point on.
type resume struct{ run, lost int64 }

func newRunning() running { return running{from: math.MinInt64} }

// at gives the running time of session time t. A record that comes late, from
// the other side of a pause, falls on the pause.
func (c *running) at(t int64) int64 {
	t = max(t, c.from)
	if c.paused {
		t = min(t, c.to)
	}
	return t - c.lost
}

// of gives the running and the session time of a record. A pause begins when the
// steps that ran have ended.
func (c *running) of(r *tape.Record) (t, at int64) {
	at = sessionTime(r.At)
	if c.paused && r.Kind == tape.KindEvent && r.Event != nil && r.Event.Kind == event.StepDone {
		c.to = max(c.to, at)
	}
	return c.at(at), at
}

// set begins or ends a pause at session time t and says how long an ended one
// was.
func (c *running) set(paused bool, t int64) (lasted int64) {
	if paused == c.paused {
		return 0
	}
	t = max(t, c.from)
	if paused {
		c.paused, c.to = true, t
		return 0
	}
	t = max(t, c.to)
	lasted = t - c.to
	c.resumes = append(c.resumes, resume{c.to - c.lost, c.lost + lasted})
	if len(c.resumes) > maxPauses {
		c.forgot = c.resumes[0].lost
		c.resumes = slices.Delete(c.resumes, 0, 1)
	}
	c.paused, c.from, c.lost = false, t, c.lost+lasted
	return lasted
}

// session gives the session time of a running time; at a pause, its beginning.
func (c *running) session(run int64) int64 {
	i := sort.Search(len(c.resumes), func(i int) bool { return c.resumes[i].run >= run })
	if i > 0 {
		return run + c.resumes[i-1].lost
	}
	return run + c.forgot
}
