package frontier

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
)

// ProbeTokens is over how many of the front's first candidates the mean entropy of a
// problem is taken: the probe of a query-level router.
const ProbeTokens = 16

// Outcome is what one problem came to at one point. Lists have an entry per model,
// small first.
type Outcome struct {
	Task     string  `json:"task"`
	Family   string  `json:"family,omitempty"` // of a mixture of problems
	Prompt   int     `json:"prompt"`           // tokens
	Checked  bool    `json:"checked"`          // there is an answer to hold it against
	Right    bool    `json:"right"`
	Reason   string  `json:"reason"`   // why it ended: stop, length
	Tokens   []int   `json:"tokens"`   // that reached the client, by who wrote them
	Steps    []int   `json:"steps"`    // rows that gave a candidate, dropped ones included
	Fed      []int   `json:"fed"`      // positions that were computed, prompts and what others wrote included
	Switches int     `json:"switches"` // changes of writer from one token to the next
	Ns       int64   `json:"ns"`       // from arrival to end, of the clock
	Entropy  float64 `json:"entropy"`  // nats, mean of the front's first ProbeTokens candidates
	Score    float64 `json:"score"`    // what a head gave at the first candidate
	Scored   bool    `json:"scored"`   // one was asked
}

// Total is all tokens that reached the client.
func (o *Outcome) Total() int { return sum(o.Tokens) }

// Large is those of the last model.
func (o *Outcome) Large() int {
	if len(o.Tokens) == 0 {
		return 0
	}
	return o.Tokens[len(o.Tokens)-1]
}

// Knob is one setting of an axis.
type Knob struct {
	Name  string  `json:"knob"`
	Value float64 `json:"value"`
}

// Run is one point that was run: a router at one setting of its knobs over all
// problems. Its JSON form is a line of the file that a sweep writes.
type Run struct {
	Series   string             `json:"series"`          // of which curve it is a point
	Router   string             `json:"router"`          // file@hash
	Knobs    []Knob             `json:"knobs"`           // that make the point
	Params   map[string]float64 `json:"params"`          // all knobs
	Heads    map[string]string  `json:"heads,omitempty"` // hashes of those that were asked
	Summary  metrics.Summary    `json:"summary"`
	Problems []Outcome          `json:"problems"`
}

// KnobText writes knobs as flags do: threshold=0.5 k=4.
func KnobText(knobs []Knob) string {
	parts := make([]string, len(knobs))
	for i, k := range knobs {
		parts[i] = fmt.Sprintf("%s=%.6g", k.Name, k.Value)
	}
	return strings.Join(parts, " ")
}

// Key names the point within a sweep.
func (r *Run) Key() string { return Key(r.Series, r.Knobs) }

// Key names a point: its series and its knobs.
func Key(series string, knobs []Knob) string {
	return strings.TrimSpace(series + " " + KnobText(knobs))
}

// Fold makes outcomes of a tape. It belongs to one goroutine.
type Fold struct {
	models int
	open   map[event.ReqID]*open
	done   []ended
}

// open is a request that has not ended.
type open struct {
	Outcome
	arrived          int64
	base             int // position of the first token
	writers          []event.Peer
	probed           int
	finished, judged bool
}

type ended struct {
	id event.ReqID
	Outcome
}

// NewFold returns the fold of a run on so many models.
func NewFold(models int) *Fold {
	return &Fold{models: max(models, 1), open: map[event.ReqID]*open{}}
}

// Add takes one record. Records come in tape order.
func (f *Fold) Add(rec *tape.Record) {
	switch rec.Kind {
	case tape.KindEvent:
		if rec.Event != nil {
			f.event(rec)
		}
	case tape.KindCommand:
		if rec.Command != nil {
			f.command(rec)
		}
	case tape.KindHost:
		switch h := rec.Host.(type) {
		case *tape.Request:
			o := f.of(h.Req)
			o.Task, o.Family = h.Task, h.Family
		case *tape.Result:
			f.result(h)
		}
	}
}

// of gives the request, a new one if it is not known.
func (f *Fold) of(id event.ReqID) *open {
	o := f.open[id]
	if o == nil {
		o = &open{Outcome: Outcome{Tokens: make([]int, f.models), Steps: make([]int, f.models), Fed: make([]int, f.models)}}
		f.open[id] = o
	}
	return o
}

// at gives a request that is under way at a model of the run, else nil.
func (f *Fold) at(id event.ReqID, p event.Peer) *open {
	o := f.open[id]
	if o == nil || o.finished || p < 0 || int(p) >= f.models {
		return nil
	}
	return o
}

func (f *Fold) event(rec *tape.Record) {
	switch ev := rec.Event; ev.Kind {
	case event.Arrive:
		o := f.of(ev.Req)
		if o.arrived = rec.At; ev.Arrival != nil {
			o.Prompt = len(ev.Arrival.Prompt)
		}
	case event.StepDone:
		if ev.Step == nil {
			return
		}
		for i := range ev.Step.Rows {
			row := &ev.Step.Rows[i]
			o := f.at(row.Req, rec.Core)
			if o == nil {
				continue
			}
			o.Steps[rec.Core]++
			if rec.Core != 0 {
				continue
			}
			if row.Scored && o.probed == 0 {
				o.Score, o.Scored = float64(row.Score), true
			}
			if o.probed < ProbeTokens { // a running mean
				o.probed++
				o.Entropy += (float64(row.Output.Entropy) - o.Entropy) / float64(o.probed)
			}
		}
	}
}

func (f *Fold) command(rec *tape.Record) {
	switch cmd := rec.Command; cmd.Kind {
	case event.RunBatch:
		if cmd.Batch == nil {
			return
		}
		for i := range cmd.Batch.Rows {
			if o := f.at(cmd.Batch.Rows[i].Req, rec.Core); o != nil {
				o.Fed[rec.Core] += len(cmd.Batch.Rows[i].Tokens)
			}
		}
	case event.Emit:
		o := f.at(cmd.Req, rec.Core)
		if o == nil {
			return
		}
		if len(o.writers) == 0 {
			o.base = cmd.Pos
		}
		if by := rec.Writer(); cmd.Pos == o.base+len(o.writers) && int(by) < f.models {
			o.writers = append(o.writers, by)
		}
	case event.Finish:
		o := f.open[cmd.Req]
		if o == nil || o.finished {
			return
		}
		o.finished, o.Reason, o.Ns = true, cmd.Reason.String(), rec.At-o.arrived
		kept := o.writers[:min(max(cmd.N-o.base, 0), len(o.writers))]
		for i, p := range kept {
			o.Tokens[p]++
			if i > 0 && kept[i-1] != p {
				o.Switches++
			}
		}
		f.close(cmd.Req, o)
	}
}

// result is told by the client's loop, before or after the front has finished.
func (f *Fold) result(h *tape.Result) {
	o := f.open[h.Req]
	if o == nil || o.judged {
		return
	}
	o.judged, o.Checked, o.Right = true, h.Checked, h.Correct
	f.close(h.Req, o)
}

// close keeps a request that is both finished and judged. One that was ended by
// force or by an error is no outcome of its router.
func (f *Fold) close(id event.ReqID, o *open) {
	if !o.finished || !o.judged {
		return
	}
	if o.Reason == event.ReasonStop.String() || o.Reason == event.ReasonLength.String() {
		f.done = append(f.done, ended{id, o.Outcome})
	}
	delete(f.open, id)
}

// Outcomes gives what has ended so far, in the order in which requests came.
func (f *Fold) Outcomes() []Outcome {
	slices.SortFunc(f.done, func(a, b ended) int { return cmp.Compare(a.id, b.id) })
	out := make([]Outcome, len(f.done))
	for i := range f.done {
		out[i] = f.done[i].Outcome
	}
	return out
}

func sum(xs []int) (n int) {
	for _, x := range xs {
		n += x
	}
	return n
}
