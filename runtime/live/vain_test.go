package live_test

import (
	"errors"
	"strings"
	"testing"

	"tokenrouter/algos"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting/library"
)

// An endless workload none of whose requests can begin ends with a message. Each
// of them would otherwise make room for the next at once, and the tape would
// fill with their ends.
func TestRequestsThatCannotBegin(t *testing.T) {
	const concurrency = 4
	for name, tc := range map[string]struct {
		kv     int
		prompt error
		want   string
	}{
		"the pool is too small": {kv: 64, want: "do not fit the KV pool of 64 tokens"},
		"no prompt can be made": {kv: 1024, prompt: errors.New("no chat form"), want: "no chat form"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := tape.New()
			sub := rec.Subscribe()
			rt, err := live.New(live.Config{
				Runners: []runner.Runner{&instant{}, &instant{}}, Pacer: paced.NewPacer(), Vocab: 424,
				Prompt:     func(string) ([]event.Token, error) { return []event.Token{1, 2}, tc.prompt },
				TokenBytes: func(event.Token) ([]byte, bool) { return []byte(" x"), false },
				TokenText:  func(event.Token) string { return " x" },
				Context:    512, Seats: 4, KVTokens: tc.kv, MaxTokens: 160,
				Concurrency: concurrency, Source: &endless{},
				Library: library.Library{Dir: t.TempDir(), Embedded: algos.Routers()}, Router: "small_only",
				Tape: rec, Guard: guard.New(""),
			})
			if err != nil {
				t.Fatal(err)
			}
			rt.Start()
			<-rt.Done()
			closeRuntime(t, rt)
			requests, said := 0, ""
			for _, r := range sub.Next(nil, 0) {
				switch h := r.Host.(type) {
				case *tape.Request:
					requests++
				case *tape.Message:
					said += h.Text
				}
			}
			if !strings.Contains(said, "32 requests in a row could not begin") || !strings.Contains(said, tc.want) {
				t.Errorf("the tape says %q, want %q", said, tc.want)
			}
			if requests < 32 || requests >= 32+concurrency {
				t.Errorf("%d requests were started", requests)
			}
		})
	}
}
