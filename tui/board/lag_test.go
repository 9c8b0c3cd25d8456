package board

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// Under a router that holds tokens back the screen says why texts lag behind and
// by how much each one does; a token is as old as its row, so that a text that
// comes all at once looks no faster than it was written.
func TestHeldTokensAreCounted(t *testing.T) {
	recs, _, err := tapetest.Run(tapetest.Config{Requests: 30, Seed: 5, Hold: 4})
	if err != nil {
		t.Fatal(err)
	}
	m := New(infoOf(2), theme.New(theme.Options{ASCII: true}))
	m.SetStatus(statusOf(synth.Paper()))
	rows, held, shown := 0, 0, 0
	sampled := map[event.ReqID]map[int]int64{} // newest row that was kept, by position
	for i := range recs {
		rec := &recs[i]
		step := rec.Kind == tape.KindEvent && rec.Event.Kind == event.StepDone
		before := map[event.ReqID]int{}
		if step {
			for _, row := range rec.Event.Step.Rows {
				if r := m.reqs[row.Req]; r != nil && r.state != finished {
					before[row.Req] = r.heldBack()
				}
			}
		}
		m.Add(recs[i : i+1])
		if !step {
			continue
		}
		for id, n := range before {
			r := m.reqs[id]
			if got := r.last.pos - r.last.emitted; got != n {
				t.Fatalf("request %d draws a candidate for position %d, %d of the text are out, and %d are said to be held back", id, r.last.pos, r.last.emitted, n)
			}
			if sampled[id] == nil {
				sampled[id] = map[int]int64{}
			}
			sampled[id][r.last.pos] = rec.At
			rows++
			held += n
		}
		if rows%40 != 1 {
			continue
		}
		text := Text(m, 120, 36, rec.At, true)
		if !strings.Contains(text, "hold(4): texts end up to 4 tokens behind") {
			t.Fatalf("why texts lag is not said:\n%s", text)
		}
		for _, r := range m.slots {
			if n := r.heldBack(); n > 0 && r.len() > 0 && r.look(m.n).away == 0 {
				shown++
				if want := fmt.Sprintf("%d + %d held", r.len(), n); !strings.Contains(text, want) {
					t.Fatalf("no %q in\n%s", want, text)
				}
			}
		}
		narrow := strings.Split(Text(m, 80, 24, rec.At, true), "\n")
		for _, l := range narrow {
			if strings.Contains(l, " requests ") && (!strings.Contains(l, "hold(4)") || !strings.HasSuffix(l, " tok/s  large ")) {
				t.Fatalf("the title of the requests: %q", l)
			}
		}
	}
	late := 0
	for id, r := range m.reqs {
		for i := range r.tokens {
			tok, pos := &r.tokens[i], r.prompt+i
			if tok.by.row == nil {
				continue
			}
			if at := sampled[id][pos]; tok.at != at {
				t.Fatalf("request %d position %d is of %d, its row of %d", id, pos, tok.at, at)
			}
			late++
		}
	}
	if rows < 300 || held < rows || shown < 5 || late < 300 {
		t.Errorf("%d rows, %d held back, %d times shown, %d tokens with a row; the test has lost its sense", rows, held, shown, late)
	}
}

// The closer look puts what a head said beside the knob that it is held against,
// of a candidate that was dropped too, in the smallest window as well.
func TestInspectorShowsScoreAndKnob(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	r := m.done[len(m.done)-1]
	m.Inspect(r.id)
	entropy := float32(-1)
	for i := range r.tokens {
		if tok := &r.tokens[i]; len(tok.drops) > 0 {
			row := *tok.drops[0].row
			row.Score, row.Scored = 0.7321, true
			entropy = row.Output.Entropy
			tok.drops[0].row, tok.drops[0].shown = &row, "together"
			m.UI.inspect.cur, m.UI.inspect.follow = i, false
			break
		}
	}
	for _, s := range []struct{ w, h int }{{80, 24}, {120, 36}, {200, 60}} {
		text := Text(m, s.w, s.h, c.Now(), true)
		check(t, text, s.w, s.h)
		for _, want := range []string{fmt.Sprintf("score 0.7321  entropy %.3f", entropy), " p " + probability(&m.UI.inspect.current().drops[0].row.Output, m.UI.inspect.current().drops[0].row.Output.Token), "knobs     threshold 0.5"} {
			if !strings.Contains(text, want) {
				t.Errorf("%dx%d: no %q in\n%s", s.w, s.h, want, text)
			}
		}
	}

	// The value is that of the decision, not the one that the knob was moved to.
	m.knob(&tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 0.5, New: 1.5})
	s := m.status
	s.Knobs = []KnobState{{Name: "threshold", Value: 1.5, Default: 0.5, Max: 4}}
	m.SetStatus(s)
	if text := Text(m, 120, 36, c.Now(), true); strings.Contains(text, "threshold 1.5") {
		t.Errorf("a decision is shown beside a value that it never saw:\n%s", text)
	}
	tok := m.UI.inspect.current()
	for i := range tok.drops {
		tok.drops[i].knobs = Knobs{"r2r.lua": {"threshold": 0.25}}
	}
	if text := Text(m, 120, 36, c.Now(), true); !strings.Contains(text, "threshold 0.25") {
		t.Errorf("the value of the decision is not shown:\n%s", text)
	}
}

// Where problems are of several kinds the title of the requests tells what is
// right of each, in counts where there is room and else in percent; what a request
// is about was asked of it under this router.
func TestRightByFamily(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	title := func(w, h int) string {
		text := Text(m, w, h, c.Now(), true)
		check(t, text, w, h)
		for _, l := range strings.Split(text, "\n") {
			if strings.Contains(l, " requests ") {
				return l
			}
		}
		t.Fatalf("no requests in\n%s", text)
		return ""
	}
	families := []string{"calendar", "count", "ledger", "sort", "story", "units"}
	asked := map[event.ReqID]bool{}
	answer := func(i int, family string) {
		for range 1000 { // until a new request is there
			for _, r := range m.slots {
				if r.state != finished && !asked[r.id] {
					asked[r.id] = true
					c.Host(&tape.Request{Req: r.id, Family: family, Answer: "1"})
					c.Host(&tape.Result{Req: r.id, Checked: true, Correct: i%3 > 0})
					m.Add(c.Until(c.Now() + 300e6))
					return
				}
			}
			m.Add(c.Until(c.Now() + 100e6))
		}
		t.Fatal("no new request comes")
	}
	answer(1, families[0])
	if l := title(160, 50); strings.Contains(l, "calendar") {
		t.Errorf("one kind alone is told apart: %q", l)
	}
	for i := range 36 {
		answer(i/6+1, families[i%6])
	}
	if l := title(160, 50); !strings.Contains(l, "right  calendar 5/7  count 4/6  ledger 4/6  sort 4/6  story 4/6  units 4/6 ") {
		t.Errorf("160 columns: %q", l)
	}
	if l := title(120, 36); !strings.Contains(l, "right %  calendar 71  count 67  ledger 67  sort 67  story 67  units 67 ") {
		t.Errorf("120 columns: %q", l)
	}
	m.hold = 8
	if l := title(120, 36); !strings.Contains(l, "hold(8)") || !strings.HasSuffix(l, " tok/s  large ") {
		t.Errorf("120 columns, held back: %q", l)
	}
	m.hold = 0
	if l := title(80, 24); strings.Contains(l, "calendar") || !strings.HasSuffix(l, " tok/s  large ") {
		t.Errorf("80 columns: %q", l)
	}
}
