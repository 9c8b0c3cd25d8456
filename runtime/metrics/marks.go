package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// MarkKind says what a mark on the chart stands for.
type MarkKind string

// All kinds but a pause let the windows start again.
const (
	MarkRouter      MarkKind = "router"
	MarkKnob        MarkKind = "knob"
	MarkPolicy      MarkKind = "policy"
	MarkClock       MarkKind = "clock"
	MarkSpeed       MarkKind = "speed"
	MarkConcurrency MarkKind = "concurrency"
	MarkPause       MarkKind = "pause"
)

// settingKinds are the settings that change what the figures mean. The setting
// batch shows as the SetPolicy event that follows it. Without an old value a
// setting is stated, not changed.
var settingKinds = map[string]MarkKind{
	"clock":       MarkClock,
	"speed":       MarkSpeed,
	"concurrency": MarkConcurrency,
}

// Mark is a moment worth a sign on the chart.
type Mark struct {
	At    int64 // session time, ns
	Kind  MarkKind
	Label string // "r2r.lua@3f2a", "threshold 0.5 -> 0.2", "B 1,1 -> 1,3"
}

// maxMarks is how many marks are kept, dragWithin how close two moves of one
// knob are to count as one.
const (
	maxMarks   = 256
	dragWithin = time.Second
)

// change is one thing that changed. A router has no old value on its label.
type change struct {
	kind     MarkKind
	what     string
	old, new string
}

func (c *change) label() string {
	if c.kind == MarkRouter {
		return c.new
	}
	return c.what + " " + c.old + " -> " + c.new
}

// joinChanges adds c to what has changed since the same state before.
func joinChanges(cs []change, c change) []change {
	for i := range cs {
		if cs[i].kind == c.kind && cs[i].what == c.what {
			cs[i].new = c.new
			return cs
		}
	}
	return append(cs, c)
}

// labels names what has changed. What is as it was before is left out, unless
// nothing else has changed.
func labels(cs []change) string {
	var out, back []string
	for i := range cs {
		if c := &cs[i]; c.kind != MarkRouter && c.old == c.new {
			back = append(back, c.label())
		} else {
			out = append(out, c.label())
		}
	}
	if len(out) == 0 {
		out = back
	}
	return strings.Join(out, "; ")
}

// number writes a knob's value in as few digits as it needs.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// isOn reads the value of a switch.
func isOn(s string) bool {
	switch s {
	case "true", "on", "yes", "1":
		return true
	}
	return false
}

// shortHash is how much of a router's hash a label shows.
const shortHash = 4

func routerName(file, hash string) string {
	if hash == "" {
		return file
	}
	return file + "@" + hash[:min(shortHash, len(hash))]
}

// router says whether a record changes which router decides: only a router that
// is live does.
func (c *changes) router(r *tape.Router) (change, bool) {
	if r.Phase != tape.RouterLive {
		return change{}, false
	}
	id := r.File + "@" + r.Hash
	if id == c.live {
		return change{}, false
	}
	ch := change{MarkRouter, "router", "", routerName(r.File, r.Hash)}
	c.live, c.file = id, r.File
	return ch, true
}

// eager is how the policy that waits for nobody shows on a label; cores begin with
// it.
const eager = "eager"

// policy says whether an event changes the thresholds. A new guard W alone does
// not: it follows from the step times.
func (c *changes) policy(p *event.Policy) (change, bool) {
	old, now := c.thresholds, p.Vector()
	c.thresholds = now
	return change{MarkPolicy, "B", old, now}, old != now
}

// mark adds a change to the marks; moves of one thing in a row are one mark.
func (c *changes) mark(ch change, at int64) {
	if n := len(c.marks); n > 0 && len(c.marked) == 1 {
		last := &c.marks[n-1]
		if was := &c.marked[0]; was.kind == ch.kind && was.what == ch.what && at-last.At < int64(dragWithin) && ch.kind != MarkRouter {
			was.new = ch.new
			last.Label = was.label()
			return
		}
	}
	c.marked = append(c.marked[:0], ch)
	c.push(Mark{At: at, Kind: ch.kind, Label: ch.label()})
}

func (c *changes) push(m Mark) {
	if len(c.marks) == maxMarks {
		c.marks = slices.Delete(c.marks, 0, 1)
	}
	c.marks = append(c.marks, m)
}

// pause marks the end of a pause of the given length.
func (c *changes) pause(at, lasted int64) {
	c.marked = c.marked[:0]
	c.push(Mark{At: at, Kind: MarkPause, Label: "paused " + time.Duration(lasted).Round(100*time.Millisecond).String()})
}

// Marks gives the latest changes and pauses, oldest first.
func (b *Board) Marks() []Mark { return slices.Clone(b.changes.marks) }
