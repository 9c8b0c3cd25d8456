package live_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/algos"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting/library"
)

// slow is an instant runner whose steps take a time.
type slow struct {
	instant
	takes time.Duration
}

func (s *slow) Run(ctx context.Context, b *event.Batch, out []event.Output) ([]event.Output, error) {
	<-time.After(s.takes) // virtual: inside a synctest bubble
	return s.instant.Run(ctx, b, out)
}

// open is a cluster of slow runners in the open loop.
type open struct {
	arrivals string
	limit    int
	kv       int
	out      event.Output
	takes    [2]time.Duration
	tape     *tape.Tape
	with     func(*live.Config) // changes what the runtime is made of
}

func (o *open) runtime(t *testing.T) *live.Runtime {
	t.Helper()
	a, err := workload.ParseArrivals(o.arrivals, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := live.Config{
		Runners: []runner.Runner{&slow{instant{out: o.out}, o.takes[0]}, &slow{instant{out: o.out}, o.takes[1]}},
		Pacer:   paced.NewPacer(), Vocab: 424, Profile: profile(t, 2),
		Prompt:     func(string) ([]event.Token, error) { return []event.Token{1, 2, 3, 4}, nil },
		TokenBytes: func(event.Token) ([]byte, bool) { return []byte(" x"), false },
		TokenText:  func(event.Token) string { return " x" },
		Context:    512, Seats: 4, KVTokens: o.kv, MaxTokens: 10,
		Arrivals: a, Source: &endless{}, Limit: o.limit,
		Library: library.Library{Dir: t.TempDir(), Embedded: algos.Routers()}, Router: "r2r",
		Tape: o.tape, Guard: guard.New("", func(c guard.Crash) { t.Errorf("%s panicked: %v\n%s", c.Name, c.Value, c.Stack) }),
	}
	if o.with != nil {
		o.with(&cfg)
	}
	rt, err := live.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// arrivedAt lists when requests arrived at the front.
func arrivedAt(recs []tape.Record) (at []time.Duration) {
	for i := range recs {
		if ev := recs[i].Event; ev != nil && ev.Kind == event.Arrive {
			at = append(at, time.Duration(recs[i].At))
		}
	}
	return at
}

// Requests arrive at their times to the nanosecond, however far the cluster is
// behind, and the run says that the rate was kept.
func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		rec := tape.New()
		sub := rec.Subscribe()
		rt := (&open{
			arrivals: "poisson:50", limit: n, kv: 64, takes: [2]time.Duration{70 * time.Millisecond, 200 * time.Millisecond}, tape: rec,
		}).runtime(t)
		rt.Start()
		<-rt.Done()
		closeRuntime(t, rt)
		recs := sub.Next(nil, 0)
		want, err := workload.Poisson(1, 50)
		if err != nil {
			t.Fatal(err)
		}
		at := arrivedAt(recs)
		if len(at) != n {
			t.Fatalf("%d arrivals, want %d", len(at), n)
		}
		for i, got := range at {
			if due, _ := want.Next(); got != due {
				t.Fatalf("request %d arrived at %s, was due at %s", i+1, got, due)
			}
		}
		if o := rt.Offered(); o.Arrived != n || o.Late != 0 || o.Requested != 50 {
			t.Errorf("offered %+v", o)
		}
		said, setting, done := "", "", 0
		for _, r := range recs {
			switch h := r.Host.(type) {
			case *tape.Message:
				said += h.Text + "\n"
			case *tape.Setting:
				if h.Setting == "arrivals" {
					setting = h.New
				}
			case *tape.Result:
				done++
			}
		}
		if setting != "poisson:50" || done != n || !strings.Contains(said, "40 arrivals came at ") {
			t.Errorf("setting %q, %d results, said %q", setting, done, said)
		}
	})
}

// A trace that ends ends the run, without a limit.
func TestOpenLoopEndsWithItsTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := tape.New()
		sub := rec.Subscribe()
		rt := (&open{arrivals: "trace:testdata/arrivals.csv", kv: 1024, takes: [2]time.Duration{1, 1}, tape: rec}).runtime(t)
		rt.Start()
		<-rt.Done()
		closeRuntime(t, rt)
		at := arrivedAt(sub.Next(nil, 0))
		if len(at) != 3 || at[2] != 1500*time.Millisecond {
			t.Errorf("arrivals at %v", at)
		}
	})
}

// While the large model is slow and its queue full, everything else goes on:
// requests arrive on time and are shown as waiting at the front, settings answer,
// and a request that waits can be cancelled at once (case E9).
func TestOpenLoopBackPressureIsVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := tape.New()
		sub := rec.Subscribe()
		// Every token of the small model goes to the large one, whose steps take
		// longer than the test looks. The pool holds two requests.
		rt := (&open{
			arrivals: "uniform:10", kv: 32, out: event.Output{Entropy: 5},
			takes: [2]time.Duration{time.Millisecond, 20 * time.Second}, tape: rec,
		}).runtime(t)
		rt.Start()
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		recs := sub.Next(nil, 0)
		if n := len(arrivedAt(recs)); n != 100 {
			t.Errorf("%d arrivals in 10 s at 10 a second", n)
		}
		if ld := lastLoad(recs, event.Front); ld.Waiting != 98 || ld.Active != 2 {
			t.Errorf("the front shows %+v, want 98 waiting and 2 active", ld)
		}
		rt.Cancel(50)
		if err := rt.SetPolicy("fixed:1,2"); err != nil {
			t.Error(err)
		}
		if err := rt.SetConcurrency(3); err == nil || !strings.Contains(err.Error(), "uniform:10") {
			t.Errorf("concurrency in the open loop: %v", err)
		}
		synctest.Wait()
		recs = sub.Next(nil, 0)
		if ld := lastLoad(recs, event.Front); ld.Waiting != 97 {
			t.Errorf("after a cancel the front shows %+v", ld)
		}
		if res := results(recs); len(res) != 1 || res[0].Req != 50 || res[0].Reason != "aborted" {
			t.Errorf("results %+v", res)
		}
		closeRuntime(t, rt)
		if res := results(sub.Next(nil, 0)); len(res) != 99 {
			t.Errorf("%d requests ended at the close, want 99", len(res))
		}
	})
}

func lastLoad(recs []tape.Record, p event.Peer) (ld tape.Load) {
	for i := range recs {
		if r := &recs[i]; r.Kind == tape.KindLoad && r.Core == p {
			ld = *r.Load
		}
	}
	return ld
}

func results(recs []tape.Record) (out []*tape.Result) {
	for i := range recs {
		if res, ok := recs[i].Host.(*tape.Result); ok {
			out = append(out, res)
		}
	}
	return out
}

// While a run is paused the schedule of arrivals stands still, whether one would
// have come meanwhile or not, as it does in virtual time.
func TestPauseHoldsArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := tape.New()
		sub := rec.Subscribe()
		rt := (&open{arrivals: "uniform:1", kv: 1024, takes: [2]time.Duration{1, 1}, tape: rec}).runtime(t)
		pause := func(after, d time.Duration) {
			time.Sleep(after)
			synctest.Wait()
			rt.SetPaused(true)
			time.Sleep(d)
			rt.SetPaused(false)
		}
		rt.Start()
		pause(2500*time.Millisecond, 10*time.Second)
		pause(700*time.Millisecond, 200*time.Millisecond) // between two of them
		time.Sleep(2 * time.Second)
		synctest.Wait()
		at := arrivedAt(sub.Next(nil, 0))
		want := []time.Duration{time.Second, 2 * time.Second, 13 * time.Second, 14200 * time.Millisecond, 15200 * time.Millisecond}
		if !slices.Equal(at, want) {
			t.Fatalf("arrivals at %v, want %v", at, want)
		}
		if o := rt.Offered(); o.Late != 0 || o.Achieved != 1 {
			t.Errorf("offered %+v", o)
		}
		closeRuntime(t, rt)
	})
}

// Close ends a run whose next arrival is far away.
func TestCloseDoesNotWaitForArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := (&open{arrivals: "uniform:0.0001", kv: 1024, takes: [2]time.Duration{1, 1}, tape: tape.New()}).runtime(t)
		rt.Start()
		before := time.Now()
		closeRuntime(t, rt)
		if d := time.Since(before); d > time.Second {
			t.Errorf("closing took %s", d)
		}
	})
}

// Follow-up questions to the embedded models: the story so far is found in the
// cache, one turn follows the other, and the answers are as right as those to
// single questions.
func TestFollowUpQuestions(t *testing.T) {
	for _, arrivals := range []string{"closed", "poisson:1000"} {
		t.Run(arrivals, func(t *testing.T) {
			c, err := workload.NewConversations(3, workload.Light)
			if err != nil {
				t.Fatal(err)
			}
			s := setup{models: []string{"tiny-37k", "tiny-114k"}, tape: tape.New()}
			sub := s.tape.Subscribe()
			rt := (&open{arrivals: arrivals, kv: 16384, tape: s.tape, with: func(cfg *live.Config) {
				embedded(t, cfg, s.models...)
				cfg.Router, cfg.Source, cfg.Concurrency = "large_only", c, 4
				if cfg.Arrivals == nil {
					cfg.Limit = 40
				} else {
					cfg.Arrivals = &few{cfg.Arrivals, 12}
				}
			}}).runtime(t)
			rt.Start()
			<-rt.Done()
			closeRuntime(t, rt)
			recs := sub.Next(nil, 0)
			checkTape(t, s, recs)
			ended := map[string]bool{}
			right, later, cached := 0, 0, 0
			first := map[event.ReqID]bool{} // later turns that the large model has not seen yet
			for i := range recs {
				if c := recs[i].Command; c != nil && c.Kind == event.RunBatch && recs[i].Core == 1 {
					for _, row := range c.Batch.Rows {
						if first[row.Req] && row.Start >= model.BlockLen {
							cached++
						}
						delete(first, row.Req)
					}
				}
				switch h := recs[i].Host.(type) {
				case *tape.Request:
					conversation, turn, _ := strings.Cut(h.Task, ".")
					if turn != "0" {
						later++
						first[h.Req] = true
						if before := conversation + "." + string(turn[0]-1); !ended[before] {
							t.Errorf("%s was asked before %s was answered", h.Task, before)
						}
					}
				case *tape.Result:
					ended[h.Task] = true
					if h.Correct {
						right++
					}
				}
			}
			if later < 12 || cached != later || 10*right < 8*len(ended) {
				t.Errorf("%d requests: %d later turns, %d of them began in the cache; %d right answers", len(ended), later, cached, right)
			}
		})
	}
}

// In virtual time requests arrive to the nanosecond as well, the last of a trace
// included, and follow-up turns give the same tape each time.
func TestOpenLoopInVirtualTime(t *testing.T) {
	var first []byte
	for range 2 {
		c, err := workload.NewConversations(8, workload.Light)
		if err != nil {
			t.Fatal(err)
		}
		rec := tape.New()
		sub := rec.Subscribe()
		rt := (&open{arrivals: "trace:testdata/arrivals.csv", kv: 4096, tape: rec, with: func(cfg *live.Config) {
			cfg.Runners = []runner.Runner{&instant{}, &instant{}}
			cfg.Virtual, cfg.Pacer, cfg.Source = true, nil, c
		}}).runtime(t)
		rt.Start()
		<-rt.Done()
		closeRuntime(t, rt)
		recs := sub.Next(nil, 0)
		due := map[time.Duration]bool{0: true, 500 * time.Millisecond: true, 1500 * time.Millisecond: true}
		began, turns := 0, 0
		for i := range recs {
			req, ok := recs[i].Host.(*tape.Request)
			switch {
			case !ok:
			case !strings.HasSuffix(req.Task, ".0"):
				turns++
			case due[time.Duration(recs[i].At)]:
				began++
			default:
				t.Errorf("%s began at %s", req.Task, time.Duration(recs[i].At))
			}
		}
		if n := len(results(recs)); began != 3 || turns < 3 || n != began+turns {
			t.Errorf("%d conversations began, %d later turns, %d results", began, turns, n)
		}
		if o := rt.Offered(); o.Arrived != 3 || o.Late != 0 || o.Achieved != 2 || o.Off() {
			t.Errorf("offered %+v", o)
		}
		if bytes := written(t, recs); first == nil {
			first = bytes
		} else if string(first) != string(bytes) {
			t.Error("a second run wrote another tape")
		}
	}
}

// few ends after n arrivals.
type few struct {
	workload.Arrivals
	n int
}

func (f *few) Next() (time.Duration, bool) {
	if f.n--; f.n < 0 {
		return 0, false
	}
	return f.Arrivals.Next()
}

// embedded lets a runtime have real models.
func embedded(t *testing.T, cfg *live.Config, names ...string) {
	t.Helper()
	for i, name := range names {
		cfg.Runners[i] = native.NewWithBlocks(loadModel(t, name), i, cfg.KVTokens/model.BlockLen)
	}
	front := loadModel(t, names[0])
	tok := front.Tokenizer
	cfg.Prompt = func(q string) ([]event.Token, error) {
		return tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: q}})
	}
	cfg.TokenBytes = func(id event.Token) ([]byte, bool) { return tok.Bytes(id), tok.IsSpecial(id) }
	cfg.TokenText = func(id event.Token) string { return string(tok.Bytes(id)) }
	cfg.EOS, cfg.MaxTokens, cfg.Seats = front.EOS(), 160, 32
}
