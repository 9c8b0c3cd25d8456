package live_test

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
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
