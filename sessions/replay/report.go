package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tokenrouter/runtime/event"
)

// Report is what came of a replay.
type Report struct {
	Cores    int
	Records  uint64
	Events   uint64
	Commands uint64
	Messages uint64      // requests that changed subserver, and what else PeerIn brings
	Missing  uint64      // records within that the session lacks
	Most     int         // messages and news in flight at once
	Cut      string      // what is missing at the session's end, empty if it is whole
	Corrupt  bool        // bytes of it are wrong, which no kill does
	Diff     *Difference // the first one, nil if all is equal
	Behind   *Difference // what the cores ordered last and no record says; a cut explains it

	inFlight int
}

// end settles whether what the cores ordered behind the last record counts: where
// the session is whole, its tape should have it.
func (r *Report) end(whole bool) {
	if whole && r.Diff == nil {
		r.Diff = r.Behind
	}
}

// Equal says that the cores ordered what the tape has, and that nothing of it was
// changed.
func (r *Report) Equal() bool { return r.Diff == nil && !r.Corrupt }

// String is one line.
func (r *Report) String() string {
	var b strings.Builder
	if r.Diff != nil {
		b.WriteString("differs at " + r.Diff.String())
	} else {
		if r.Corrupt {
			b.WriteString("corrupt, before that ")
		}
		fmt.Fprintf(&b, "equal: %d commands of %d subservers to %d events, %d messages, %d records", r.Commands, r.Cores, r.Events, r.Messages, r.Records)
	}
	if r.Missing > 0 {
		fmt.Fprintf(&b, "; %d records before are missing", r.Missing)
	}
	if r.Cut != "" {
		b.WriteString("; up to where it ends: " + r.Cut)
	}
	return b.String()
}

// Difference is a place where tape and core part.
type Difference struct {
	Record uint64 // number of the record
	At     int64  // its time, ns since the session began
	Peer   event.Peer
	Role   string
	Tape   string // what the tape has there
	Core   string // what the core orders, fed the same events
}

// String is one line.
func (d *Difference) String() string {
	return fmt.Sprintf("record %d (%s, %.6f s): the tape has %s, the core orders %s",
		d.Record, d.Role, time.Duration(d.At).Seconds(), d.Tape, d.Core)
}

// sayCommand is a command in words that tell it from other.
func sayCommand(c, other *event.Command) string {
	if s := c.String(); s != other.String() {
		return s
	}
	return inFull(c)
}

// sayEvent is an event in words that tell it from other.
func sayEvent(ev, other *event.Event) string {
	if s := ev.String(); s != other.String() {
		return s
	}
	return inFull(ev)
}

// inFull has every field; the one line for logs leaves most of them out.
func inFull(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}

// Of long texts, as of a batch with a prompt, the beginning is shown and what is
// around the first difference.
const (
	longText   = 240
	headOfText = 40
	before     = 60
	behind     = 120
)

// window shortens two texts alike.
func window(a, b string) (string, string) {
	if len(a) <= longText && len(b) <= longText {
		return a, b
	}
	k := 0
	for k < min(len(a), len(b)) && a[k] == b[k] {
		k++
	}
	return cutTo(a, k), cutTo(b, k)
}

func cutTo(s string, k int) string {
	out := s
	if from := k - before; from > headOfText {
		out = s[:headOfText] + " ... " + s[from:]
		k += len(out) - len(s)
	}
	if k+behind < len(out) {
		out = out[:k+behind] + " ..."
	}
	return strings.ToValidUTF8(out, "")
}
