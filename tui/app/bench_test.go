//go:build unix

package app

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/tui/internal/synth"
)

// busy is a cluster that commits about 5,000 tokens a second.
func busy() synth.Config {
	return synth.Config{N: 128, P: 0.35, Steps: []int64{4e6, 20e6}, B: []int{1, 1}, Seed: 5}
}

func cpu(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// counter is a terminal that takes everything and tells that it did.
type counter struct {
	n    atomic.Int64
	took chan struct{}
}

func newCounter() *counter { return &counter{took: make(chan struct{}, 1)} }

func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	select {
	case c.took <- struct{}{}:
	default:
	}
	return len(p), nil
}

// after waits until it has taken more than n bytes.
func (c *counter) after(n int64) {
	for c.n.Load() <= n {
		<-c.took
	}
}

// BenchmarkFrame runs the whole program at 30 frames a second in a window of
// 160 by 50 while records come in: cpu-ms/frame is all CPU time of the process,
// folding, View and the renderer together.
func BenchmarkFrame(b *testing.B) {
	for _, load := range []struct {
		name   string
		cfg    synth.Config
		paused bool
		keys   string
	}{{"5000tok", busy(), false, ""}, {"help", busy(), false, "?"}, {"inspect", busy(), false, "\r"}, {"plan", busy(), false, "p"}, {"paper", synth.Paper(), false, ""}, {"paused", synth.Paper(), true, ""}} {
		b.Run(load.name, func(b *testing.B) {
			fake := newFake(b.TempDir(), load.cfg)
			fake.status.Paused = load.paused
			frames := make([][]tape.Record, b.N)
			tokens := 0
			warm := fake.cluster.Until(3e9)
			for i := range frames {
				if !load.paused {
					frames[i] = fake.cluster.Until(3e9 + int64(i+1)*int64(frameTime))
				}
				for j := range frames[i] {
					if c := frames[i][j].Command; c != nil && c.Kind == event.Emit {
						tokens++
					}
				}
			}
			a, err := New(fake, Config{Environ: colour})
			if err != nil {
				b.Fatal(err)
			}
			out := newCounter()
			ctx, cancel := context.WithCancel(context.Background())
			m := newModel(a)
			p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithFPS(fps), tea.WithInput(nil), tea.WithOutput(out), tea.WithWindowSize(160, 50),
				tea.WithColorProfile(colorprofile.TrueColor), tea.WithEnvironment(colour), tea.WithoutSignalHandler())
			done := make(chan struct{})
			go func() { defer close(done); _, _ = p.Run() }()
			p.Send(tea.WindowSizeMsg{Width: 160, Height: 50})
			fake.tape.Append(warm...)
			a.board.Add(a.sub.Next(nil, 0))
			for _, k := range load.keys {
				p.Send(tea.KeyPressMsg(tea.Key{Code: k, Text: strings.Trim(string(k), "\r")}))
			}
			p.Send(frameMsg{})
			out.after(160 * 50 / 4) // the first whole frame
			sent := out.n.Load()
			tick := time.NewTicker(frameTime)
			b.ResetTimer()
			before := cpu(b)
			var recs []tape.Record
			for i := range frames {
				<-tick.C
				if load.paused {
					continue
				}
				fake.tape.Append(frames[i]...)
				recs = a.fold(recs)
				p.Send(frameMsg{})
			}
			used := cpu(b) - before
			b.StopTimer()
			tick.Stop()
			b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/frame")
			b.ReportMetric(100*used.Seconds()/(float64(b.N)*frameTime.Seconds()), "%core")
			b.ReportMetric(float64(out.n.Load()-sent)/float64(b.N), "B/frame")
			b.ReportMetric(float64(tokens)/(float64(b.N)*frameTime.Seconds()), "tok/s")
			cancel()
			<-done
		})
	}
}

// BenchmarkView is composing one frame alone.
func BenchmarkView(b *testing.B) {
	m, fake := still(b, busy())
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		m.a.board.Add(fake.cluster.Until(fake.cluster.Now() + int64(frameTime)))
		b.StartTimer()
		if _, err := io.WriteString(io.Discard, m.View().Content); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFold is taking one record into the board.
func BenchmarkFold(b *testing.B) {
	fake := newFake(b.TempDir(), busy())
	recs := fake.cluster.Until(20e9)
	b.ReportAllocs()
	i := 0
	a, err := New(fake, Config{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		a.board.Add(recs[i : i+1])
		if i++; i == len(recs) {
			i = 0
			b.StopTimer()
			recs = fake.cluster.Until(fake.cluster.Now() + 20e9)
			b.StartTimer()
		}
	}
}
