package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

const smallRouter = `local t = param("threshold", { default = %T, min = 0, max = 4 })
function route(r)
  if r.model == "large" then return HOME end
  if r.entropy >= t() then return to("large"), DROP end
  return STAY
end
`

func writeRouter(t *testing.T, path, threshold string) {
	t.Helper()
	text := strings.ReplaceAll(smallRouter, "%T", threshold)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// phase waits for the next router record of the given phase.
func phase(sub *tape.Sub, want tape.RouterPhase) *tape.Router {
	var got *tape.Router
	await(sub, func(r *tape.Record) bool {
		h, ok := r.Host.(*tape.Router)
		if ok && h.Phase == want {
			got = h
			return true
		}
		return false
	})
	return got
}

// TestSaveReloads: saving a router changes decisions without a lost request; a
// broken file keeps the last good one and says where it is broken; fixing it
// clears that (cases I5, I6).
func TestSaveReloads(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mine.lua")
	writeRouter(t, path, "4")
	problems, err := workload.NewGenerator(5, workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	var tasks []workload.Task
	for range 5000 { // more than the test lives to see
		task, _ := problems.Next()
		tasks = append(tasks, task)
	}
	rec := tape.New()
	sub, all := rec.Subscribe(), rec.Subscribe()
	rt := newRuntime(t, setup{
		models: []string{"tiny-37k", "tiny-114k"}, router: path, dir: dir, watch: true,
		tasks: tasks, concurrency: 4, tape: rec, pacer: pacedAt(t, 8),
	})
	rt.Start()
	first := phase(sub, tape.RouterLive)

	writeRouter(t, path, "0.05")
	next := phase(sub, tape.RouterLive)
	if next.Hash == first.Hash {
		t.Errorf("the router that is live is still %s", first.Hash)
	}
	await(sub, func(r *tape.Record) bool { return decidedBy(r, next.Hash) })
	if k := rt.Knobs(); len(k) != 1 || k[0].Value != 0.05 {
		t.Errorf("knobs %+v, want the file's new default 0.05", k)
	}

	if err := os.WriteFile(path, []byte("function route(r)\n  return STAY +\nend\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if bad := phase(sub, tape.RouterRejected); !strings.Contains(bad.Err, "mine.lua:3:") {
		t.Errorf("rejected with %q, want file and line", bad.Err)
	}
	if st := rt.Status(); st.RouterHash != next.Hash {
		t.Errorf("a broken file replaced %s by %s", next.Hash, st.RouterHash)
	}
	await(sub, func(r *tape.Record) bool { return decidedBy(r, next.Hash) })

	writeRouter(t, path, "0.05")
	phase(sub, tape.RouterCleared)
	closeRuntime(t, rt)
	for _, r := range all.Next(nil, 0) {
		if res, ok := r.Host.(*tape.Result); ok && res.Reason == "error" {
			t.Errorf("request %d was lost: %s", res.Req, res.Text)
		}
	}
}

func decidedBy(r *tape.Record, hash string) bool {
	if r.Event == nil || r.Event.Kind != event.StepDone {
		return false
	}
	for i := range r.Event.Step.Rows {
		if r.Event.Step.Rows[i].Router == hash {
			return true
		}
	}
	return false
}

// TestFaultsDoNotStopRequests runs routers that loop, eat memory, answer
// nonsense or misspell a role, on input that reaches the fault: every request
// ends as it would with the default, and each fault names file and line (cases
// I1, I3, I8).
func TestFaultsDoNotStopRequests(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"loop":          {`while true do end`, "bad.lua:4"},
		"memory":        {`local t = {} while true do t[#t+1] = string.rep("x", 10000) end`, "bad.lua:4"},
		"nonsense":      {`return "llm"`, "bad.lua"},
		"nothing":       {`return nil`, "bad.lua"},
		"misspelt role": {`return to("lrage"), DROP`, `did you mean "large"`},
		"misspelt":      {`local f = "entropi" if r[f] > 1 then return HOME end`, "entropy"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "bad.lua")
			// A dry run sees each request once, so the fault waits for the fifth
			// decision of a real one.
			text := "function route(r)\n  r.state.n = (r.state.n or 0) + 1\n  if r.state.n % 5 == 0 then\n    " + tc.body + "\n  end\n  return STAY\nend\n"
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			s := setup{models: []string{"tiny-37k", "tiny-114k"}, router: path, dir: dir, tasks: referenceTasks(t, 4), concurrency: 4}
			got, recs := run(t, s)
			faults := 0
			for i := range recs {
				if c := recs[i].Command; c != nil && c.Kind == event.Note && c.Note == event.NoteFault {
					faults++
					if !strings.Contains(c.Text, tc.want) {
						t.Errorf("fault %q does not name %q", c.Text, tc.want)
					}
				}
			}
			if faults == 0 {
				t.Error("no fault is on the tape")
			}
			small := s
			small.router = "small_only"
			want, _ := run(t, small)
			sameAnswers(t, "default decision", want, got)
		})
	}
}
