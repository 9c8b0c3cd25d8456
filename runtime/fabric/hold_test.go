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

// solo is one request in a single loop: no batches, messages, KV or emission
// before the end. It knows the rules of hold and TRUNCATE from docs/lua.md and
// shares no code with the core.
type solo struct {
	id       event.ReqID
	text     []event.Token
	by       []event.Peer
	prompt   int
	most     int
	eos      event.Token
	out      int // emitted
	hold     int
	n        int
	dropped  []int // per subserver, -1: none
	cut      []int
	at       event.Peer
	budget   int
	wrote    int
	hops     int
	appended func(id event.ReqID, hop int) []event.Token
}

func (s *solo) write(t event.Token) (over bool) {
	s.text, s.by = append(s.text, t), append(s.by, s.at)
	s.wrote++
	s.emit()
	return t == s.eos || len(s.text) == s.most
}

func (s *solo) emit() { s.out = max(s.out, len(s.text)-s.hold) }

func (s *solo) spent() bool { return s.at != event.Front && s.budget > 0 && s.wrote >= s.budget }

// move hands the request on; true where receive wrote the last token.
func (s *solo) move(to event.Peer, budget int) (over bool) {
	for {
		s.hops++
		s.at, s.budget, s.wrote = to, max(0, budget), 0
		for _, t := range s.appended(s.id, s.hops) {
			if s.write(t) {
				return true
			}
			if s.spent() {
				break
			}
		}
		if !s.spent() {
			return false
		}
		to, budget = event.Front, 0
	}
}

// step decides about one position; true where the text is over.
func (s *solo) step(r event.RowResult) (over bool) {
	pos, home := len(s.text), event.Front
	legal := r.Dest >= 0 && int(r.Dest) < s.n
	if r.Action != event.Keep && r.Dest == s.at {
		legal = false
	}
	switch {
	case r.Action == event.Truncate && r.At != pos:
		legal = legal && r.Hold > 0 && r.At < pos && r.At >= s.out && r.At > s.cut[s.at] && r.At != s.dropped[s.at]
	case r.Action != event.Keep:
		legal = legal && s.dropped[s.at] != pos
	}
	dest, budget := r.Dest, r.Budget
	s.hold = max(0, r.Hold)
	switch {
	case !legal:
		dest, budget = home, 0
		over = s.write(r.Output.Token)
	case r.Action == event.Truncate && r.At < pos:
		s.text, s.by = s.text[:r.At], s.by[:r.At]
		for p := range s.dropped {
			if s.dropped[p] > r.At {
				s.dropped[p] = -1
			}
		}
		s.cut[s.at], s.dropped[s.at] = r.At, r.At
	case r.Action != event.Keep:
		s.dropped[s.at] = pos
	default:
		over = s.write(r.Output.Token)
	}
	s.emit()
	if over {
		return true
	}
	if s.spent() && dest != home {
		dest, budget = home, 0
	}
	return dest != s.at && s.move(dest, budget)
}

func (s *solo) run(router func(event.Peer, sched.View) event.RowResult) (out []wrote) {
	for {
		r := router(s.at, sched.View{ID: s.id, Tokens: s.text, Emitted: s.out, PromptLen: s.prompt, MaxLen: s.most})
		if s.step(r) {
			break
		}
	}
	for k := s.prompt; k < len(s.text); k++ {
		out = append(out, wrote{s.text[k], s.by[k]})
	}
	return out
}

// Routers that hold tokens back and take some back, rightly and wrongly, and
// receive that writes: whatever the cluster, the policy, the options and the
// order of messages, each request's tokens and writers are those of a single
// loop (INV-16, 18, 19, 20), no KV is computed twice but where some was taken,
// and everybody ends.
func TestTruncationIsTheLoops(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		cfgs := plain(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cluster") })
		n := len(cfgs)
		seed, most := rapid.Uint64().Draw(t, "router"), rapid.IntRange(1, 7).Draw(t, "hold")
		requests := rapid.IntRange(1, 8).Draw(t, "requests")
		if rapid.Bool().Draw(t, "special") {
			chunk, budget := rapid.IntRange(0, 4).Draw(t, "chunk"), rapid.IntRange(0, 6).Draw(t, "budget")
			over, private := rapid.IntRange(100, 500).Draw(t, "overcommit"), rapid.Bool().Draw(t, "private")
			resubmit := rapid.IntRange(0, 3).Draw(t, "resubmit") == 0
			for i := range cfgs {
				cfgs[i].Chunk, cfgs[i].Budget, cfgs[i].Overcommit, cfgs[i].NoPrefix, cfgs[i].Resubmit = chunk, budget, over, private, resubmit
			}
		}
		appended := func(id event.ReqID, hop int) (ids []event.Token) {
			h := hash(seed, uint64(id), uint64(hop), 5)
			for k := range h % 16 / 13 {
				ids = append(ids, event.Token(h>>(8+3*k)%23))
			}
			return ids
		}
		router := holdRouter(seed, n, most, false)
		w, err := newWorld(cfgs, func(_ event.Peer, m *event.PeerReq, _ sched.View) event.Verdict {
			more := appended(m.ID, int(m.Hop))
			if more == nil {
				return event.Verdict{}
			}
			return event.Verdict{Kind: event.Append, Ids: append(slices.Clone(m.Suffix), more...)}
		})
		must(t, err)
		w.router = router
		p := policy(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "policy") }, n)
		p.W = 40
		for i := range cfgs {
			must(t, w.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p}))
		}
		stable(t, w, requests)
		arrivals := slices.Clone(w.log)
		must(t, w.drain(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 6)).IntN, 1, true))
		must(t, w.leftovers())
		must(t, replay(cfgs, w.log, len(w.log)/2))
		for _, e := range arrivals {
			a := e.ev.Arrival
			if a == nil || w.done[e.ev.Req] == event.ReasonError {
				continue
			}
			s := &solo{
				id: e.ev.Req, text: slices.Clone(a.Prompt), by: make([]event.Peer, len(a.Prompt)), prompt: len(a.Prompt), most: len(a.Prompt) + a.MaxTokens,
				eos: a.EOS[0], out: len(a.Prompt), n: n, dropped: make([]int, n), cut: make([]int, n), appended: appended,
			}
			for p := range n {
				s.dropped[p] = -1
			}
			if want := s.run(router); !reflect.DeepEqual(w.text[e.ev.Req], want) {
				t.Fatalf("request %d is\n%v, alone\n%v", e.ev.Req, w.text[e.ev.Req], want)
			}
		}
		if cfgs[0].Overcommit <= 100 && !cfgs[0].Resubmit && w.seen["row recomputed"] > 0 {
			t.Fatalf("INV-14: %d rows recompute, but nothing was taken", w.seen["row recomputed"])
		}
		for name, k := range w.seen {
			seen[name] += k
		}
	})
	for _, name := range []string{"truncate", "emit for another", "emit later", "note fault", "note budget", "preempt", "row cached", "finish stop", "finish length"} {
		if seen[name] < 5 {
			t.Errorf("%q happened %d times; the test has lost its sense", name, seen[name])
		}
	}
	t.Log(seen)
}

// Peers that die and forget: what is not lost with them ends with the tokens and
// writers as if nobody had died, also where tokens are held back in the message
// that has to be sent again. Only the front truncates, as what a subserver has
// truncated to dies with it.
func TestDeathsWhileHolding(t *testing.T) {
	resent, compared := 0, 0
	for seed := range uint64(4 * lives) {
		rng := rand.New(rand.NewPCG(seed, 12))
		cfgs := fabric.Uniform([]int{3, 3, 3}, []int{96, 96, 96}, 4)
		for i := range cfgs {
			cfgs[i].Timeout, cfgs[i].Chunk, cfgs[i].Resubmit = 3000, int(seed%4), seed%5 == 4
		}
		decide := holdRouter(seed, len(cfgs), 1+int(seed%6), true)
		run := func(deaths bool) *world {
			w, err := newWorld(cfgs, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.router = func(p event.Peer, v sched.View) event.RowResult {
				r := decide(p, v)
				if p != event.Front || r.Action == event.Drop {
					r.Action = event.Keep
				}
				return r
			}
			for id := event.ReqID(1); id <= 20 && err == nil; id++ {
				err = w.arrive(id, &event.Arrival{Prompt: []event.Token{1, event.Token(id)}, MaxTokens: 4 + int(id)%14, EOS: []event.Token{7}})
				for range rng.IntN(60) {
					w.now++
					switch ms := w.moves(); {
					case err != nil:
					case deaths && rng.IntN(40) == 0:
						err = w.restart(event.Peer(1 + rng.IntN(2)))
					case len(ms) > 0:
						err = w.make(ms[rng.IntN(len(ms))])
					}
				}
			}
			if err == nil {
				err = w.drain(rng.IntN, 1, true)
			}
			if err == nil {
				err = w.leftovers()
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return w
		}
		calm, w := run(false), run(true)
		for id, reason := range w.done {
			if reason == event.ReasonError {
				if !w.f.Lost(id) {
					t.Errorf("seed %d: request %d ends with an error and lost no pen", seed, id)
				}
				continue
			}
			compared++
			if calm.done[id] != reason || !reflect.DeepEqual(calm.text[id], w.text[id]) {
				t.Errorf("seed %d: request %d is %v %v in place of %v %v", seed, id, reason, w.text[id], calm.done[id], calm.text[id])
			}
		}
		resent += w.seen["note resend"]
	}
	if resent < 20 || compared < 100 {
		t.Errorf("%d messages sent again, %d requests compared; the test has lost its sense", resent, compared)
	}
	t.Log(resent, compared)
}
