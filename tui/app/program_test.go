package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"tokenrouter/runtime/guard"
	"tokenrouter/tui/internal/synth"
)

// colour is a terminal that can show everything.
var colour = []string{"TERM=xterm-256color", "COLORTERM=truecolor", "TTY_FORCE=1"}

func TestProgramShowsTheBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 120, 36, synth.Paper(), Config{Environ: colour})
		text := s.text(12 * time.Second)
		s.has(text, "tok/s", "small tiny-37k", "large tiny-3.7m", "threshold", "over the last 10 s", "space pause", "? help  q quit")
		if s.emu.IsAltScreen() != true {
			t.Error("not on the alternate screen")
		}
		for y, l := range strings.Split(text, "\n") {
			if n := len([]rune(l)); n > 120 {
				t.Errorf("row %d is %d wide", y, n)
			}
		}
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		if s.fake.closed != 1 {
			t.Errorf("the session was closed %d times", s.fake.closed)
		}
	})
}

// The frame behind a key shows what it did.
func TestKeysChangeTheNextFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 160, 50, synth.Paper(), Config{Environ: colour})
		s.text(3 * time.Second)
		for _, step := range []struct {
			keys string
			want []string
		}{
			{" ", []string{"PAUSED", "space go on"}},
			{" ", []string{"space pause"}},
			{"l", []string{"0.51"}},
			{"L", []string{"0.61"}},
			{"\x1b[D", []string{"0.6 "}},
			{"H", []string{"0.5 "}},
			{"P", []string{"policy look-ahead", "look-ahead  B  small - ▸large -"}},
			{"P", []string{"policy lock-step", "lock-step  B  small "}},
			{"P", []string{"policy eager", "eager  B  small 1 ▸large 1"}},
			{"P", []string{"policy fixed, B 1,3", "fixed  B  small 1 ▸large 3"}},
			{"P", []string{"policy table", "table  B  small 1 ▸large 3"}},
			{"}", []string{"▸large 4", "policy fixed, B 1,4 in place of table; P goes through the policies"}},
			{"{", []string{"▸large 3", "policy fixed, B 1,3"}},
			{"p", []string{"predicted", "lock-step", "B*: +", "notes of the plan", "esc back"}},
			{"p", []string{"▸large 3"}},
			{"B", []string{"▸small 1", "{/} B small"}},
			{"{", []string{"lower B is off: 1 is the least"}},
			{"]", []string{"N 5 closed loop"}},
			{"[", []string{"N 4 closed loop"}},
			{"+", []string{"×2"}},
			{"--", []string{"×0.5"}},
			{"c", []string{"live", "-/+ speed (paced only)"}},
			{"+", []string{"faster is off: live runs as fast as it can"}},
			{"c", []string{"paced a100-r2r"}},
			{"n", []string{"rstitch.lua", "knobs  rstitch.lua"}},
			{"N", []string{"knobs  r2r.lua"}},
			{"\t", []string{"▸ requests"}},
			{"j", []string{"▸#1"}},
			{"\t", []string{"▸ events"}},
			{"?", []string{"next router rstitch.lua, previous me.lua", "off: lower B: 1 is the least", "underlined", "esc back"}},
			{"\x1b", []string{"▸ events"}},
			{"x", []string{"export the session so far", "JSONL, a row per token", "perfetto"}},
			{"j", []string{"exported to " + s.fake.dir + "/export.jsonl"}},
			{"y", []string{"bytes, to the terminal's clipboard (OSC 52); also in " + s.fake.dir + "/copy.txt"}},
			{"\r", []string{"request #1", "position", "entropy", `r2r.lua:7  return to("large"), KEEP`, "n/N next switch"}},
			{"h", []string{"position"}},
			{"\x1b", []string{"▸ events", "enter inspect"}},
		} {
			text := s.press(step.keys)
			s.has(text, step.want...)
			if t.Failed() {
				t.Fatalf("after the key %q", step.keys)
			}
		}
		if raw, _ := s.sent(); !strings.Contains(raw, "\x1b]52;c;") {
			t.Error("nothing was sent to the clipboard")
		}
		if _, err := os.Stat(filepath.Join(s.fake.dir, "copy.txt")); err != nil {
			t.Error(err)
		}
		s.stop()
	})
}

// case J15: Esc answers within 100 ms: the reader waits for the rest of a
// sequence, then the next frame shows what it did. Under the clock of the test
// the wait is over exactly when it ends and is taken twice.
func TestEscIsQuick(t *testing.T) {
	if uv.DefaultEscTimeout+frameTime >= 100*time.Millisecond {
		t.Errorf("Esc waits for %v and a frame", uv.DefaultEscTimeout)
	}
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 100, 30, synth.Paper(), Config{Environ: colour})
		s.text(time.Second)
		s.has(s.press("?"), "esc back")
		if _, err := s.in.Write([]byte("\x1b")); err != nil {
			t.Fatal(err)
		}
		s.has(s.text(2*uv.DefaultEscTimeout+frameTime), "space pause")
		s.stop()
	})
}

// case J1: a window that is too small says so, and q works.
func TestTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 24, 6, synth.Paper(), Config{Environ: colour})
		s.has(s.text(time.Second), "window 24×6", "needs 60×16", "q quits")
		began := time.Now()
		s.press("q")
		if err := <-s.done; err != nil || time.Since(began) > time.Second {
			t.Errorf("quit after %v: %v", time.Since(began), err)
		}
		s.stop()
	})
}

func TestQuitClosesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 100, 30, synth.Paper(), Config{Environ: colour})
		s.text(time.Second)
		s.press("q")
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		s.stop()
		if s.fake.closed != 1 {
			t.Errorf("closed %d times", s.fake.closed)
		}
	})
}

// A session that does not close holds the terminal no longer than a second, and
// a second q not at all.
func TestQuitDoesNotHang(t *testing.T) {
	for _, keys := range []string{"q", "qq"} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 100, 30, synth.Paper(), Config{Environ: colour})
			s.fake.stuck = true
			s.text(time.Second)
			began := time.Now()
			if keys == "q" {
				s.has(s.press("q"), "closing the session")
			} else {
				s.press("q")
				s.press("q")
			}
			err := <-s.done
			if took := time.Since(began); took > 1200*time.Millisecond {
				t.Errorf("%q: quit after %v", keys, took)
			}
			if err == nil && s.fake.closed != 1 {
				t.Errorf("%q: closed %d times", keys, s.fake.closed)
			}
			s.stop()
		})
	}
}

// case J2: a panic while drawing, in a command or in a goroutine of the runtime
// restores the terminal, writes a crash file and closes the session.
func TestPanics(t *testing.T) {
	for name, keys := range map[string]string{"screen draw": "\r", "export": "xj", "decode loop": ""} {
		synctest.Test(t, func(t *testing.T) {
			g := guard.New(t.TempDir())
			kill := func() {}
			s := start(t, 100, 30, synth.Paper(), Config{
				Environ: colour,
				Go:      func(name string, fn func()) { g.Go(name, nil, fn) },
				Do:      func(name string, fn func()) { g.Do(name, nil, fn) },
				Started: func(restore func()) { kill = restore },
			})
			g.AddHook(func(guard.Crash) {
				kill()
				s.kill()
			})
			s.text(time.Second)
			s.fake.explode = true
			if keys == "" {
				g.Go(name, nil, func() { panic("decoded too much") })
			}
			for _, k := range keys {
				s.press(string(k))
			}
			s.stop()
			if err := <-s.done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			crash, ok := g.First()
			if !ok || crash.Name != name || !strings.HasSuffix(fmt.Sprint(crash.Value), "too much") {
				t.Errorf("%s: the crash is %v", name, crash)
			}
			if _, err := os.Stat(crash.File); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			raw, _ := s.sent()
			if s.emu.IsAltScreen() || strings.LastIndex(raw, "\x1b[?25h") < strings.LastIndex(raw, "\x1b[?25l") {
				t.Errorf("%s: the terminal is not restored: %q", name, raw[max(len(raw)-200, 0):])
			}
			if s.fake.closed != 1 {
				t.Errorf("%s: the session was closed %d times", name, s.fake.closed)
			}
		})
	}
}

// The end of the context ends the screen and closes the session.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 100, 30, synth.Paper(), Config{Environ: colour})
		s.text(time.Second)
		s.kill()
		if err := <-s.done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if s.fake.closed != 1 {
			t.Errorf("closed %d times", s.fake.closed)
		}
		s.stop()
	})
}

// case J6: NO_COLOR leaves attributes, a dumb terminal or a pipe nothing.
func TestNoColour(t *testing.T) {
	for _, c := range []struct {
		env       []string
		underline bool
	}{
		{[]string{"TERM=xterm-256color", "NO_COLOR=1", "TTY_FORCE=1"}, true},
		{[]string{"TERM=dumb"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 100, 30, synth.Paper(), Config{Environ: c.env})
			text := s.text(2 * time.Second)
			raw, _ := s.sent()
			if strings.Contains(raw, "38;") || strings.Contains(raw, "48;") {
				t.Errorf("%v: colours are sent", c.env)
			}
			if c.underline != strings.Contains(raw, "\x1b[4m") {
				t.Errorf("%v: underlines %v", c.env, !c.underline)
			}
			if !c.underline && !strings.Contains(text, "[") {
				t.Errorf("%v: tokens have no mark:\n%s", c.env, text)
			}
			s.stop()
		})
	}
}

// case J4: in a pause nothing is drawn.
func TestNothingIsDrawnInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 120, 40, synth.Paper(), Config{Environ: colour})
		s.text(3 * time.Second)
		s.press(" ")
		s.text(time.Second)
		before, _ := s.sent()
		s.text(10 * time.Second)
		if after, _ := s.sent(); len(after) != len(before) {
			t.Errorf("in ten seconds of pause %q was sent", after[len(before):])
		}
		s.stop()
	})
}

// A terminal that does not take what is sent loses frames and no records.
func TestSlowScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(t.TempDir(), synth.Paper())
		a, err := New(fake, Config{})
		if err != nil {
			t.Fatal(err)
		}
		go fake.work()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		frames, stuck := 0, make(chan struct{})
		a.feed(ctx, func(tea.Msg) { frames++; <-stuck }, &wg)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		close(fake.stop)
		time.Sleep(2 * frameTime)
		synctest.Wait()
		if got, want := a.board.Seq(), fake.tape.Seq(); got != want || want < 10_000 || frames != 1 {
			t.Errorf("%d of %d records are folded, %d frames were asked for", got, want, frames)
		}
		close(stuck)
		cancel()
		wg.Wait()
	})
}

// At most 30 frames a second are sent, however fast records come.
func TestFramesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 120, 36, synth.Paper(), Config{Environ: colour})
		s.text(2 * time.Second)
		_, before := s.sent()
		s.text(5 * time.Second)
		_, after := s.sent()
		if n := after - before; n < 5*20 || n > 5*fps+2 {
			t.Errorf("%d writes in five seconds", n)
		}
		s.stop()
	})
}

func TestLightTheme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 100, 30, synth.Paper(), Config{Environ: colour, Theme: "light", Palette: "deuteranopia"})
		s.text(2 * time.Second)
		if raw, _ := s.sent(); !strings.Contains(raw, "38;2;0;95;153") {
			t.Error("the small model's colour on light is not sent")
		}
		s.stop()
	})
}

func TestConfigIsChecked(t *testing.T) {
	fake := newFake(t.TempDir(), synth.Paper())
	for _, c := range []Config{{Theme: "pink"}, {Palette: "rainbow"}} {
		if _, err := New(fake, c); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
