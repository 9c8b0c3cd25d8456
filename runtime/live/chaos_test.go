package live_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

// wild routers hand over as they like, drop, send budgets and fields, answer
// messages with ids of their own, and err.
var wild = []string{`
local share = param("share", { default = 0.5, min = 0, max = 1 })
function route(r)
  r.state.n = (r.state.n or 0) + 1
  if r.random(1) < share() then return STAY end
  local d = roles[1 + math.floor(r.random(2) * #roles)]
  if r.random(3) < 0.5 and d ~= r.model then return to(d), DROP end
  return to(d)
end
function send(req, dest)
  return { budget = 1 + math.floor(req.random(4) * 3), fields = { n = req.state.n } }
end
`, `
local share = param("share", { default = 0.2, min = 0, max = 1 })
function route(r)
  r.state.n = (r.state.n or 0) + 1
  if r.state.n % 5 == 0 then return "nonsense" end
  if r.state.n % 7 == 0 then error("no") end
  if r.random(0) < share() then return to(roles[#roles]), DROP end
  return HOME
end
function receive(msg, req)
  if msg.count > 0 and msg.count < 3 then
    local ids = {}
    for i = 1, msg.count do ids[i] = msg.token(i) end
    ids[#ids + 1] = ids[#ids]
    return APPEND(ids)
  end
  return COMMIT
end
`, `
function route(r)
  if r.ready > 2 or r.load(roles[#roles]).ready > 1 then return HOME end
  return to((r.pos + r.step) % r.peers)
end
`}

// TestEverythingAtOnce turns every control from several goroutines while
// requests run: routers, knobs, thresholds, clocks, pauses, cancels and saves of
// the router's file. Whatever comes of it, the tape must be in order.
func TestEverythingAtOnce(t *testing.T) {
	for _, models := range [][]string{{"tiny-37k", "tiny-114k"}, {"tiny-37k", "tiny-37k", "tiny-114k"}} {
		t.Run(fmt.Sprint(len(models)), func(t *testing.T) {
			problems, err := workload.NewGenerator(77, workload.Light)
			if err != nil {
				t.Fatal(err)
			}
			s := setup{
				models: models, dir: t.TempDir(), watch: true, tape: tape.New(), concurrency: 8, kvTokens: 2048,
				sampling: event.Sampling{Temperature: 1, Seed: 9}, stops: []string{"77", "answer"}, pacer: pacedAt(t, 64),
				core: live.CoreOptions{Chunk: 7, Budget: 24, Overcommit: 200},
			}
			for range chaosRequests {
				task, _ := problems.Next()
				s.tasks = append(s.tasks, task)
			}
			s.pacer.SetProfile(profile(t, len(models)))
			s.router = filepath.Join(s.dir, "wild.lua")
			save(t, s.router, wild[0])
			all := s.tape.Subscribe()
			rt := newRuntime(t, s)
			var turning sync.WaitGroup
			for i := range 4 {
				rng, sub := rand.New(rand.NewPCG(uint64(i), 3)), s.tape.Subscribe()
				turning.Go(func() {
					for goesOn(rt, sub, 1+rng.IntN(60)) {
						turn(t, rt, &s, rng)
					}
				})
			}
			rt.Start()
			turning.Wait()
			closeRuntime(t, rt)
			recs := all.Next(nil, 0)
			checkTape(t, s, recs)
			seen := map[string]int{}
			for i := range recs {
				switch h := recs[i].Host.(type) {
				case *tape.Setting:
					seen[h.Setting]++
				case *tape.Router:
					seen[string(h.Phase)]++
				case *tape.Result:
					seen[h.Reason]++
				case *tape.Knob:
					seen["knob"]++
				}
			}
			for _, what := range []string{"clock", "speed", "paused", "concurrency", "batch", "live", "knob", "aborted", "stop"} {
				if seen[what] == 0 {
					t.Errorf("nothing of %q is on the tape: %v", what, seen)
				}
			}
		})
	}
}

// goesOn waits until n more records are on the tape; it is false once the run
// has ended.
func goesOn(rt *live.Runtime, sub *tape.Sub, n int) bool {
	for n > 0 {
		if got := len(sub.Next(nil, n)); got > 0 {
			n -= got
			continue
		}
		select {
		case <-sub.Ready():
		case <-rt.Done():
			return false
		}
	}
	return true
}

func save(t *testing.T, path, text string) {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		t.Error(err)
		return
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close(), os.Rename(f.Name(), path)); err != nil {
		t.Error(err)
	}
}

// turn moves one control.
func turn(t *testing.T, rt *live.Runtime, s *setup, rng *rand.Rand) {
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	pick := func(names ...string) string { return names[rng.IntN(len(names))] }
	switch rng.IntN(14) {
	case 0:
		must(rt.SetB(event.Peer(rng.IntN(len(s.models))), 1+rng.IntN(6)))
	case 1:
		must(rt.SetConcurrency(1 + rng.IntN(24)))
	case 2:
		must(rt.SetClock(pick(live.ClockLive, live.ClockPaced)))
	case 3:
		if err := rt.SetSpeed(float64(16 + rng.IntN(48))); err != nil && rt.Status().Clock == live.ClockPaced {
			t.Log(err) // the clock changed in between
		}
	case 4:
		rt.SetPaused(true)
		must(rt.SetB(event.Front, 1+rng.IntN(4)))
		rt.Status()
		rt.SetPaused(false)
	case 5:
		name := pick("r2r", "me", "random", "small_only", "wild", s.router)
		if err := rt.SetRouter(name); err != nil && name[0] != 'w' && name != s.router {
			t.Errorf("%s does not load: %v", name, err) // the file may be broken at the moment
		}
	case 6, 7:
		for _, k := range rt.Knobs() {
			_ = rt.SetKnob(k.Name, k.Min+(k.Max-k.Min)*rng.Float64()) // the router may be another by now
		}
	case 8, 9:
		rt.Cancel(event.ReqID(rng.IntN(len(s.tasks) + 10)))
	case 10:
		switch text := wild[rng.IntN(len(wild))]; rng.IntN(4) {
		case 0:
			save(t, s.router, text+"\nreturn +")
		case 1:
			must(os.WriteFile(s.router, []byte(text), 0o644))
		default:
			save(t, s.router, fmt.Sprintf("%s\n-- %d", text, rng.Int()))
		}
	case 11:
		if path, err := rt.Edit(); err == nil && path == "" {
			t.Error("nothing to edit")
		}
		rt.Routers()
	case 12, 13:
		b := slices.Repeat([]string{strconv.Itoa(1 + rng.IntN(6))}, len(s.models))
		must(rt.SetPolicy(pick("eager", "table", "look-ahead", "fixed:"+strings.Join(b, ","))))
	}
}
