package board

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
	"tokenrouter/tui/theme"
)

// Under a router that holds tokens back and takes some back, a request shows the
// tokens that its client got and no other, each with the row that drew it and the
// model that wrote it, though another emitted it. What was taken back stands at
// its position as a candidate that is no token.
func TestTokensTakenBackAreNoText(t *testing.T) {
	recs, out, err := tapetest.Run(tapetest.Config{Requests: 30, Seed: 5, Hold: 4})
	if err != nil {
		t.Fatal(err)
	}
	m := New(infoOf(2), theme.New(theme.Options{}))
	m.Add(recs)
	wrote := map[event.ReqID]map[int]event.Peer{}
	for i := range recs {
		if r := &recs[i]; r.Kind == tape.KindCommand && r.Command.Kind == event.Emit {
			if wrote[r.Command.Req] == nil {
				wrote[r.Command.Req] = map[int]event.Peer{}
			}
			wrote[r.Command.Req][r.Command.Pos] = r.Writer()
		}
	}
	tokens, taken, cuts, emitted := 0, 0, 0, 0
	for id, r := range m.reqs {
		if len(r.tokens) != len(out.Text[id]) {
			t.Fatalf("request %d shows %d tokens of %d", id, len(r.tokens), len(out.Text[id]))
		}
		for i := range r.tokens {
			tok := &r.tokens[i]
			pos := r.prompt + i
			if tok.id != out.Text[id][i] || tok.writer != wrote[id][pos] {
				t.Fatalf("request %d shows %d by %d at %d, the client got %d by %d", id, tok.id, tok.writer, pos, out.Text[id][i], wrote[id][pos])
			}
			if by := tok.by; by.row == nil || by.row.Output.Token != tok.id || by.core != tok.writer || by.pos != pos {
				t.Fatalf("request %d position %d has the row %+v", id, pos, by)
			}
			if tok.by.emitted < pos {
				emitted++
			}
			for _, d := range tok.drops {
				if d.pos > pos || d.taken != (d.row.Action == event.Keep) {
					t.Fatalf("request %d position %d: dropped %+v", id, pos, d)
				}
				if d.taken {
					taken++
				}
				if d.row.Action == event.Truncate {
					cuts++
				}
			}
			tokens++
		}
	}
	if tokens < 300 || taken < 20 || cuts < 20 || emitted < 100 {
		t.Errorf("%d tokens, %d taken back by %d decisions, %d held back; the test has lost its sense", tokens, taken, cuts, emitted)
	}
}
