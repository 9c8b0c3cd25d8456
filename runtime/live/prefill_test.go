package live_test

import (
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
)

// firstHere sends what is_prefill tells of, at either model, so each request has
// tokens by the large model that it would not have otherwise.
const firstHere = `
function route(r)
  if r.model == "large" then
    if r.is_prefill then return STAY end
    return HOME
  end
  if r.is_prefill then return to("large"), DROP end
  return STAY
end
`

// What a router sees does not tell how a prompt was fed: at once, in parts, from
// the prefix cache, or again after KV was lost (INV-16).
func TestPrefillDoesNotTellHow(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "first.lua"), []byte(firstHere), 0o600); err != nil {
		t.Fatal(err)
	}
	base := setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "first", dir: dir,
		tasks: referenceTasks(t, 8), concurrency: 1, core: live.CoreOptions{NoPrefix: true},
	}
	want, _ := run(t, base)
	for id, a := range want {
		large := 0
		for _, w := range a.writers {
			if w != event.Front {
				large++
			}
		}
		if large != 2 {
			t.Fatalf("request %d has %d tokens of the large model, want 2", id, large)
		}
	}
	for _, c := range []struct {
		what string
		core live.CoreOptions
		kv   int
	}{
		{"chunks", live.CoreOptions{Chunk: 7}, 0},
		{"a small budget", live.CoreOptions{Budget: 16}, 0},
		{"prefix cache", live.CoreOptions{}, 0},
		{"preemption", live.CoreOptions{Overcommit: 400}, 320},
	} {
		s := base
		s.core, s.kvTokens, s.concurrency = c.core, c.kv, 8
		got, recs := run(t, s)
		sameAnswers(t, c.what, want, got)
		if c.kv > 0 && preemptions(recs) == 0 {
			t.Error("nothing was preempted; the test has lost its sense")
		}
	}
}
