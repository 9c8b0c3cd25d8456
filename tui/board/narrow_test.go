package board

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"tokenrouter/runtime/event"
	"tokenrouter/tui/internal/synth"
	"tokenrouter/tui/theme"
)

// The head names every model or a part of every one, and what follows them.
func TestHeadNamesEveryModel(t *testing.T) {
	for _, cfg := range []synth.Config{synth.Paper(), triple()} {
		info := infoOf(len(cfg.Steps))
		for i := range info.Models {
			info.Models[i].Name = "模型 " + strings.Repeat("a name of a file ", 9)
		}
		m := New(info, theme.New(theme.Options{}))
		m.SetStatus(statusOf(cfg))
		for _, w := range []int{130, 160, 200} {
			head, _, _ := strings.Cut(Text(m, w, 40, 0, true), "\n")
			want := []string{"r2r.lua@", "closed loop", "paced", "rec"}
			for i := range info.Models {
				want = append(want, event.Role(event.Peer(i), len(cfg.Steps))+" 模型 a")
			}
			for _, text := range want {
				if !strings.Contains(head, text) {
					t.Errorf("%d columns: no %q in %q", w, text, head)
				}
			}
		}
	}
}

// In whatever room a card has, a number stands there whole and with its unit, or
// not at all.
func TestNarrowCardsCutNothing(t *testing.T) {
	m, c := session(triple(), theme.New(theme.Options{Profile: colorprofile.NoTTY}))
	Text(m, 160, 50, c.Now(), true) // takes the figures
	for _, ms := range []float64{0, 6, 27.94, 99.96, 128.34, 999.7, 12345.6} {
		for p := range m.cores {
			m.figs.snap.Peers[p].StepMs = ms
			m.cores[p].seen.rows = 32
		}
		m.cores[0].seen.load.Pending = 32
		torn := regexp.MustCompile(`[a-z]\d`)
		for p := range m.figs.rates {
			r := &m.figs.rates[p]
			r.rows, r.committed, r.dropped = 98765, 98765, 98765
		}
		for w := 15; w <= 120; w++ {
			work := m.workLine(0, w).S
			if rest := strings.ReplaceAll(work, "98765", ""); strings.ContainsAny(rest, "0123456789") || torn.MatchString(work) {
				t.Errorf("%d cells: %q", w, work)
			}
		}
		for w := 15; w <= 120; w++ {
			for p := range event.Peer(3) {
				batch := m.batchLine(p, w).S
				if !strings.Contains(batch, " ms") && !strings.Contains(batch, " s") {
					t.Errorf("%.1f ms in %d cells: %q", ms, w, batch)
				}
				if idle := m.timeLine(p, w, false).S; strings.Contains(idle, "idle") && !strings.HasSuffix(idle, "%") {
					t.Errorf("%d cells: %q", w, idle)
				}
			}
			if queue := m.queueLine(0, w).S; !strings.Contains(queue, "32") || !strings.Contains(queue, ">32") && !strings.Contains(queue, "pending") {
				t.Errorf("%d cells: %q", w, queue)
			}
		}
	}
}
