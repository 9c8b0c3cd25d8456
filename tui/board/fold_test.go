package board

import (
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// Every token has the row that made it, and every dropped candidate stands at
// the position that the other subserver wrote in its place.
func TestTokensKnowTheirRows(t *testing.T) {
	m, _ := session(synth.Paper(), theme.New(theme.Options{}))
	tokens, dropped := 0, 0
	for _, r := range m.done {
		byRole := make([]int, m.n)
		for i := range r.tokens {
			tok := &r.tokens[i]
			tokens++
			byRole[tok.writer]++
			if tok.by.row == nil || tok.by.core != tok.writer || tok.by.row.Output.Token != tok.id || tok.by.row.Req != r.id {
				t.Fatalf("request %d token %d by %d has row %+v of %d", r.id, i, tok.writer, tok.by.row, tok.by.core)
			}
			if b := tok.by.batch; b == nil || b.core != tok.writer || b.rows < 1 || b.execNs <= 0 {
				t.Fatalf("request %d token %d ran in batch %+v", r.id, i, b)
			}
			if want := int(tok.writer); len(tok.drops) != want { // the large model writes where the small one was dropped
				t.Fatalf("request %d token %d by %d has %d dropped candidates", r.id, i, tok.writer, len(tok.drops))
			}
			for _, d := range tok.drops {
				dropped++
				if d.core != event.Front || d.row.Dest != tok.writer || d.row.Action != event.Drop {
					t.Fatalf("request %d token %d: dropped %+v", r.id, i, d)
				}
			}
		}
		for p := range byRole {
			if byRole[p] != r.byRole[p] {
				t.Fatalf("request %d counts %v, has %v", r.id, r.byRole, byRole)
			}
		}
		if text := m.plain(r); text == "" || strings.Contains(text, "|end|") {
			t.Fatalf("request %d reads %q", r.id, text)
		}
	}
	if tokens < 1000 || dropped < 300 {
		t.Fatalf("%d tokens, %d dropped: the session is too short to tell", tokens, dropped)
	}
}

// Memory is bounded by what is kept of finished requests.
func TestBoundedMemory(t *testing.T) {
	cfg := synth.Paper()
	cfg.N, cfg.Tokens = 32, 3000
	c := synth.New(cfg)
	m := New(infoOf(2), theme.New(theme.Options{}))
	for c.Now() < 70e9 {
		m.Add(c.Until(c.Now() + 1e9))
		Text(m, 120, 36, c.Now(), true)
		m.note(eventLine{text: "an event " + num(uint64(c.Now()))})
	}
	active := 0
	for _, r := range m.reqs {
		if len(r.tokens) > maxTokens || len(r.flow.rows) > maxRows {
			t.Errorf("request %d keeps %d tokens, %d rows", r.id, len(r.tokens), len(r.flow.rows))
		}
		if r.state != finished {
			active++
		} else if r.len() != 3001 || r.gone == 0 {
			t.Errorf("request %d had %d tokens, %d are gone", r.id, r.len(), r.gone)
		}
	}
	kept := 0
	for _, r := range m.done {
		kept += len(r.tokens)
	}
	if len(m.done) < 32 || len(m.done) > keptFinished || kept != m.sum || m.sum > keptTokens || len(m.reqs) != len(m.done)+active {
		t.Errorf("%d finished requests with %d tokens (counted %d), %d known, %d active", len(m.done), kept, m.sum, len(m.reqs), active)
	}
	if len(m.events) > keptEvents || len(m.slots) > cfg.N {
		t.Errorf("%d events, %d places", len(m.events), len(m.slots))
	}
}

// A lower concurrency takes places away, a higher one adds them; running
// requests keep theirs.
func TestPlaces(t *testing.T) {
	m, c := session(synth.Paper(), theme.New(theme.Options{}))
	where := map[event.ReqID]int{}
	for range 200 {
		m.Add(c.Until(c.Now() + 50e6))
		now := map[event.ReqID]int{}
		for i, r := range m.shownSlots() {
			now[r.id] = i
			if at, ok := where[r.id]; ok && at != i {
				t.Fatalf("request %d moved from place %d to %d", r.id, at, i)
			}
		}
		where = now
	}
	if len(m.slots) != 4 {
		t.Errorf("%d places for 4 requests", len(m.slots))
	}
	s := m.status
	s.Concurrency = 2
	m.SetStatus(s)
	m.slots[3].state = finished
	if got := len(m.shownSlots()); got != 3 {
		t.Errorf("%d places at concurrency 2 with 3 requests left", got)
	}
}

// Tokens behind a stop are cut where Finish says so.
func TestFinishCuts(t *testing.T) {
	m := New(infoOf(2), theme.New(theme.Options{}))
	add := func(core event.Peer, cmd event.Command) {
		m.Add([]tape.Record{{Core: core, Kind: tape.KindCommand, Command: &cmd}})
	}
	m.Add([]tape.Record{{Kind: tape.KindEvent, Event: &event.Event{Kind: event.Arrive, Req: 1, Arrival: &event.Arrival{Prompt: make([]event.Token, 5)}}}})
	ids := synth.Tokens("The answer")
	for i, id := range ids {
		add(event.Peer(i%2), event.Command{Kind: event.Emit, Req: 1, Pos: 5 + i, Token: id})
	}
	r := m.reqs[1]
	r.tail(flowKey{width: 20, theme: m.theme}, 3, 2)
	add(0, event.Command{Kind: event.Finish, Req: 1, N: 5 + 2})
	if r.len() != 2 || r.byRole[0] != 1 || r.byRole[1] != 1 || r.state != finished {
		t.Errorf("after the cut: %d tokens, %v", r.len(), r.byRole)
	}
	if rows := r.tail(flowKey{width: 20, theme: m.theme}, 3, 2); len(rows) != 1 || rows[0].W != 7 {
		t.Errorf("the rows still show %+v", rows)
	}
	add(1, event.Command{Kind: event.Emit, Req: 1, Pos: 9, Token: 1})
	if r.len() != 2 {
		t.Error("a token after the end was taken")
	}
}

// Records of other cores, unknown requests and empty payloads change nothing.
func TestStrayRecords(t *testing.T) {
	m := New(infoOf(2), theme.New(theme.Options{}))
	var recs []tape.Record
	for _, core := range []event.Peer{-1, 0, 1, 7} {
		for kind := range event.Kind(12) {
			recs = append(recs, tape.Record{Core: core, Kind: tape.KindEvent, Event: &event.Event{Kind: kind, Req: 9}})
		}
		for kind := range event.CmdKind(14) {
			recs = append(recs, tape.Record{Core: core, Kind: tape.KindCommand, Command: &event.Command{Kind: kind, Req: 8}})
		}
		for kind := range tape.Kind(6) {
			recs = append(recs, tape.Record{Core: core, Kind: kind})
		}
		recs = append(recs, tape.Record{Core: core, Kind: tape.KindEvent, Event: &event.Event{Kind: event.StepDone, Step: &event.StepResult{Batch: 3, Rows: []event.RowResult{{Req: 77}, {Req: 8}}}}})
	}
	m.Add(recs)
	check(t, Text(m, 120, 36, 1e9, false), 120, 36)
}

// Characters whose bytes come in two tokens are shown once they are whole.
func TestSplitCharacters(t *testing.T) {
	m := New(infoOf(2), theme.New(theme.Options{}))
	m.Add([]tape.Record{{Kind: tape.KindEvent, Event: &event.Event{Kind: event.Arrive, Req: 1}}})
	m.info.EOS = nil
	const want = "日本 ёж 👍 \u00e9!"
	m.info.Text = func(id event.Token) []byte { return []byte(want)[id : id+1] }
	for i := range len(want) {
		m.Add([]tape.Record{{Core: 0, Kind: tape.KindCommand, Command: &event.Command{Kind: event.Emit, Req: 1, Pos: i, Token: event.Token(i)}}})
	}
	got := ""
	for _, tok := range m.reqs[1].tokens {
		got += tok.text
	}
	if got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
	if text, ok := m.CopyText(false); !ok || text != want {
		t.Errorf("copied as %q", text)
	}
}
