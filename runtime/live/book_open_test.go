package live

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

// uniformly gives n arrivals at a rate.
type uniformly struct {
	workload.Arrivals
	n int
}

func (u *uniformly) Next() (time.Duration, bool) {
	if u.n == 0 {
		return 0, false
	}
	u.n--
	return u.Arrivals.Next()
}

func uniform(t testing.TB, rate float64, n int) workload.Arrivals {
	t.Helper()
	a, err := workload.Uniform(rate)
	if err != nil {
		t.Fatal(err)
	}
	return &uniformly{a, n}
}

// play lets all arrivals of a book come, each late by so much.
func (l *ledger) play(late time.Duration) {
	s := newSchedule(l.cfg.Arrivals, 0)
	for s.advance(1) {
		l.arrive(s.offset, late)
		l.fill()
	}
	l.noMore()
	l.fill()
}

// In the open loop requests come by their arrivals, whatever is outstanding, and
// next turns when the turn before ends.
func TestBookOpenLoop(t *testing.T) {
	l := newLedger(Config{Source: &chat{List: workload.NewList(tasks(9))}, Arrivals: uniform(t, 4, 3), Concurrency: 1})
	l.begin()
	l.fill()
	wantEqual(t, "started", len(l.requests), 0)
	wantEqual(t, "idle", l.idle(), false)
	l.play(0)
	wantEqual(t, "started", len(l.requests), 3)
	l.finish(2, 1, event.ReasonStop)
	wantEqual(t, "started", len(l.requests), 4)
	for id := event.ReqID(1); id <= event.ReqID(len(l.requests)); id++ {
		if id != 2 {
			l.finish(id, 1, event.ReasonStop)
		}
	}
	wantEqual(t, "started", len(l.requests), 9)
	wantEqual(t, "idle", l.idle(), true)
	wantEqual(t, "setting", *l.settings[0], tape.Setting{Setting: "arrivals", New: "uniform:4"})
	wantEqual(t, "rate", l.rate.Achieved, 4)
}

// After the last arrival a run goes on with the turns that wait.
func TestBookIsNotIdleBetweenTurns(t *testing.T) {
	l := newLedger(Config{Source: &chat{List: workload.NewList(tasks(1))}, Arrivals: uniform(t, 4, 1)})
	l.play(0)
	l.ended(&event.Command{Kind: event.Finish, Req: 1, Reason: event.ReasonStop})
	wantEqual(t, "idle", l.idle(), false)
	l.fill()
	wantEqual(t, "started", len(l.requests), 2)
}

// A run says at its end how many requests came, and warns when that is more than
// a tenth off, with the reason.
func TestBookReportsTheRate(t *testing.T) {
	for name, c := range map[string]struct {
		late  time.Duration
		asked float64 // instead of the 10/s that come
		level tape.Level
		want  string
	}{
		"on time":       {0, 10, tape.Info, "40 arrivals came at 10 a second, 10 were asked for; the latest was 0s behind its time"},
		"within":        {400 * time.Millisecond, 10, tape.Info, "40 arrivals came at 9.09 a second, 10 were asked for; the latest was 400ms behind"},
		"slow machine":  {time.Second, 10, tape.Warn, "That is 20 % off, so this run did not measure the load that it names; this machine is too slow"},
		"chance":        {0, 8, tape.Warn, "That is 25 % off, so this run did not measure the load that it names; so few scatter that much"},
		"of no account": {0, 0, tape.Info, "40 arrivals came at 10 a second, 0 were asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(Config{Source: workload.NewList(tasks(40)), Arrivals: asking{uniform(t, 10, 40), c.asked}})
			l.begin()
			l.play(c.late)
			l.abort()
			wantEqual(t, "messages", len(l.messages), 1)
			if m := l.messages[0]; m.Level != c.level || !strings.Contains(m.Text, c.want) {
				t.Errorf("%s: %s, want %s: %s", m.Level, m.Text, c.level, c.want)
			}
		})
	}
}

// asking names another rate than its arrivals have.
type asking struct {
	workload.Arrivals
	rate float64
}

func (a asking) Rate() float64 { return a.rate }

// A limit ends the open loop, and what arrives after it is not counted.
func TestBookOpenLoopLimit(t *testing.T) {
	l := newLedger(Config{Source: workload.NewList(tasks(40)), Arrivals: uniform(t, 10, 40), Limit: 7})
	l.begin()
	l.play(0)
	wantEqual(t, "started", len(l.requests), 7)
	wantEqual(t, "arrived", l.rate.Arrived, 7)
	wantEqual(t, "messages", len(l.messages), 1)
	wantEqual(t, "full", l.full(), true)
}

// The open loop is bounded: a cluster that lags without hope gets no more.
func TestBookOpenLoopIsBounded(t *testing.T) {
	l := newLedger(Config{Source: &forever{}, Arrivals: uniform(t, 1000, maxOutstanding+100)})
	l.begin()
	l.play(0)
	wantEqual(t, "told", len(l.told), maxOutstanding)
	wantEqual(t, "refused", len(l.results), maxVain)
	if r := l.results[0]; !strings.Contains(r.Text, "65536 requests are outstanding already; ask for a lower rate") {
		t.Errorf("result %+v", r)
	}
	if m := l.messages[0]; m.Level != tape.Error || !strings.Contains(m.Text, "32 requests in a row could not begin") {
		t.Errorf("message %+v", m)
	}
}

// Only requests in a row count as vain: one that begins clears the count.
func TestBookForgivesWhatBegins(t *testing.T) {
	n := 0
	l := newLedger(Config{Source: &forever{}, Concurrency: 1, Prompt: func(string) ([]event.Token, error) {
		if n++; n%maxVain != 0 {
			return nil, errors.New("no prompt")
		}
		return make([]event.Token, promptTokens), nil
	}})
	for id := event.ReqID(maxVain); id <= 3*maxVain; id += maxVain {
		l.fill()
		wantEqual(t, "requests", len(l.requests), int(id))
		l.finish(id, 1, event.ReasonStop)
	}
	wantEqual(t, "messages", len(l.messages), 0)
	wantEqual(t, "full", l.full(), false)
}

type forever struct{}

func (forever) Next() (workload.Task, bool) { return workload.Task{ID: "1", Question: "q"}, true }

// A schedule is absolute, follows the speed of the clock, and lets a pause move
// what comes after it.
func TestSchedule(t *testing.T) {
	s := newSchedule(uniform(t, 4, 6), 1e9)
	for i, c := range []struct {
		speed float64
		hold  int64
		due   float64
	}{
		{1, 0, 1.25},
		{1, 0, 1.5},
		{2, 0, 1.625}, // half of the gap
		{0.5, 0, 2.125},
		{1, 2.625e9, 2.375}, // held until 5
		{1, 0, 5.25},
	} {
		if !s.advance(c.speed) || s.due != int64(c.due*1e9) || s.offset != time.Duration(i+1)*250*time.Millisecond {
			t.Fatalf("arrival %d at %s is due at %d, want %g", i, s.offset, s.due, c.due)
		}
		s.hold(c.hold)
	}
	wantEqual(t, "more", s.advance(1), false)
}

// A trace is asked for by its own times: a run that ends within it has not missed
// its rate.
func TestBookWithinATrace(t *testing.T) {
	trace, err := workload.ReadTrace(strings.NewReader("timestamp\n0\n1\n2\n3.0\n3.1\n3.2\n3.3\n3.4\n3.5\n3.6\n"), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(Config{Source: workload.NewList(tasks(9)), Arrivals: trace, Limit: 4})
	l.begin()
	l.play(0)
	wantEqual(t, "arrived", l.rate.Arrived, 4)
	if l.rate.Off() {
		t.Error(&l.rate)
	}
}
