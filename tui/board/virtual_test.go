package board

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"tokenrouter/runtime/tape"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// virtualSession is a session in virtual time with drawn tokens.
func virtualSession(speed, reached float64) (*Model, *synth.Cluster) {
	cfg := synth.Paper()
	c := synth.New(cfg)
	info := infoOf(2)
	info.Tokens = "drawn"
	m := New(info, theme.New(theme.Options{}))
	s := statusOf(cfg)
	s.Clock, s.Speed, s.Reached, s.Wall = "sim", speed, reached, int64(3*time.Second)
	m.SetStatus(s)
	recs := c.Until(23e9)
	for i := range recs {
		if r, ok := recs[i].Host.(*tape.Result); ok {
			unchecked := *r
			unchecked.Checked, unchecked.Correct = false, false
			recs[i].Host = &unchecked
		}
	}
	m.Add(recs)
	return m, c
}

// A board in virtual time says what clock it has, who writes, how much virtual
// time passed in how much of ours, and when this machine does not keep up. What
// does not apply is left out, not shown as 0.
func TestVirtualBoard(t *testing.T) {
	for _, c := range []struct {
		speed, reached float64
		want           []string
		not            []string
	}{
		{1000, 997, []string{"×1000", "goes ×997"}, []string{"reaches", "asked for"}},
		{1000, 204, []string{"×1000 reaches ×204", "goes ×204 of ×1000 asked for: this machine is the limit"}, nil},
		{0, 204, []string{"as fast as it can", "goes ×204"}, []string{"reaches", "asked for"}},
		{1, 0, nil, []string{"×1", "   goes", "reaches"}},
	} {
		m, cl := virtualSession(c.speed, c.reached)
		for _, size := range [][2]int{{160, 50}, {120, 36}} {
			text := Text(m, size[0], size[1], cl.Now(), true)
			for _, want := range append(c.want, "sim a100-r2r", "drawn tokens", "virtual time 00:22 in 00:03 here") {
				if !strings.Contains(text, want) {
					t.Errorf("speed %g, reached %g at %v: no %q on\n%s", c.speed, c.reached, size, want, text)
				}
			}
			for _, not := range append(c.not, "right", "cpu", "gpu", "late") {
				if strings.Contains(text, not) {
					t.Errorf("speed %g, reached %g at %v: %q on\n%s", c.speed, c.reached, size, not, text)
				}
			}
		}
	}
	m, cl := virtualSession(1000, 204)
	if text := Text(m, 80, 24, cl.Now(), true); !strings.Contains(text, "sim ×1000 reaches ×204") {
		t.Errorf("80 columns do not tell the speed:\n%s", text)
	}
}

// Session time that has not been read from the tape yet is no time without
// tokens: the board is of its newest record.
func TestVirtualBoardIsOfWhatItHasRead(t *testing.T) {
	m, cl := virtualSession(0, 1000)
	want := Text(m, 120, 36, cl.Now(), true)
	if rate := m.figs.snap.TokensPerS; rate < 150 {
		t.Fatalf("%v tok/s", rate)
	}
	if got := Text(m, 120, 36, cl.Now()+int64(time.Hour), true); got != want {
		t.Errorf("an hour ahead of the records:\n%s\nwant\n%s", got, want)
	}
}

// Answers to keys stay for a while of our time, however fast the virtual one
// goes, and figures change as often as can be read.
func TestVirtualBoardKeepsOurTime(t *testing.T) {
	m, cl := virtualSession(1000, 1000)
	at := func(wall time.Duration) string {
		s := m.Status()
		s.Wall = int64(wall)
		m.SetStatus(s)
		m.Add(cl.Until(cl.Now() + 10e9))
		return Text(m, 120, 36, cl.Now(), true)
	}
	m.Say("said to you", false)
	at(3 * time.Second)
	looked := m.figs.at
	if text := at(3100 * time.Millisecond); m.figs.at != looked || !strings.Contains(text, "said to you") {
		t.Errorf("after a tenth of a second the figures are of %v, not of %v:\n%s", m.figs.at, looked, text)
	}
	if text := at(8 * time.Second); m.figs.at == looked || !strings.Contains(text, "said to you") {
		t.Errorf("after 5 s:\n%s", text)
	}
	if text := at(12 * time.Second); strings.Contains(text, "said to you") {
		t.Errorf("after 9 s:\n%s", text)
	}
}

// A column of the chart stands for more where virtual time goes fast.
func TestColumnSpan(t *testing.T) {
	m, _ := virtualSession(1, 1)
	for _, c := range []struct {
		clock string
		speed float64
		now   time.Duration
		want  time.Duration
	}{
		{"paced", 16, time.Hour, time.Second},
		{"sim", 1, time.Hour, time.Second},
		{"sim", 4, time.Hour, time.Second},
		{"sim", 8, time.Hour, 2 * time.Second},
		{"sim", 32, time.Hour, 10 * time.Second},
		{"sim", 1000, time.Second, 20 * time.Second},
		{"sim", 0, 50 * time.Second, time.Second},
		{"sim", 0, 100 * time.Second, 2 * time.Second},
		{"sim", 0, time.Hour, 20 * time.Second},
	} {
		s := m.Status()
		s.Clock, s.Speed, s.Reached = c.clock, c.speed, c.speed
		m.SetStatus(s)
		if got := m.columnSpan(int64(c.now), 50); got != c.want {
			t.Errorf("%s at speed %g after %v: %v, want %v", c.clock, c.speed, c.now, got, c.want)
		}
	}
}

// The open loop stands in the header in place of the closed one.
func TestHeaderTellsArrivals(t *testing.T) {
	m, cl := virtualSession(1, 1)
	m.info.Arrivals = "poisson:2.5"
	if text := Text(m, 120, 36, cl.Now(), true); !strings.Contains(text, "poisson:2.5") || strings.Contains(text, "closed loop") {
		t.Error(text)
	}
}

// Where nobody can read along texts change with the figures; keys and slow speeds
// see the newest.
func TestFastTextsStandStill(t *testing.T) {
	for _, c := range []struct {
		speed float64
		still bool
	}{{0, true}, {1000, true}, {8, true}, {4, false}} {
		m, cl := virtualSession(c.speed, c.speed)
		pane := func(wall time.Duration) string {
			s := m.Status()
			s.Wall = int64(wall)
			m.SetStatus(s)
			m.Add(cl.Until(cl.Now() + 2e8))
			_, text, _ := strings.Cut(ansi.Strip(frameText(m, cl.Now())), " requests ")
			text, _, _ = strings.Cut(text, "knobs")
			return text
		}
		first := pane(3 * time.Second)
		if again := pane(3100 * time.Millisecond); (again == first) != c.still {
			t.Errorf("speed %g, a tenth of a second on:\n%s\nwas\n%s", c.speed, again, first)
		}
		if later := pane(3400 * time.Millisecond); later == first {
			t.Errorf("speed %g: it stands for ever:\n%s", c.speed, later)
		}
		m.UI.Focus = FocusRequests
		was := m.figs.at
		if picked := pane(3450 * time.Millisecond); m.figs.at != was || !strings.Contains(picked, "\n▸") && !strings.HasPrefix(picked, "▸") {
			t.Errorf("speed %g: no pick:\n%s", c.speed, picked)
		}
	}
}
