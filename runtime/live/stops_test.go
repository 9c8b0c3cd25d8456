package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// TestStopStrings holds requests with stop strings against the same requests
// without: each is the beginning of its own long answer, up to the token in
// which the first completed stop string begins, by the same writers, however
// many run beside it and whatever the batches were. Were a stop string found by
// a loop of its own, a request near its end would outrun it (cases A1, A11, B5,
// G1).
func TestStopStrings(t *testing.T) {
	bytesOf := loadModel(t, "tiny-37k").Tokenizer.Bytes
	special := loadModel(t, "tiny-37k").Tokenizer.IsSpecial
	for _, tc := range []struct {
		models []string
		router string
		stops  []string
	}{
		{[]string{"tiny-37k", "tiny-114k"}, "r2r", []string{"0"}},
		{[]string{"tiny-37k", "tiny-114k"}, "r2r", []string{"</think>"}},
		{[]string{"tiny-37k", "tiny-114k"}, "random", []string{"\n\n", "answer is", "=1"}},
		{[]string{"tiny-37k", "tiny-37k", "tiny-114k"}, "me", []string{"03", "72", "9.\n"}},
	} {
		t.Run(fmt.Sprintf("%s %q", tc.router, tc.stops), func(t *testing.T) {
			s := setup{models: tc.models, router: tc.router, tasks: referenceTasks(t, 2*invarianceProblems), concurrency: 8}
			if tc.router == "r2r" {
				s.params = map[string]float64{"threshold": 0.05}
			}
			whole, recs := run(t, s)
			checkTape(t, s, recs)
			want, stopped := map[event.ReqID]*answer{}, 0
			for id, a := range whole {
				n := stopAt(a.ids, tc.stops, bytesOf, special)
				if n < len(a.ids) {
					stopped++
				}
				want[id] = &answer{ids: a.ids[:n], writers: a.writers[:n]}
			}
			if stopped == 0 {
				t.Fatal("no request meets its stop string; the test has lost its sense")
			}
			s.stops = tc.stops
			for _, n := range []int{1, 16} {
				s.concurrency = n
				got, recs := run(t, s)
				sameAnswers(t, fmt.Sprintf("concurrency %d", n), want, got)
				checkTape(t, s, recs)
			}
			s.policy = event.Policy{Kind: event.Fixed, B: []int{3, 2, 2}[:len(tc.models)]}
			got, _ := run(t, s)
			sameAnswers(t, "thresholds of 2 and 3", want, got)
		})
	}
}

// The end of an answer lets out what a router holds back, at home in the step that
// also ends it. A stop string in that ends the answer where it would have ended had
// nothing been held back, with the same reason, whoever wrote the end.
func TestStopStringsAtTheEnd(t *testing.T) {
	bytesOf := loadModel(t, "tiny-37k").Tokenizer.Bytes
	special := loadModel(t, "tiny-37k").Tokenizer.IsSpecial
	stops := []string{"\n\n", "answer is"}
	s := setup{
		models: []string{"tiny-37k", "tiny-842k"}, router: "r2r", params: map[string]float64{"threshold": 0.2},
		concurrency: 4, tasks: referenceTasks(t, 12),
	}
	whole, _ := run(t, s)
	want := map[event.ReqID]*answer{}
	for id, a := range whole {
		n := stopAt(a.ids, stops, bytesOf, special)
		if n == len(a.ids) {
			t.Fatalf("request %d meets no stop string", id)
		}
		want[id] = &answer{ids: a.ids[:n], writers: a.writers[:n]}
		// It ends by length in the token that completes the stop string.
		last := 1
		for stopAt(a.ids[:last], stops, bytesOf, special) == last {
			last++
		}
		s.tasks[id-1].MaxTokens = last
	}
	s.stops = stops
	dir := t.TempDir()
	text := strings.ReplaceAll(draft, "hold(8)", "hold(64)")
	if err := os.WriteFile(filepath.Join(dir, "draft.lua"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	for _, router := range []string{"r2r", "draft"} {
		for _, how := range []struct {
			concurrency int
			virtual     bool
		}{{1, false}, {8, false}, {8, true}} {
			s.router, s.concurrency, s.virtual = router, how.concurrency, how.virtual
			got, recs := run(t, s)
			what := fmt.Sprintf("%s, %+v", router, how)
			sameAnswers(t, what, want, got)
			checkTape(t, s, recs)
			for id, a := range got {
				if a.reason != event.ReasonStop.String() {
					t.Errorf("%s: request %d ends with %s", what, id, a.reason)
				}
			}
			if !slices.ContainsFunc(recs, stopsAtHome) {
				t.Errorf("%s: no answer ends at home; the test has lost its sense", what)
			}
		}
	}
}

// echo lets receive write every token: the small model's candidate, which the large
// one sends back without looking at it.
const echo = `
function route(r)
  if r.model == "small" then return to("large"), DROP end
  return HOME, DROP
end
function send(req, dest)
  if req.model == "small" then return { fields = { id = req.token } } end
  return { fields = req.fields }
end
function receive(msg, req)
  if msg.from == "small" then return COMMIT end
  return APPEND({ msg.fields.id })
end
`

// What receive appends at home may end the answer in the message that brings it.
func TestStopStringsInWhatReceiveWrites(t *testing.T) {
	bytesOf := loadModel(t, "tiny-37k").Tokenizer.Bytes
	special := loadModel(t, "tiny-37k").Tokenizer.IsSpecial
	s := setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "echo", dir: t.TempDir(),
		concurrency: 3, tasks: referenceTasks(t, 3),
	}
	if err := os.WriteFile(filepath.Join(s.dir, "echo.lua"), []byte(echo), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range s.tasks {
		s.tasks[i].MaxTokens = 40
	}
	whole, recs := run(t, s)
	checkTape(t, s, recs)
	stops := []string{"Start with"} // two tokens
	want := map[event.ReqID]*answer{}
	for id, a := range whole {
		last := 1
		for last < len(a.ids) && stopAt(a.ids[:last], stops, bytesOf, special) == last {
			last++
		}
		n := stopAt(a.ids[:last], stops, bytesOf, special)
		want[id] = &answer{ids: a.ids[:n], writers: a.writers[:n]}
		s.tasks[id-1].MaxTokens = last
	}
	s.stops = stops
	for _, s.virtual = range []bool{false, true} {
		got, recs := run(t, s)
		sameAnswers(t, fmt.Sprintf("virtual %v", s.virtual), want, got)
		checkTape(t, s, recs)
		told := 0
		for i := range recs {
			if ev := recs[i].Event; ev != nil && ev.Kind == event.PeerIn && ev.Verdict.Stop > 0 {
				told++
			}
		}
		for id, a := range got {
			if a.reason != event.ReasonStop.String() {
				t.Errorf("virtual %v: request %d ends with %s", s.virtual, id, a.reason)
			}
		}
		if told == 0 {
			t.Errorf("virtual %v: no message ends an answer; the test has lost its sense", s.virtual)
		}
	}
}

// stopsAtHome says whether a record is of a step in which a stop string ends an
// answer.
func stopsAtHome(r tape.Record) bool {
	return r.Event != nil && r.Event.Kind == event.StepDone &&
		slices.ContainsFunc(r.Event.Step.Rows, func(row event.RowResult) bool { return row.Stop > 0 })
}

// stopAt is the number of tokens that stay: through the one that holds the
// beginning of the stop string that is completed first.
func stopAt(ids []event.Token, stops []string, bytesOf func(event.Token) []byte, special func(event.Token) bool) int {
	var text strings.Builder
	var owner []int // of each byte
	for i, id := range ids {
		if special(id) {
			continue
		}
		for _, b := range bytesOf(id) {
			text.WriteByte(b)
			owner = append(owner, i)
			begin := -1
			for _, stop := range stops {
				if at := len(owner) - len(stop); strings.HasSuffix(text.String(), stop) && (begin < 0 || at < begin) {
					begin = at
				}
			}
			if begin >= 0 {
				return owner[begin] + 1
			}
		}
	}
	return len(ids)
}
