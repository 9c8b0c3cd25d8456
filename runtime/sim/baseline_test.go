package sim_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sim"
)

// The policy lock-step is the vector (N, 1), byte for byte, and so the public R2R
// loop, whose throughput has a closed form (§2.3). It obeys no guard: one of 1 ms
// changes nothing.
func TestLockStepIsItsVector(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		const p, t0, t1 = 0.35, 6, 27.9
		cfg := of(t, r2r(n, p, t0, t1, n, 1), 3, 60*second)
		vector, want := logged(t, cfg)
		cfg.Policy = event.Policy{Kind: event.LockStep, W: ms}
		loop, got := logged(t, cfg)
		if a, b := orders(want), orders(got); !bytes.Equal(a, b) || !reflect.DeepEqual(vector.Cores, loop.Cores) {
			t.Errorf("N=%d: the loop makes %.3f tok/s, its vector %.3f", n, loop.Rate, vector.Rate)
		}
		exact := 1000 * float64(n) / (t0 + t1*(1-math.Pow(1-p, float64(n))))
		if math.Abs(loop.Rate-exact) > 4.5*loop.RateErr {
			t.Errorf("N=%d: the loop makes %.3f ± %.3f tok/s, the closed form says %.3f", n, loop.Rate, loop.RateErr, exact)
		}
	}
}

// orders is what the cores ordered, as bytes.
func orders(log []entry) (out []byte) {
	for i := range log {
		for j := range log[i].cmds {
			out = event.AppendCommand(out, &log[i].cmds[j])
		}
	}
	return out
}

// One request at a time is one client, whoever waits behind it: the same batches
// at the same times.
func TestSequentialIsOneClient(t *testing.T) {
	type batch struct {
		at   int64
		core event.Peer
		rows []event.Row
	}
	batches := func(clients, active int) (out []batch) {
		cfg := of(t, r2r(8, 0.35, 6, 27.9, 1, 1), 5, 20*second)
		cfg.Cluster = sim.Roomy(8, 8, 8)
		cfg.Clients, cfg.Length = clients, sim.Fixed(40)
		for i := range cfg.Cluster {
			cfg.Cluster[i].MaxActive = active
		}
		_, log := logged(t, cfg)
		for _, e := range log {
			for _, c := range e.cmds {
				if c.Kind == event.RunBatch {
					out = append(out, batch{e.ev.At, e.core, c.Batch.Rows})
				}
			}
		}
		return out
	}
	alone := batches(1, 0)
	if got := batches(8, 1); !reflect.DeepEqual(got, alone) || len(alone) < 1000 {
		t.Errorf("%d batches of 8 clients one at a time, %d of one client", len(got), len(alone))
	}
}

// Under Resubmit a request that changes hands is fed as a prompt: without a
// prefix cache the whole text, with one what lies behind the blocks found. The
// step pays for just that: p tokens of prefill and no decode row. Tokens and
// their writers are the same.
func TestResubmitPaysForWhatItFeeds(t *testing.T) {
	profile := cost.Profile{}
	for _, base := range []float64{6, 27.9} {
		profile.Rows = append(profile.Rows, cost.Row{Base: base, PerDecodeRow: 0.1, PerPrefillToken: 0.5})
	}
	type written struct {
		by    event.Peer
		token event.Token
	}
	type spot struct {
		req event.ReqID
		pos int
	}
	run := func(resubmit, private bool) (fed, recomputed int, rate float64, text map[spot]written) {
		cfg := of(t, r2r(4, 0.35, 6, 27.9, 1, 1), 7, 0)
		cfg.Cluster = fabric.Uniform([]int{4, 4}, []int{4096, 4096}, 16)
		for i := range cfg.Cluster {
			cfg.Cluster[i].Resubmit, cfg.Cluster[i].NoPrefix = resubmit, private
		}
		cfg.Step, cfg.Length, cfg.Prompt, cfg.Requests, cfg.Until = profile.Step, sim.Fixed(60), 40, 24, 0
		res, log := logged(t, cfg)
		text = map[spot]written{}
		var began [2]time.Duration
		var runs [2]*event.Batch
		held := map[event.ReqID]event.Peer{} // who has the KV
		for _, e := range log {
			now := time.Duration(e.ev.At)
			if b := runs[e.core]; e.ev.Kind == event.StepDone && b != nil {
				sums := cost.Of(b)
				if want := profile.Step(int(e.core), &sums); now-began[e.core] != want {
					t.Fatalf("a step of %v takes %v, want %v", b, now-began[e.core], want)
				}
			}
			for _, c := range e.cmds {
				switch c.Kind {
				case event.Emit:
					text[spot{c.Req, c.Pos}] = written{e.core, c.Token}
				case event.RunBatch:
					runs[e.core], began[e.core] = c.Batch, now
					var want cost.Batch
					for i := range c.Batch.Rows {
						row := &c.Batch.Rows[i]
						fed += len(row.Tokens)
						recomputed += row.Recomputed
						owner, known := held[row.Req]
						anew := !known || owner != e.core
						held[row.Req] = e.core
						if !resubmit {
							continue
						}
						if row.Prefill != anew || anew && private && row.Start != 0 || !anew && len(row.Tokens) != 1 {
							t.Fatalf("new here: %v, but %+v", anew, row)
						}
						if anew {
							want.Prefill += len(row.Tokens)
						} else {
							want.Decode++
						}
					}
					if sums := cost.Of(c.Batch); resubmit && (sums.Prefill != want.Prefill || sums.Decode != want.Decode) {
						t.Fatalf("%v costs %d prefill tokens and %d decode rows, want %d and %d", c.Batch, sums.Prefill, sums.Decode, want.Prefill, want.Decode)
					}
				}
			}
		}
		return fed, recomputed, res.Rate, text
	}
	fed, again, rate, want := run(false, false)
	fedFound, againFound, rateFound, found := run(true, false)
	fedAnew, againAnew, rateAnew, anew := run(true, true)
	t.Logf("tokens fed, again, tok/s: handed over %d %d %.1f; new requests %d %d %.1f; without a prefix cache %d %d %.1f",
		fed, again, rate, fedFound, againFound, rateFound, fedAnew, againAnew, rateAnew)
	if !reflect.DeepEqual(found, want) || !reflect.DeepEqual(anew, want) || len(want) != 24*60 {
		t.Error("new requests in place of hand-offs change tokens or writers")
	}
	if again != 0 || againFound == 0 || againAnew <= againFound {
		t.Error("ever more is fed again; the test has lost its sense")
	}
	if fedFound-fed != againFound || fedAnew-fed != againAnew {
		t.Error("what is fed beyond a hand-off is not what counts as recomputed")
	}
	if rateFound >= rate || rateAnew >= rateFound {
		t.Error("feeding again costs no time")
	}
}
