package board

import (
	"fmt"
	"math"
	"strings"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/frame"
)

// sheet collects rows of one width.
type sheet struct {
	m    *Model
	w    int
	l    *frame.Line
	rows []frame.Row
}

func (s *sheet) end() {
	s.rows = append(s.rows, s.l.End())
	s.l.Start(s.w)
}

// title begins a part, behind an empty row where something stands before it.
func (s *sheet) title(name, note string) {
	if len(s.rows) > 0 {
		s.end()
	}
	s.l.Put(s.m.theme.Title, name).PutClip(s.m.theme.Dim, note, s.l.Room())
	s.end()
}

// label begins a row.
func (s *sheet) label(st frame.Style, name string) *frame.Line {
	return s.l.Put("", " ").PutClip(st, name, sheetLabel-2).To(sheetLabel)
}

const sheetLabel = 11

// texts puts a long text behind a mark, in as many rows as it needs.
func (s *sheet) texts(st frame.Style, mark, text string) {
	indent := 1 + frame.Width(mark)
	for i, part := range wrapWords(text, s.w-indent, 8) {
		if i == 0 {
			s.l.Put("", " ").Put(st, mark)
		}
		s.l.To(indent).PutClip(st, part, s.l.Room())
		s.end()
	}
}

// PlanRows tell all that the plan says and how it turns out, in rows of at most w
// cells.
func (m *Model) PlanRows(w int) []frame.Row {
	s := &sheet{m: m, w: w, l: frame.NewLine(w, m.theme.G.ASCII)}
	p := m.figs.snap.Plan
	if p == nil {
		s.title("plan", "  none yet")
		s.texts(m.theme.Dim, "", "It comes as soon as every model has run steps and handed requests over; until then the policies table and look-ahead start batches as eager does. A router that sends nothing on needs none.")
	} else {
		how := fmt.Sprintf("  for N %d by %s", p.N, orElse(p.Method, "?"))
		if p.SolveNs > 0 { // plans take no virtual time
			how += ", made in " + solved(p.SolveNs)
		}
		s.title("plan", how)
		s.rates(p)
		s.models(p)
	}
	s.batches()
	s.kv()
	s.waiting()
	if p != nil {
		s.warnings(p)
	}
	return s.rows
}

func solved(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }

// rates set what is measured beside what is predicted.
func (s *sheet) rates(p *tape.Plan) {
	m, th := s.m, s.m.theme
	snap := &m.figs.snap
	value := func(name string, st frame.Style, text string) *frame.Line {
		return s.label(th.Dim, name).PutRight(st, text, 8)
	}
	value("measured", th.Strong, tenths(snap.TokensPerS)).Put(th.Dim, " tok/s  "+m.windowText())
	s.end()
	if want, ok := m.expected(); ok {
		value("predicted", th.Prediction, "~"+tenths(want)).Put(th.Dim, " tok/s  under "+snap.Policy)
		if off, ok := m.off(); ok {
			s.l.Put(th.Dim, "; measured ").Put(th.Strong, signed(off))
		}
		s.end()
	}
	value("best", th.Prediction, "~"+tenths(p.Best)).Put(th.Dim, " tok/s  at B* ").Put(th.Strong, vector(p.B))
	s.end()
	if p.Low > 0 && p.High > 0 {
		s.l.To(sheetLabel+2).Put(th.Prediction, fmt.Sprintf("%s to %s", tenths(p.Low), tenths(p.High))).Put(th.Dim, " if one step is 2 % off")
		s.end()
	}
	for _, o := range []struct {
		name string
		of   float64
	}{{"eager", p.Eager}, {"lock-step", p.Lockstep}} {
		if o.of > 0 {
			value(o.name, th.Prediction, "~"+tenths(o.of)).Put(th.Dim, " tok/s  B*: ").Put(m.gainStyle(p.Best/o.of-1), gained(p.Best/o.of-1))
			s.end()
		}
	}
	if text := tableText(p.Table); text != "" {
		s.label(th.Dim, "B* at")
		for _, part := range wrapWords(text, s.w-sheetLabel, 4) {
			s.l.To(sheetLabel).PutClip(th.Strong, part, s.l.Room())
			s.end()
		}
	}
}

// tableText writes B* by the active requests, equal rows together.
func tableText(table [][]int) string {
	var parts []string
	for from := 0; from < len(table); {
		to, b := from, vector(table[from])
		for to+1 < len(table) && vector(table[to+1]) == b {
			to++
		}
		name := fmt.Sprint(from + 1)
		switch {
		case to+1 == len(table) && from > 0:
			name += "+"
		case to > from:
			name += fmt.Sprintf("-%d", to+1)
		}
		parts = append(parts, name+":"+b)
		from = to + 1
	}
	return strings.Join(parts, "  ")
}

// models are what the plan was made of, beside the thresholds in force.
func (s *sheet) models(p *tape.Plan) {
	m, th := s.m, s.m.theme
	s.title("made of", "")
	for i := range m.n {
		s.label(th.Role(peer(i), m.n), m.role(peer(i)))
		if m.kind == event.LookAhead {
			s.l.Put(th.Dim, "look-ahead")
		} else {
			s.l.Put(th.Dim, "B ").Put(th.Strong, fmt.Sprint(max(m.cores[i].seen.load.B, 1)))
		}
		if b := m.star(peer(i)); b > 0 {
			s.l.Put(th.Dim, "  B* ").Put(th.Strong, fmt.Sprint(b))
		}
		if i < len(p.Step) {
			f := &p.Step[i]
			s.step(f)
		}
		s.end()
		s.sends(p, i)
	}
}

// step is how long a step takes. A batch of prompts only has no decode rows; the
// shortest one that the plan knows has one.
func (s *sheet) step(f *tape.StepFit) {
	th := s.m.theme
	s.l.Put(th.Dim, "  step ")
	if grows := math.Abs(f.PerRow) > 0.005; !grows || f.Base >= 0.05 {
		s.l.Put(th.Strong, stepText(f.Base)).Put(th.Dim, " ms")
		if grows {
			s.l.Put(th.Strong, fmt.Sprintf(" %+.2f", f.PerRow)).Put(th.Dim, " a row")
		}
	} else {
		s.l.Put(th.Strong, fmt.Sprintf("%.2f", f.PerRow)).Put(th.Dim, " ms a row")
	}
	if low := max(f.Low, 1); f.High > low {
		s.l.Put(th.Dim, fmt.Sprintf(", at %d to %d rows", low, f.High))
	} else {
		s.l.Put(th.Dim, fmt.Sprintf(", at %d rows", f.High))
	}
}

// stepText writes a step time with as many decimals as tell it from 0.
func stepText(ms float64) string {
	if ms < 1 {
		return fmt.Sprintf("%.2f", ms)
	}
	return tenths(ms)
}

// sends is where the rows of a subserver go, and after how many of them.
func (s *sheet) sends(p *tape.Plan, i int) {
	m, th := s.m, s.m.theme
	if i >= len(p.P) {
		return
	}
	s.l.To(sheetLabel).Put(th.Dim, "sends")
	sent := false
	for j, share := range p.P[i] {
		if j != i && j < m.n && share > 0 {
			sent = true
			s.l.Put(th.Strong, percent(share)).Put(th.Pending, " > "+m.role(peer(j)))
		}
	}
	if !sent {
		s.l.Put(th.Dim, " nothing on")
	}
	if i < len(p.Interval) && p.Interval[i].N > 0 && sent {
		iv := &p.Interval[i]
		s.l.Put(th.Dim, " after ").Put(th.Strong, fmt.Sprintf("%.1f", iv.Mean)).Put(th.Dim, " rows")
		switch {
		case iv.Far:
			short := piece{th.Dim, ", not geometric"}
			putFirst(s.l, 0, []piece{short, {th.Dim, fmt.Sprintf(": CV^2 %s, not %s", decimals(iv.CV2), decimals(iv.Geom))}}, []piece{short})
		case iv.Mean > 1:
			s.l.Put(th.Dim, ", geometric")
		}
	}
	s.end()
}

// batches are the rules that started them.
func (s *sheet) batches() {
	m, th := s.m, s.m.theme
	s.title("batches were started", "  "+m.windowText())
	for i := range m.figs.snap.Peers {
		s.label(th.Role(peer(i), m.n), m.role(peer(i)))
		mix := shares(&m.figs.snap.Peers[i])
		if len(mix) == 0 {
			s.l.Put(th.Dim, "none")
		}
		for j, r := range mix {
			if j > 0 {
				s.l.Put(th.Dim, ", ")
			}
			s.l.Put(th.Strong, strings.TrimSuffix(tenths(100*r.part), ".0")+" %").Put(th.Dim, " by "+r.rule.String())
		}
		s.end()
	}
}

// kv is what the prefix cache saves and preemption costs.
func (s *sheet) kv() {
	m, th := s.m, s.m.theme
	s.title("KV", "  "+m.windowText())
	for i := range m.figs.snap.Peers {
		p := &m.figs.snap.Peers[i]
		s.label(th.Role(peer(i), m.n), m.role(peer(i)))
		if p.Prompt > 0 {
			s.l.Put(th.Strong, fmt.Sprintf("%.0f %%", 100*p.PrefixHits)).Put(th.Dim, fmt.Sprintf(" of %d prompt tokens were cached", p.Prompt))
		} else {
			s.l.Put(th.Dim, "no prompt")
		}
		s.end()
		if p.Preempted > 0 || p.Recomputed > 0 {
			st, text := th.Warn, "! %d preempted, %d tokens recomputed"
			if m.resubmits {
				st, text = th.Text, "%d given back at hand-offs, %d tokens recomputed"
			}
			s.l.To(sheetLabel).Put(st, fmt.Sprintf(text, p.Preempted, p.Recomputed))
			s.end()
		}
	}
}

// waiting is who waits for whom.
func (s *sheet) waiting() {
	m, th := s.m, s.m.theme
	w := m.figs.snap.W
	if w <= 0 {
		s.title("waits", "  the guard W is not known yet: every policy acts eagerly")
		return
	}
	s.title("waits", "  longer than the guard W, "+solved(int64(w)))
	if len(m.figs.snap.Waits) == 0 {
		s.l.Put("", " ").Put(th.Dim, "none")
		s.end()
	}
	for i := range m.figs.snap.Waits {
		wait := &m.figs.snap.Waits[i]
		s.texts(th.Warn, "! ", m.waitText(wait))
		for _, on := range wait.On {
			s.label(th.Role(on.Core, m.n), m.role(on.Core)).Put(th.Dim, "has ").Put(th.Strong, fmt.Sprint(on.Requests))
			if on.Batch > 0 {
				s.l.Put(th.Dim, ", runs ").Put(th.Strong, fmt.Sprint(on.Batch)).Put(th.Dim, " since "+age(on.For.Round(time.Millisecond)))
			} else {
				s.l.Put(th.Dim, ", is idle")
			}
			s.end()
		}
	}
}

// warnings are why not to trust the plan, or not to bother: notes, as they say how
// things are.
func (s *sheet) warnings(p *tape.Plan) {
	s.title("notes of the plan", "")
	if len(p.Warnings) == 0 {
		s.l.Put("", " ").Put(s.m.theme.Dim, "none")
		s.end()
	}
	for _, w := range p.Warnings {
		s.texts(s.m.theme.Dim, "- ", w)
	}
}
