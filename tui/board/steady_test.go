package board

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// hosts adds records of the host.
func hosts(m *Model, at int64, hs ...tape.Host) {
	for _, h := range hs {
		m.Add([]tape.Record{{Kind: tape.KindHost, Core: -1, At: at, Seq: m.seq + 1, Host: h}})
	}
}

// What is shown adds up, and is never off by one or more: tokens by role to those
// of all, and what became of rows to the rows.
func TestWholesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := metrics.Snapshot{}
		rate := rapid.Float64Range(0, 5000)
		for range rapid.IntRange(1, 3).Draw(t, "peers") {
			p := metrics.PeerSnapshot{CommittedPerS: rate.Draw(t, "committed"), DroppedPerS: rate.Draw(t, "dropped")}
			p.RowsPerS = p.CommittedPerS + p.DroppedPerS
			s.TokensPerS += p.CommittedPerS
			s.Peers = append(s.Peers, p)
		}
		sum := 0
		for i, n := range wholes(&s) {
			sum += n.committed
			if off := float64(n.committed) - s.Peers[i].CommittedPerS; math.Abs(off) >= 1 || n.rows != n.committed+n.dropped {
				t.Fatalf("%+v shown as %+v", s.Peers[i], n)
			}
		}
		if sum != int(math.Round(s.TokensPerS)) {
			t.Fatalf("%+v shown as %+v", s.Peers, wholes(&s))
		}
	})
}

// What a person moves in many steps is one line, also where minutes of virtual
// time pass between two of them.
func TestMovesAreOneLine(t *testing.T) {
	m, _ := virtualSession(1000, 1000)
	wall := m.Status().Wall
	step := func(after time.Duration, h tape.Host) {
		wall += int64(after)
		s := m.Status()
		s.Wall = wall
		m.SetStatus(s)
		hosts(m, m.latest+int64(after)*1000, h)
	}
	last := func() string { return m.events[len(m.events)-1].text }
	before := len(m.events)
	for _, x := range [][2]string{{"1", "2"}, {"2", "4"}, {"4", "unbounded"}} {
		step(time.Second, &tape.Setting{Setting: "speed", Old: x[0], New: x[1]})
	}
	if last() != "speed 1 -> unbounded" || len(m.events) != before+1 {
		t.Errorf("%d lines, the newest %q", len(m.events)-before, last())
	}
	for v := 1; v < 5; v++ {
		m.note(eventLine{at: m.latest, level: tape.Info, text: "what the plan says now", moved: "plan"})
		step(time.Second, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: float64(v), New: float64(v + 1)})
	}
	if last() != "knob threshold 1 -> 5" || len(m.events) != before+6 {
		t.Errorf("%d lines, the newest %q", len(m.events)-before, last())
	}
	step(6*time.Second, &tape.Knob{Router: "r2r.lua", Knob: "threshold", Old: 5, New: 6})
	if last() != "knob threshold 5 -> 6" {
		t.Errorf("another move: %q", last())
	}
}

// Columns follow what is reached where that is far less than what is asked for,
// but not every tremble of it.
func TestColumnSpanOfASlowMachine(t *testing.T) {
	m, _ := virtualSession(1000, 0)
	for _, c := range []struct {
		reached float64
		want    time.Duration
	}{{0, 20}, {1, 1}, {1.2, 1}, {5, 1}, {0, 1}, {5.9, 1}, {30, 10}, {20, 10}, {8, 10}, {52, 10}, {400, 20}, {900, 20}, {3, 1}} {
		s := m.Status()
		s.Reached = c.reached
		m.SetStatus(s)
		if m.figs.span = m.columnSpan(int64(time.Hour), 50); m.figs.span != c.want*time.Second {
			t.Errorf("reached %g: %v, want %v s", c.reached, m.figs.span, int(c.want))
		}
	}
}

// A request that has text does not wait any more, however seldom one looks.
func TestAdmittedIsSeenAtOnce(t *testing.T) {
	r := &request{byRole: make([]int, 2), state: waiting}
	if r.look(2).state != waiting {
		t.Fatal("it waits")
	}
	r.enter(running, event.Front, 1)
	if got := r.look(2).state; got != running {
		t.Errorf("state %d", got)
	}
	r.enter(inFlight, 1, 2)
	if got := r.look(2).state; got != running {
		t.Errorf("state %d: hand-offs are seen with the next look", got)
	}
}

// KV that is given back at a hand-off is no want of KV.
func TestResubmitIsNoWant(t *testing.T) {
	m, c := newModel(t, synth.Paper())
	command := func(p event.Peer, cmd event.Command) {
		m.Add([]tape.Record{{Kind: tape.KindCommand, Core: p, At: c.Now(), Seq: m.seq + 1, Command: &cmd}})
	}
	short := func() int {
		n := 0
		for _, e := range m.events {
			if strings.Contains(e.text, "is short") {
				n += e.count
			}
		}
		return n
	}
	command(0, event.Command{Kind: event.Preempt, Req: 1, N: 40})
	command(1, event.Command{Kind: event.RunBatch}) // of another core, in between
	command(0, event.Command{Kind: event.SendPeer, Req: 1, To: 1})
	if short() != 0 || !m.resubmits {
		t.Errorf("%d warnings; %+v", short(), m.events)
	}
	command(0, event.Command{Kind: event.Preempt, Req: 2, N: 40})
	command(0, event.Command{Kind: event.Preempt, Req: 3, N: 40})
	command(0, event.Command{Kind: event.RunBatch})
	if short() != 2 {
		t.Errorf("%d warnings of 2", short())
	}
	m.refresh(c.Now(), 50)
	m.figs.snap.Peers[0].Recomputed, m.figs.snap.Peers[0].Preempted = 4321, 7
	if text := ansi.Strip(m.kvLine(0, 56).S); !strings.Contains(text, "recomputed") || !strings.Contains(text, "4321") || strings.Contains(text, "!") {
		t.Errorf("%q", text)
	}
}

// The text of a request that is looked into stays where it is, however long the
// request becomes; otherwise only its end is kept.
func TestInspectedTextStays(t *testing.T) {
	cfg := synth.Paper()
	cfg.Tokens = 3000
	m, c := newModel(t, cfg)
	later(m, c, 10e9)
	r := m.slots[0]
	if r.state == finished || !m.Inspect(r.id) {
		t.Fatalf("request %d: %d tokens", r.id, r.len())
	}
	Text(m, 120, 36, c.Now(), true)
	m.Step(-5)
	Text(m, 120, 36, c.Now(), true)
	in := m.UI.inspect
	at, gone, first := in.cur, r.gone, in.rows[0]
	for r.state != finished {
		later(m, c, 1e9)
		Text(m, 120, 36, c.Now(), true)
	}
	if in.cur != at || r.gone != gone || in.rows[0] != first || r.len() != 3001 {
		t.Errorf("%d of %d tokens are gone, the cursor is at %d (was %d), the first row %+v (was %+v)", r.gone, r.len(), in.cur, at, in.rows[0], first)
	}
	m.Leave()
	r = m.slots[0]
	for r.len() <= 2*maxTokens {
		later(m, c, 1e9)
	}
	if len(r.tokens) > maxTokens {
		t.Errorf("%d tokens are kept of one that nobody looks into", len(r.tokens))
	}
}

// A run whose requests have all been is over, which is no standstill.
func TestTellsTheEnd(t *testing.T) {
	m, c := newModel(t, synth.Paper())
	s := m.Status()
	for _, s.Over = range []bool{false, true} {
		m.SetStatus(s)
		if text := Text(m, 120, 36, c.Now(), true); strings.Contains(text, "done, that was all") != s.Over {
			t.Error(text)
		}
	}
}

// More knobs than lines: it is said which ones stand there, and what the picked
// one is.
func TestManyKnobs(t *testing.T) {
	m, c := newModel(t, synth.Paper())
	s := m.Status()
	s.Knobs = nil
	for i := range 7 {
		s.Knobs = append(s.Knobs, KnobState{Name: fmt.Sprintf("knob_%d", i), Help: fmt.Sprintf("what number %d does", i), Max: 1})
	}
	m.SetStatus(s)
	for i, want := range []string{"1-2 of 7", "1-2 of 7", "2-3 of 7", "3-4 of 7", "4-5 of 7", "5-6 of 7", "6-7 of 7"} {
		m.UI.Knob = i
		says(t, m, c, 120, 36, want, s.Knobs[i].Name, s.Knobs[i].Help)
	}
	m.UI.Knob = 6
	says(t, m, c, 80, 24, "6-7 of 7", "knob_6")
	if text := Text(m, 61, 17, c.Now(), true); strings.Contains(text, "what") {
		t.Errorf("a help of a few letters:\n%s", text)
	}
}

// Seconds are not written as tens of thousands of ms.
func TestLongWaits(t *testing.T) {
	m, c := newModel(t, synth.Paper())
	Text(m, 120, 36, c.Now(), true)
	l := m.line.Start(100)
	m.figs.snap.TTFT = metrics.Quantiles{P50: 47_782, P99: 57_424, N: 9}
	m.figs.snap.ITL = metrics.Quantiles{P50: 6, P99: 9999, N: 9}
	m.putLatency(l)
	if text := ansi.Strip(l.End().S); !strings.Contains(text, "first token p50 47.8  p99 57.4 s   between tokens p50  6.0  p99 9999 ms") {
		t.Errorf("%q", text)
	}
}

func newModel(t *testing.T, cfg synth.Config) (*Model, *synth.Cluster) {
	t.Helper()
	return tabled(cfg, theme.Options{})
}
