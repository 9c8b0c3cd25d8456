package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/app"
	"tokenrouter/tui/board"
	"tokenrouter/tui/theme"
)

// stateful decides by what it remembers, by what the hand-off brought, by r.first,
// r.is_prefill and by a knob. Before every return it notes its line in r.state, so that the
// recorded state after a decision tells which line made it: the next one.
const stateful = `local every = param("every", { default = 3, min = 2, max = 9 })
local function at(r, line)
  local n = (r.state and r.state.n or 0) + 1
  r.state = { n = n, line = "<" .. line .. ">" }
  return n
end
function route(r)
  if r.model == "large" then
    if r.fields and r.fields.odd then at(r, 9)
      return HOME end -- 10
    at(r, 11)
    return HOME -- 12
  end
  if r.first and r.is_prefill then at(r, 14)
    return STAY end -- 15
  local n = r.state and r.state.n or 0
  if r.step > 1 and n % every() == 0 then at(r, 17)
    return to("large"), DROP end -- 18
  at(r, 19)
  return STAY -- 20
end
function send(req, dest)
  return { fields = { odd = req.pos % 2 == 1 } }
end
`

var explainedLine = regexp.MustCompile(`^stateful\.lua:(\d+)  `)

// The line that the closer look shows is the one that decided, also for a router
// that remembers, asks for the hand-off's fields, and whose knob has moved since.
func TestExplainTellsTheLineThatDecided(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stateful.lua")
	if err := os.WriteFile(file, []byte(stateful), 0o600); err != nil {
		t.Fatal(err)
	}
	var c cli
	parser, err := kong.New(&c, words())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"board", "--models", "tiny-37k,tiny-114k", "--router", file, "--clock", "live", "--no-record", "-n", "3", "--chunk", "7", "--max-tokens", "40"}); err != nil {
		t.Fatal(err)
	}
	cluster, err := c.Board.build(work{limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	screen := &screenRuntime{cluster: cluster}
	defer func() {
		if err := screen.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	sub := screen.Tape().Subscribe()
	m := board.New(screen.Info(), theme.New(theme.Options{}))
	seen := map[string]int{}
	m.Explain = func(d app.Decided) string {
		said := screen.Explain(d)
		got := explainedLine.FindStringSubmatch(said)
		if got == nil {
			t.Fatalf("request %d position %d at %d: %q", d.Row.Req, d.Pos, d.Core, said)
		}
		if line, _ := strconv.Atoi(got[1]); !strings.Contains(string(d.Row.State), fmt.Sprintf("<%d>", line-1)) {
			t.Fatalf("request %d position %d at %d: said %q, the state after it is %q", d.Row.Req, d.Pos, d.Core, said, d.Row.State)
		}
		seen[got[1]]++
		return said
	}
	cluster.runtime.Start()
	<-cluster.runtime.Done()
	m.Add(sub.Next(nil, 0))
	if err := screen.SetKnob("every", 7); err != nil {
		t.Fatal(err)
	}
	for id := event.ReqID(1); id <= 9; id++ {
		if !m.Inspect(id) {
			t.Fatalf("request %d is not known", id)
		}
		m.Edge(false)
		for range 40 {
			board.Text(m, 120, 40, screen.Now(), true)
			m.Step(1)
		}
	}
	for _, line := range []string{"10", "12", "15", "18", "20"} {
		if seen[line] < 9 {
			t.Errorf("line %s decided %d times: the test is too short to tell; %v", line, seen[line], seen)
		}
	}
}
