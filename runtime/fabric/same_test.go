package fabric_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

// stable is a workload of requests that all fit, on a cluster of n.
func stable(t *rapid.T, w *world, requests int) {
	for id := event.ReqID(1); id <= event.ReqID(requests); id++ {
		h := hash(uint64(id), 99)
		prompt := make([]event.Token, 1+h%6)
		for i := range prompt {
			prompt[i] = event.Token(h >> (i + 3) % 40)
			if i < int(h>>40%6) {
				prompt[i] = event.Token(i) // as others begin
			}
		}
		must(t, w.arrive(id, &event.Arrival{Prompt: prompt, MaxTokens: 1 + int(h>>20%9), EOS: []event.Token{7}}))
	}
}

// Any thresholds, any order of delivery: the same tokens by the same writers as
// eager in another order, and the same ends (INV-16, cases E2, E3, E7). The
// guard is far away, so it is the clamp alone that keeps all moving (INV-7).
func TestBatchingChangesNoToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := plain(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
		seed := rapid.Uint64().Draw(t, "router")
		requests := rapid.IntRange(1, 7).Draw(t, "requests")
		far := int64(1) << 50
		run := func(p *event.Policy, order uint64) *world {
			w, err := newWorld(cfgs, nil)
			must(t, err)
			w.router = fakeRouter(seed, len(cfgs))
			for i := range cfgs {
				must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
			}
			stable(t, w, requests)
			rng := rand.New(rand.NewPCG(order, 2))
			must(t, w.drain(rng.IntN, 1, false))
			must(t, w.leftovers())
			return w
		}
		eager := run(&event.Policy{}, rapid.Uint64().Draw(t, "order"))
		b := rapid.SliceOfN(rapid.IntRange(1, 6), len(cfgs), len(cfgs)).Draw(t, "B")
		for _, p := range []event.Policy{{Kind: event.Fixed, B: b, W: far}, {Kind: event.LockStep}} {
			other := run(&p, rapid.Uint64().Draw(t, "order"))
			if !reflect.DeepEqual(eager.saw(), other.saw()) {
				t.Fatalf("%v changes tokens, writers or ends:\n%v\n%v", &p, eager.saw(), other.saw())
			}
		}
	})
}

// Chunks, budgets, prefix cache, preemption, new requests in place of hand-offs,
// a bound on the active and policies of any kind change when something is
// computed and never what: the same tokens by the same writers and the same ends
// as whole prefills without a cache on pools that hold everybody (INV-16, cases
// D2, E6).
func TestOptionsChangeNoToken(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		cfgs := plain(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
		seed := rapid.Uint64().Draw(t, "router")
		requests := rapid.IntRange(1, 12).Draw(t, "requests")
		run := func(p *event.Policy, order uint64) *world {
			w, err := newWorld(slices.Clone(cfgs), nil)
			must(t, err)
			w.router = fakeRouter(seed, len(cfgs))
			for i := range cfgs {
				must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
			}
			stable(t, w, requests)
			must(t, w.drain(rand.New(rand.NewPCG(order, 4)).IntN, 1, true))
			must(t, w.leftovers())
			return w
		}
		for i := range cfgs {
			cfgs[i].NoPrefix = true
		}
		simple := run(&event.Policy{}, rapid.Uint64().Draw(t, "order"))
		chunk, budget := rapid.IntRange(0, 4).Draw(t, "chunk"), rapid.IntRange(0, 6).Draw(t, "budget")
		over, plain := rapid.IntRange(100, 500).Draw(t, "overcommit"), rapid.IntRange(0, 3).Draw(t, "plain") == 0
		resubmit, most := rapid.Bool().Draw(t, "resubmit"), rapid.IntRange(0, 3).Draw(t, "active")
		for i := range cfgs {
			cfgs[i].Chunk, cfgs[i].Budget, cfgs[i].Overcommit, cfgs[i].NoPrefix = chunk, budget, over, plain
			cfgs[i].Resubmit, cfgs[i].MaxActive = resubmit, most
		}
		p := policy(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "policy") }, len(cfgs))
		p.W = 40
		full := run(p, rapid.Uint64().Draw(t, "order"))
		if !reflect.DeepEqual(simple.saw(), full.saw()) {
			t.Fatalf("%+v, %v: tokens, writers or ends change:\n%v\n%v", cfgs[0], p, simple.saw(), full.saw())
		}
		for name, n := range full.seen {
			seen[name] += n
		}
	})
	for _, name := range []string{"preempt", "row part", "row cached", "row recomputed", "switch without KV"} {
		if seen[name] < 5 {
			t.Errorf("%q happened %d times; the test has lost its sense", name, seen[name])
		}
	}
	t.Log(seen)
}

// The same prompt four times: the same text, computed once. All but the last
// block of the prompt comes from the cache (case D1).
func TestSamePrompt(t *testing.T) {
	for n := 7; n <= 9; n++ {
		w, err := newWorld(fabric.Uniform([]int{2}, []int{64}, 4), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.router = func(_ event.Peer, v sched.View) event.RowResult {
			x := uint64(3)
			for _, tok := range v.Tokens {
				x = hash(x, uint64(tok))
			}
			return event.RowResult{Output: event.Output{Token: event.Token(x % 97)}}
		}
		for id := event.ReqID(1); id <= 4; id++ {
			a := &event.Arrival{MaxTokens: 6}
			for i := range n {
				a.Prompt = append(a.Prompt, event.Token(i))
			}
			if err := w.arrive(id, a); err != nil {
				t.Fatal(err)
			}
			if err := w.drain(func(int) int { return 0 }, 1, false); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(w.text[id], w.text[1]) || len(w.text[id]) != 6 {
				t.Errorf("request %d: %v, the first: %v", id, w.text[id], w.text[1])
			}
		}
		var cached []int
		for _, e := range w.log {
			for _, c := range e.cmds {
				if c.Kind == event.RunBatch && c.Batch.Rows[0].Prefill {
					cached = append(cached, c.Batch.Rows[0].Cached)
				}
			}
		}
		hit := (n - 1) / 4 * 4
		if want := []int{0, hit, hit, hit}; !slices.Equal(cached, want) {
			t.Errorf("%d tokens: %v positions come from the cache, want %v", n, cached, want)
		}
	}
}

// B = 1 everywhere is eager, step for step (case E7).
func TestB1IsEager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfgs := plain(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
		seed, order := rapid.Uint64().Draw(t, "router"), rapid.Uint64().Draw(t, "order")
		requests := rapid.IntRange(1, 7).Draw(t, "requests")
		run := func(p *event.Policy) [][]event.Row {
			w, err := newWorld(cfgs, nil)
			must(t, err)
			w.router = fakeRouter(seed, len(cfgs))
			for i := range cfgs {
				must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
			}
			stable(t, w, requests)
			rng := rand.New(rand.NewPCG(order, 3))
			must(t, w.drain(rng.IntN, 1, false))
			var rows [][]event.Row
			for _, e := range w.log {
				for _, c := range e.cmds {
					if c.Kind == event.RunBatch {
						rows = append(rows, c.Batch.Rows)
					}
				}
			}
			return rows
		}
		if a, b := run(&event.Policy{}), run(&event.Policy{Kind: event.Fixed, B: []int{1, 1, 1}, W: 5}); !reflect.DeepEqual(a, b) {
			t.Fatalf("%v\n%v", a, b)
		}
	})
}

// Always STAY writes everything at home, always the last writes everything
// there but for what home commits (case F1).
func TestProvenance(t *testing.T) {
	for _, tc := range []struct {
		name string
		dest event.Peer
	}{{"small", 0}, {"large", 1}} {
		w, err := newWorld(fabric.Uniform([]int{2, 2}, []int{64, 64}, 4), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.router = func(p event.Peer, v sched.View) event.RowResult {
			r := event.RowResult{Output: event.Output{Token: 1}, Dest: tc.dest}
			if p != tc.dest {
				r.Action = event.Drop
			}
			return r
		}
		for id := event.ReqID(1); id <= 3; id++ {
			if err := w.arrive(id, &event.Arrival{Prompt: []event.Token{1}, MaxTokens: 5}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.drain(func(int) int { return 0 }, 1, false); err != nil {
			t.Fatal(err)
		}
		for id, text := range w.text {
			if len(text) != 5 || slices.ContainsFunc(text, func(x wrote) bool { return x.by != tc.dest }) {
				t.Errorf("%s: request %d is %v", tc.name, id, text)
			}
		}
	}
}
