package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/tape"
)

// TestPrint: what a router prints is on the tape, and a flood of it is not.
func TestPrint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "talk.lua")
	if err := os.WriteFile(path, []byte("function route(r)\n  print('saw', r.text)\n  return STAY\nend\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, recs := run(t, setup{models: []string{"tiny-37k", "tiny-114k"}, router: path, dir: dir, tasks: referenceTasks(t, 8), concurrency: 8})
	tokens, lines := 0, 0
	for _, a := range got {
		tokens += len(a.ids)
	}
	for i := range recs {
		if m, ok := recs[i].Host.(*tape.Message); ok && strings.HasPrefix(m.Text, "print on small: saw") {
			lines++
		}
	}
	if lines == 0 || lines > tokens/5 {
		t.Errorf("%d printed lines for %d tokens; want some and not a flood", lines, tokens)
	}
}
