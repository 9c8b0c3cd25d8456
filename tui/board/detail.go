package board

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/frame"
)

// strip is the entropy of the tokens around the cursor, a column each: its
// title, three rows of columns and the place of the cursor.
func (in *inspector) strip(m *Model, w, cur int) []frame.Row {
	th, r := m.theme, in.req
	from := max(r.gone, min(cur-w/2, r.len()-w))
	end := min(from+w, r.len())
	values := make([][]float64, 0, w)
	top := 0.1
	for i := from; i < end; i++ {
		t := &r.tokens[i-r.gone]
		v := make([]float64, m.n)
		if e, ok := t.entropy(); ok {
			v[t.writer] = e
			top = max(top, e)
		}
		values = append(values, v)
	}
	top = niceTop(top)
	layers := make([]frame.Layer, m.n)
	for i := range layers {
		layers[i] = frame.Layer{Style: th.Role(peer(i), m.n), Solid: th.Solid(peer(i), m.n)}
	}
	l := frame.NewLine(w, th.G.ASCII)
	l.Put(th.Border, th.G.Rule).Put(th.Dim, " entropy of each position, up to "+short(top)+" nats ").Repeat(th.Border, th.G.Rule, w)
	out := []frame.Row{l.End()}
	out = append(out, frame.Stack(th.G, 3, top, layers, values)...)
	l.Start(w).Repeat("", " ", cur-from).Put(th.Strong, th.G.Up)
	return append(out, l.End())
}

// first is what was decided first at this position: on the first candidate that
// was dropped, or on the token itself; nil where that is not known.
func (t *token) first() *decision {
	d := &t.by
	if len(t.drops) > 0 {
		d = &t.drops[0]
	}
	if d.row == nil {
		return nil
	}
	return d
}

// entropy is what the router saw first at this position.
func (t *token) entropy() (float64, bool) {
	d := t.first()
	if d == nil || math.IsNaN(float64(d.row.Output.Entropy)) {
		return 0, false
	}
	return float64(d.row.Output.Entropy), true
}

// detail is all that is known of the token under the cursor.
func (in *inspector) detail(m *Model, w, h int) []frame.Row {
	th := m.theme
	t := in.current()
	if t == nil {
		return []frame.Row{m.line.Start(w).Put(th.Dim, "no token yet").End()}
	}
	d := details{m: m, w: w, l: frame.NewLine(w, th.G.ASCII)}
	n := in.cur
	d.field("position", fmt.Sprintf("%d", in.req.prompt+n), fmt.Sprintf("  token %d of %d", n+1, in.req.len()))
	d.l.Put(th.Dim, "token     ").Put(th.Token(t.writer, m.n), strconv.Quote(m.shown(t.id))).Put(th.Dim, "  id "+strconv.Itoa(int(t.id)))
	d.end()
	d.l.Put(th.Dim, "writer    ").Put(th.Token(t.writer, m.n), m.role(t.writer))
	if int(t.writer) < len(m.info.Models) {
		d.l.Put(th.Dim, "  "+m.info.Models[t.writer].Name)
	}
	d.end()
	for i := range t.drops {
		d.dropped(&t.drops[i])
	}
	if t.by.row == nil {
		d.l.Put(th.Dim, "taken over from a message: no row of its own")
		d.end()
	} else {
		bars := 5
		switch {
		case h < 16:
			bars = 0
		case h < 22 && len(t.drops) > 0: // the router's lines are worth more
			bars = 3
		}
		d.signals(t.by.row, bars)
		d.decided(t)
	}
	if at := t.first(); at != nil {
		d.knobs(at)
	}
	for _, s := range in.because(m, t) {
		name := "router    "
		for _, text := range wrapWords(s, w-10, 3) {
			d.l.Put(th.Dim, name).PutClip(th.Strong, text, w-10)
			d.end()
			name = "          "
		}
	}
	if t.by.row != nil {
		d.step(&t.by)
	}
	for i := range t.drops {
		if c := &t.drops[i]; h-len(d.rows) >= 9 {
			d.end()
			d.l.Put(th.Role(c.core, m.n), m.role(c.core)).Put(th.Dim, " had said")
			d.end()
			d.signals(c.row, 5)
			d.step(c)
		}
	}
	return d.rows
}

// because are the router's lines that decided at this position.
func (in *inspector) because(m *Model, t *token) []string {
	key := inspectKey{uint64(in.req.id), in.cur, int(t.id)}
	if in.explained == key || m.Explain == nil {
		return in.why
	}
	in.explained, in.why = key, nil
	for _, d := range append(append([]decision(nil), t.drops...), t.by) {
		if d.row == nil {
			continue
		}
		s := m.Explain(Decided{
			Core: d.core, Pos: d.pos, Emitted: d.emitted, PromptLen: in.req.prompt, MaxLen: in.req.most, Prefill: d.prefill,
			State: d.state, Fields: d.fields, Knobs: d.knobs, Row: *d.row,
		})
		if s != "" {
			in.why = append(in.why, m.role(d.core)+": "+s)
		}
	}
	return in.why
}

type details struct {
	m    *Model
	w    int
	l    *frame.Line
	rows []frame.Row
}

func (d *details) end() {
	d.rows = append(d.rows, d.l.End())
	d.l.Start(d.w)
}

func (d *details) field(name, value, tail string) {
	d.l.Put(d.m.theme.Dim, fmt.Sprintf("%-9s ", name)).Put(d.m.theme.Strong, value).Put(d.m.theme.Dim, tail)
	d.end()
}

func (d *details) dropped(c *decision) {
	th := d.m.theme
	d.l.Put(th.Dim, map[bool]string{false: "dropped   ", true: "cut       "}[c.taken])
	putDropped(d.l, th, strconv.Quote(c.shown))
	d.l.Put(th.Dim, " by ").Put(th.Role(c.core, d.m.n), d.m.role(c.core))
	p := probability(&c.row.Output, c.row.Output.Token)
	if d.l.Room() < len(" p ")+len(p) { // half a number would be another one
		d.end()
		d.l.Put("", " ")
	}
	d.l.Put(th.Dim, " p ").Put(th.Strong, p)
	entropy := fmt.Sprintf("entropy %.3f", c.row.Output.Entropy)
	if c.row.Scored {
		entropy = fmt.Sprintf("score %.4f  %s", c.row.Score, entropy)
	}
	if d.l.Room() < len(entropy)+2 {
		d.end()
	}
	d.l.Put(th.Dim, "  "+entropy)
	d.end()
	if c.row.Action == event.Truncate {
		d.field("decision", truncation(c.row), fmt.Sprintf(" at position %d, > %s", c.pos, d.m.role(c.row.Dest)))
	}
}

// truncation is the action as a router writes it.
func truncation(row *event.RowResult) string { return fmt.Sprintf("%v(%d)", row.Action, row.At) }

// probability of a token, raw at temperature 1.
func probability(o *event.Output, id event.Token) string {
	for _, t := range o.TopK {
		if t.Token == id {
			return fmt.Sprintf("%.3f", math.Exp(float64(t.Logprob)))
		}
	}
	if n := len(o.TopK); n > 0 {
		return fmt.Sprintf("< %.3f", math.Exp(float64(o.TopK[n-1].Logprob)))
	}
	return "?"
}

// signals shows what the model said: so many of its most likely tokens, five at
// most, and how sure it was.
func (d *details) signals(row *event.RowResult, bars int) {
	th, o := d.m.theme, &row.Output
	for _, t := range o.TopK[:min(bars, len(o.TopK))] {
		p := math.Exp(float64(t.Logprob))
		mark, st := " ", th.Dim
		if t.Token == o.Token {
			mark, st = th.G.Cursor, th.Strong
		}
		d.l.Put(th.Strong, mark+" ").PutClip(st, strconv.Quote(d.m.shown(t.Token)), 12).To(15)
		bar := d.w - 15 - 7
		d.l.Repeat(st, th.G.Busy, int(math.Round(p*float64(bar)))).To(15 + bar)
		d.l.Put(st, fmt.Sprintf(" %.3f", p))
		d.end()
	}
	if row.Scored {
		d.field("score", fmt.Sprintf("%.4f", row.Score), "")
	}
	entropy, norm := fmt.Sprintf("%.3f nats", o.Entropy), fmt.Sprintf("norm %.4f", o.EntropyNorm)
	if d.w < 46 {
		d.field("entropy", entropy, " "+norm)
		d.field("margin", fmt.Sprintf("%.3f", o.Margin()), "")
		return
	}
	d.field("entropy", entropy, fmt.Sprintf("  %s  margin %.3f", norm, o.Margin()))
}

// decided says what the router made of the row.
func (d *details) decided(t *token) {
	th, row := d.m.theme, t.by.row
	where := "stay"
	if row.Dest != t.by.core {
		where = "> " + d.m.role(row.Dest)
	}
	action := row.Action.String()
	if row.Action == event.Truncate {
		action = truncation(row)
	}
	d.l.Put(th.Dim, "decision  ").Put(th.Strong, action).Put("", ", ")
	st := th.Strong
	if row.Dest != t.by.core {
		st = th.Pending
	}
	d.l.Put(st, where)
	if row.Budget > 0 {
		d.l.Put(th.Dim, fmt.Sprintf(", budget %d", row.Budget))
	}
	if row.Action != event.Keep {
		d.l.Put(th.Warn, " ! overruled: kept")
	}
	d.l.Put(th.Dim, "  @"+hash4(row.Router))
	d.end()
	if row.Fault != "" {
		d.l.Put(th.Bad, "! ").PutClip(th.Bad, row.Fault, d.w-2)
		d.end()
	}
}

// knobs are those of the router as they stood when it decided; of a router that
// is not live any more they are not known by name.
func (d *details) knobs(c *decision) {
	s := &d.m.status
	if c.row.Router != s.Hash || len(s.Knobs) == 0 {
		return
	}
	th, name, lines := d.m.theme, "knobs     ", 0
	for i := range s.Knobs {
		k := &s.Knobs[i]
		value, known := c.knobs[s.Router][k.Name]
		if !known {
			if _, moved := d.m.knobs[s.Router][k.Name]; moved {
				continue
			}
			value = k.Value
		}
		if d.l.W() > 0 && d.l.Room() < frame.Width(name+k.Name+" "+short(value)) {
			d.end()
			if lines++; lines == 2 { // the rest stands on the board
				return
			}
			name = "          "
		}
		d.l.Put(th.Dim, name+k.Name+" ").Put(th.Strong, short(value))
		name = "  "
	}
	if d.l.W() > 0 {
		d.end()
	}
}

// step says in which batch the row ran and how long that took.
func (d *details) step(c *decision) {
	b := c.batch
	if b == nil {
		return
	}
	why := b.rule.String()
	switch b.rule {
	case event.RuleB:
		why = fmt.Sprintf("ready %d, B %d", b.ready, b.b)
	case event.RuleGuard:
		why = fmt.Sprintf("guard, B %d", b.b)
	}
	of := ""
	if d.w >= 46 {
		of = " of " + d.m.role(c.core)
	}
	d.field("batch", fmt.Sprintf("%d", b.id), fmt.Sprintf("%s, rows %d, %s", of, b.rows, why))
	d.field("waited", millis(c.waited), "  step "+strings.TrimSpace(millis(b.execNs)))
}

func millis(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }
