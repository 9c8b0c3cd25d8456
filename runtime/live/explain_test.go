package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

// Explain names the line that decided, and none where the router decides
// otherwise by now or is not known.
func TestExplain(t *testing.T) {
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "r2r", params: map[string]float64{"threshold": 0.5},
		tasks: referenceTasks(t, 1), concurrency: 1,
	})
	rt.Start()
	<-rt.Done()
	defer closeRuntime(t, rt)
	out := event.Output{Entropy: 1, TopK: make([]event.TokenProb, 5)}
	row := scripting.Row{Req: 1, Output: &out, Pos: 60, PromptLen: 50, Step: 10}
	decided := event.RowResult{Req: 1, Output: out, Dest: 1, Action: event.Drop, Router: rt.Status().RouterHash}

	file, line, src, err := rt.Explain(event.Front, &decided, &row, nil)
	if err != nil || file != "r2r.lua" || line == 0 || !strings.Contains(src, "DROP") {
		t.Errorf("%s:%d %q (%v), want the line of the DROP", file, line, src, err)
	}
	if err := rt.SetKnob("threshold", 2); err != nil {
		t.Fatal(err)
	}
	if _, line, _, err := rt.Explain(event.Front, &decided, &row, nil); err == nil || line != 0 || !strings.Contains(err.Error(), "decides otherwise now") {
		t.Errorf("after the knob has moved: line %d, %v", line, err)
	}
	was := map[string]map[string]float64{"r2r.lua": {"threshold": 0.5, "gone": 1}}
	if _, again, _, err := rt.Explain(event.Front, &decided, &row, was); err != nil || again != line {
		t.Errorf("with the knob as it stood: line %d, want %d (%v)", again, line, err)
	}
	if rt.Knobs()[0].Value != 2 {
		t.Errorf("explaining changed the runtime: %+v", rt.Knobs())
	}
	decided.Router = "gone"
	if _, _, _, err := rt.Explain(event.Front, &decided, &row, nil); err == nil || !strings.Contains(err.Error(), "gone is not known") {
		t.Errorf("an unknown router: %v", err)
	}
}

// A rule that waits for the end of the answer sees it: by the position, of which the
// row tells, or by an end token.
func TestExplainTheEnd(t *testing.T) {
	dir := t.TempDir()
	text := "function route(r)\n  if r.last and r.model == \"small\" then\n    return to(\"large\"), DROP\n  end\n  return STAY\nend\n"
	if err := os.WriteFile(filepath.Join(dir, "late.lua"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: "late", dir: dir, tasks: referenceTasks(t, 1), concurrency: 1,
	})
	defer closeRuntime(t, rt)
	for _, tc := range []struct {
		last bool
		id   event.Token
		line int
	}{{true, 5, 3}, {false, loadModel(t, "tiny-37k").EOS()[0], 3}, {false, 5, 5}} {
		out := event.Output{Token: tc.id}
		row := scripting.Row{Req: 1, Output: &out, Pos: 600, PromptLen: 50, Step: 550, Last: tc.last}
		decided := event.RowResult{Req: 1, Output: out, Router: rt.Status().RouterHash}
		if tc.line == 3 {
			decided.Dest, decided.Action = 1, event.Drop
		}
		if _, line, _, err := rt.Explain(event.Front, &decided, &row, nil); err != nil || line != tc.line {
			t.Errorf("%+v: line %d, %v", tc, line, err)
		}
	}
}
