package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

// ledger is a book with what it recorded and told.
type ledger struct {
	*book
	requests []*tape.Request
	results  []*tape.Result
	messages []*tape.Message
	settings []*tape.Setting
	told     []*event.Event
	arrived  map[event.ReqID]*event.Arrival
}

// promptTokens is how many tokens a question has in these tests.
const promptTokens = 5

func newLedger(cfg Config) *ledger {
	if cfg.Prompt == nil {
		cfg.Prompt = func(string) ([]event.Token, error) { return make([]event.Token, promptTokens), nil }
	}
	if cfg.Context == 0 {
		cfg.Context = 100
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = 10
	}
	cfg.TokenBytes = func(t event.Token) ([]byte, bool) { return []byte{byte(t)}, false }
	l := &ledger{arrived: map[event.ReqID]*event.Arrival{}}
	l.book = newBook(&cfg, func(_ event.Peer, h tape.Host) {
		switch h := h.(type) {
		case *tape.Request:
			l.requests = append(l.requests, h)
		case *tape.Result:
			l.results = append(l.results, h)
		case *tape.Message:
			l.messages = append(l.messages, h)
		case *tape.Setting:
			l.settings = append(l.settings, h)
		}
	}, func(ev *event.Event) {
		l.told = append(l.told, ev)
		if ev.Kind == event.Arrive {
			l.arrived[ev.Req] = ev.Arrival
		}
	})
	return l
}

// finish ends a request after n tokens.
func (l *ledger) finish(id event.ReqID, n int, reason event.Reason) {
	l.ended(&event.Command{Kind: event.Finish, Req: id, N: len(l.arrived[id].Prompt) + n, Reason: reason})
	l.fill()
}

func (l *ledger) emit(id event.ReqID, text string) {
	first := len(l.arrived[id].Prompt)
	for i, c := range []byte(text) {
		l.emitted(&event.Command{Kind: event.Emit, Req: id, Pos: first + i, Token: event.Token(c)})
	}
}

func (l *ledger) tasks() (ids []string) {
	for _, r := range l.requests {
		ids = append(ids, r.Task)
	}
	return ids
}

func tasks(n int) []workload.Task {
	out := make([]workload.Task, n)
	for i := range out {
		out[i] = workload.Task{ID: fmt.Sprint(i), Question: "q", Answer: "7", HasAnswer: true}
	}
	return out
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// The closed loop keeps as many outstanding as wanted, up to its limit.
func TestBookClosedLoop(t *testing.T) {
	l := newLedger(Config{Source: workload.NewList(tasks(9)), Concurrency: 2, Limit: 5})
	l.begin()
	l.fill()
	wantEqual(t, "started", len(l.requests), 2)
	l.emit(1, "</think>7")
	l.finish(1, 9, event.ReasonStop)
	wantEqual(t, "started", len(l.requests), 3)
	if r := l.results[0]; r.Answer != "7" || !r.Correct || !r.Checked || r.Tokens != 9 || r.Reason != "stop" {
		t.Errorf("result %+v", r)
	}
	l.setWant(4)
	l.fill()
	wantEqual(t, "started", len(l.requests), 5)
	l.setWant(1)
	for id := event.ReqID(2); id <= 5; id++ {
		wantEqual(t, "idle", l.idle(), false)
		l.finish(id, 10, event.ReasonLength)
	}
	wantEqual(t, "started", len(l.requests), 5)
	wantEqual(t, "idle", l.idle(), true)
	wantEqual(t, "settings and messages", len(l.settings)+len(l.messages), 0)
}

// A book without a limit ends with its source.
func TestBookEndsWithItsSource(t *testing.T) {
	l := newLedger(Config{Source: workload.NewList(tasks(3)), Concurrency: 8})
	l.fill()
	wantEqual(t, "started", len(l.requests), 3)
	for id := event.ReqID(1); id <= 3; id++ {
		wantEqual(t, "idle", l.idle(), false)
		l.finish(id, 1, event.ReasonStop)
	}
	wantEqual(t, "idle", l.idle(), true)
}

// A task says what its request is; what the models do not hold is cut or refused.
func TestBookPrepares(t *testing.T) {
	l := newLedger(Config{Concurrency: 9, Context: 100, MaxTokens: 10, Source: workload.NewList([]workload.Task{
		{ID: "as the run says", Question: "q"},
		{ID: "own bound", Question: "q", MaxTokens: 50},
		{ID: "own prompt", Prompt: []event.Token{4, 5, 6}, MaxTokens: 99},
		{ID: "full", Prompt: make([]event.Token, 100)},
	})})
	l.fill()
	for id, want := range []struct{ prompt, most int }{{promptTokens, 10}, {promptTokens, 50}, {3, 97}} {
		a := l.arrived[event.ReqID(id+1)]
		if len(a.Prompt) != want.prompt || a.MaxTokens != want.most {
			t.Errorf("request %d has %d tokens and may write %d, want %+v", id+1, len(a.Prompt), a.MaxTokens, want)
		}
	}
	wantEqual(t, "told", len(l.told), 3)
	if r := l.results[0]; r.Task != "full" || r.Reason != "error" || !strings.Contains(r.Text, "the prompt has 100 tokens, and models and KV pool hold 100 positions") {
		t.Errorf("result %+v", r)
	}
}

// Tokens of one request may come from several writers out of order; its text and
// where it stops do not depend on that.
func TestBookStops(t *testing.T) {
	l := newLedger(Config{Source: workload.NewList(tasks(1)), Concurrency: 1, Stops: []string{"cd"}})
	l.fill()
	text := "abcdef"
	for _, i := range []int{1, 0, 3, 2, 4, 5} {
		l.emitted(&event.Command{Kind: event.Emit, Req: 1, Pos: promptTokens + i, Token: event.Token(text[i])})
	}
	l.emitted(&event.Command{Kind: event.Emit, Req: 77, Pos: 3}) // of nobody
	wantEqual(t, "told", len(l.told), 2)
	wantEqual(t, "told", l.told[1].Kind, event.Stop)
	wantEqual(t, "position", l.told[1].Pos, promptTokens+2)
	wantEqual(t, "text", string(l.open[1].text), "ab")
}

// chat is a source of conversations of three turns each.
type chat struct {
	*workload.List
	outputs [][]event.Token
}

func (c *chat) Follow(task workload.Task, output []event.Token) (workload.Task, bool) {
	c.outputs = append(c.outputs, slices.Clone(output))
	task.Turn++
	task.ID += "+"
	return task, task.Turn < 3
}

// A next turn is asked for when a turn has ended well, with the tokens that
// reached the client, and comes before any new task.
func TestBookNextTurns(t *testing.T) {
	source := &chat{List: workload.NewList(tasks(2))}
	l := newLedger(Config{Source: source, Concurrency: 1})
	l.fill()
	l.emit(1, "abcd")
	l.finish(1, 3, event.ReasonStop) // the fourth was cut
	l.finish(2, 0, event.ReasonLength)
	l.finish(3, 0, event.ReasonLength)
	l.finish(4, 1, event.ReasonStop)
	l.ended(&event.Command{Kind: event.Finish, Req: 5, Reason: event.ReasonStop})
	wantEqual(t, "a turn waits, idle", l.idle(), false)
	l.fill()
	l.finish(6, 0, event.ReasonAborted)
	if got := strings.Join(l.tasks(), " "); got != "0 0+ 0++ 1 1+ 1++" {
		t.Errorf("asked for %s", got)
	}
	wantEqual(t, "turns that ended well", len(source.outputs), 5)
	if !slices.Equal(source.outputs[0], []event.Token{'a', 'b', 'c'}) {
		t.Errorf("the first turn answered %v", source.outputs[0])
	}
	wantEqual(t, "idle", l.idle(), true)
}

// Next turns count as requests: a limit ends a run within a conversation.
func TestBookLimitCountsTurns(t *testing.T) {
	l := newLedger(Config{Source: &chat{List: workload.NewList(tasks(5))}, Concurrency: 1, Limit: 2})
	l.fill()
	l.finish(1, 1, event.ReasonStop)
	l.finish(2, 1, event.ReasonStop)
	if got := strings.Join(l.tasks(), " "); got != "0 0+" || !l.idle() {
		t.Errorf("asked for %s; idle %v", got, l.idle())
	}
}

// abort ends what is outstanding and starts nothing any more.
func TestBookAborts(t *testing.T) {
	const n = 8
	l := newLedger(Config{Source: &chat{List: workload.NewList(tasks(2 * n))}, Concurrency: n})
	l.fill()
	l.told = nil
	l.cancel(99)
	l.cancel(2)
	wantEqual(t, "told", len(l.told), 1)
	wantEqual(t, "cancelled", l.told[0].Req, 2)
	l.told = nil
	l.abort()
	wantEqual(t, "told", len(l.told), n)
	for i, ev := range l.told {
		if ev.Kind != event.Cancel || ev.Req != event.ReqID(i+1) {
			t.Errorf("told %v, want the cancel of %d", ev, i+1)
		}
	}
	for id := event.ReqID(1); id <= n; id++ {
		wantEqual(t, "idle", l.idle(), false)
		l.finish(id, 1, event.ReasonStop)
	}
	wantEqual(t, "started", len(l.requests), n)
	wantEqual(t, "idle", l.idle(), true)
}

// Whatever happens in whatever order: ids rise by one, each request ends once,
// never more are outstanding than wanted, and a run ends.
func TestBookKeepsItsBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Source: &chat{List: workload.NewList(tasks(rapid.IntRange(0, 20).Draw(t, "tasks")))}, Stops: []string{"bb"},
			Concurrency: rapid.IntRange(1, 4).Draw(t, "concurrency"), Limit: rapid.IntRange(0, 30).Draw(t, "limit"),
		}
		broken := rapid.IntRange(0, 9).Draw(t, "broken")
		calls := 0
		cfg.Prompt = func(string) ([]event.Token, error) {
			if calls++; broken > 0 && calls%broken == 0 {
				return nil, errors.New("no prompt")
			}
			return make([]event.Token, promptTokens), nil
		}
		l := newLedger(cfg)
		l.fill()
		var open []event.ReqID
		for {
			open = open[:0]
			for id := range l.open {
				open = append(open, id)
			}
			slices.Sort(open)
			if len(open) > cfg.Concurrency || len(open) < cfg.Concurrency && !l.full() && len(l.follows) > 0 {
				t.Fatalf("%d outstanding, %d wanted, %d next turns wait", len(open), cfg.Concurrency, len(l.follows))
			}
			if l.idle() {
				break
			}
			id := rapid.SampledFrom(open).Draw(t, "request")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				l.emitted(&event.Command{Kind: event.Emit, Req: id, Pos: promptTokens + len(l.open[id].output), Token: event.Token(rapid.SampledFrom([]byte("ab")).Draw(t, "token"))})
			case 1:
				l.ended(&event.Command{Kind: event.Reject, Req: id, Text: "no room"})
				l.fill()
			default:
				l.finish(id, rapid.IntRange(0, 5).Draw(t, "n"), rapid.SampledFrom([]event.Reason{event.ReasonStop, event.ReasonLength, event.ReasonAborted, event.ReasonError}).Draw(t, "reason"))
			}
		}
		if len(open) > 0 || cfg.Limit > 0 && len(l.requests) > cfg.Limit {
			t.Fatalf("%d outstanding at the end of %d requests, limit %d", len(open), len(l.requests), cfg.Limit)
		}
		ends := map[event.ReqID]int{}
		for _, r := range l.results {
			ends[r.Req]++
		}
		for i, r := range l.requests {
			if r.Req != event.ReqID(i+1) || ends[r.Req] != 1 {
				t.Fatalf("request %d is the %dth and ended %d times", r.Req, i+1, ends[r.Req])
			}
		}
	})
}
