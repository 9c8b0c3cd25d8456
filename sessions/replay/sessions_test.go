package replay_test

import (
	"fmt"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/replay"
)

// sessions are all routers under all policies and options that a core has.
func sessions() []setup {
	three := []string{"tiny-37k", "tiny-114k", "tiny-842k"}
	warm := event.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7}
	half := map[string]float64{"share": 0.5}
	return []setup{
		{router: "r2r", policy: "eager"},
		{router: "r2r", params: map[string]float64{"threshold": 0.05}, policy: "fixed:2,3", sampling: warm},
		{router: "r2r", policy: "table", concurrency: 6},
		{router: "rstitch", policy: "eager", sampling: warm},
		{router: "rstitch", policy: "look-ahead"},
		{router: "me", policy: "table", sampling: warm},
		{router: "me", models: three, requests: 3, policy: "fixed:1,2,2", sampling: warm},
		{router: "random", params: half, policy: "look-ahead", concurrency: 8, requests: 10},
		{router: "random", params: half, policy: "look-ahead", concurrency: 8, requests: 10, virtual: true}, // has its forecast however busy this machine is
		{router: "random", params: half, policy: "lock-step"},
		{router: "chance", policy: "table"},
		{router: "chance", models: three, requests: 3, policy: "eager"},
		{router: "chance", models: three, requests: 3, policy: "lock-step", params: map[string]float64{"replace": 0}},
		{router: "small_only", policy: "fixed:3,1"},
		{router: "large_only", policy: "table"},
		{router: "random", params: half, core: live.CoreOptions{Resubmit: true}},
		{router: "chance", models: three, requests: 3, core: live.CoreOptions{Resubmit: true, MaxActive: 2, Chunk: 9}},
		{router: "random", params: half, core: live.CoreOptions{Chunk: 7, Budget: 12}},
		{router: "r2r", params: map[string]float64{"threshold": 0.05}, core: live.CoreOptions{Overcommit: 400, Budget: 16, NoPrefix: true}, kvTokens: 640, concurrency: 8, requests: 10},
		{router: "restless", policy: "table"},
		{router: "restless", models: three, requests: 4, policy: "look-ahead", stops: []string{"so"}, core: live.CoreOptions{Chunk: 7}},
		{router: "restless", core: live.CoreOptions{Resubmit: true}},
		{router: "restless", core: live.CoreOptions{Overcommit: 400, Budget: 16}, kvTokens: 640, concurrency: 8, requests: 10},
		{router: "random", params: half, stops: []string{"so", "\n"}, policy: "table"},
		{router: "random", params: half, concurrency: 8, requests: 40, during: cancels},
	}
}

// cancels cancels requests as they come to different places, changes all that
// can be changed under way, and quits in the middle.
func cancels(t testing.TB, rt *live.Runtime, sub *tape.Sub) {
	settings := []func() error{
		func() error { return rt.SetPolicy("fixed:1,2") },
		func() error { return rt.SetConcurrency(3) },
		func() error { return rt.SetPolicy("look-ahead") },
		func() error { return rt.SetKnob("share", 0.9) },
		func() error { rt.SetPaused(true); rt.SetPaused(false); return nil },
		func() error { return rt.SetB(0, 2) },
		func() error { return rt.SetConcurrency(8) },
	}
	n := 0
	await(sub, func(r *tape.Record) bool {
		if c := r.Command; c != nil && c.Kind == event.SendPeer {
			if n++; n%40 == 0 {
				rt.Cancel(c.Peer.ID)
			}
			if n%60 == 0 && len(settings) > 0 {
				if err := settings[0](); err != nil {
					t.Error(err)
				}
				settings = settings[1:]
			}
		}
		return n == 600
	})
}

// Case E12 and the issue's: sessions of all routers and policies, recorded live,
// replay equal.
func TestSessions(t *testing.T) {
	all := map[string]int{}
	for i, s := range sessions() {
		t.Run(fmt.Sprintf("%02d %s", i+1, s.router), func(t *testing.T) {
			o := record(t, s)
			r, err := replay.Session(o)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Equal() || r.Cut != "" || r.Missing > 0 || r.Behind != nil {
				t.Fatalf("%v", &r)
			}
			if r.Records != o.Report.Records || r.Commands == 0 || r.Events == 0 || r.Cores != len(o.Manifest.Models) {
				t.Errorf("%+v of %d records", r, o.Report.Records)
			}
			// A request has at most one message under way; the rest is news of what
			// is active and what runs.
			if n := len(o.Manifest.Models); r.Most > 8*n*n {
				t.Errorf("%d messages in flight", r.Most)
			}
			seen(t, o, all)
		})
	}
	for _, what := range []string{
		"arrive", "dispatch", "step-done", "peer-in", "active", "wake", "stop", "cancel", "set-policy", "busy",
		"policy eager", "policy fixed", "policy table", "policy look-ahead", "policy lock-step",
		"order admit", "order run-batch", "order send-peer", "order tell-active", "order emit", "order finish", "order free",
		"order wake-at", "order tell-busy", "order preempt", "end stop", "end aborted",
		"rule eager", "rule B", "rule guard", "action DROP", "action TRUNCATE", "emit for another", "chunk", "prefix hit", "recomputed", "subserver 2",
	} {
		if all[what] == 0 {
			t.Errorf("no session has %q: %v", what, all)
		}
	}
}

// A session in virtual time replays as one of the wall clock does.
func TestVirtual(t *testing.T) {
	for _, s := range []setup{
		{router: "random", policy: "table", virtual: true},
		{router: "chance", models: []string{"tiny-37k", "tiny-114k", "tiny-842k"}, policy: "look-ahead", virtual: true},
		{router: "r2r", policy: "lock-step", core: live.CoreOptions{Resubmit: true}, virtual: true},
		{router: "restless", policy: "table", virtual: true},
	} {
		r, err := replay.Session(record(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if !r.Equal() || r.Cut != "" || r.Commands == 0 {
			t.Errorf("%s: %v", s.router, &r)
		}
	}
}
