package fabric_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

func TestNewRefuses(t *testing.T) {
	two := fabric.Uniform([]int{1, 1}, []int{64, 64}, 4)
	for _, tc := range []struct {
		cfgs []sched.Config
		want string
	}{
		{nil, "at least one"},
		{[]sched.Config{two[1], two[0]}, "configuration 0 is that of subserver 1"},
		{two[:1], "cluster of 2, not 1"},
		{fabric.Uniform([]int{1, 0}, []int{64, 64}, 4), "seats"},
	} {
		if _, err := fabric.New(tc.cfgs, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

func TestRestartRefuses(t *testing.T) {
	f, err := fabric.New(fabric.Uniform([]int{1, 1}, []int{64, 64}, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []event.Peer{-1, 0, 2} {
		if err := f.Restart(p); err == nil {
			t.Errorf("subserver %d was restarted", p)
		}
	}
	if _, _, ok := f.Deliver(0, 1, 0, nil); ok {
		t.Error("delivered what nobody sent")
	}
}

// A clone taken anywhere and its original go on alike and apart: the same
// moves give the same commands in both (case E11).
func TestClone(t *testing.T) {
	f, err := fabric.New(fabric.Uniform([]int{2, 2, 2}, []int{64, 64, 64}, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	decide := fakeRouter(5, 3)
	rng := rand.New(rand.NewPCG(7, 7))
	move := func(f *fabric.Fabric, at int64, what, from, to int) []byte {
		var cmds []event.Command
		p := event.Peer(to % 3)
		switch what {
		case 0:
			cmds = f.Step(0, &event.Event{Kind: event.Arrive, At: at, Req: event.ReqID(at), Arrival: &event.Arrival{Prompt: []event.Token{1, 2}, MaxTokens: 9}}, nil)
		case 1:
			cmds = f.Step(p, &event.Event{Kind: event.Dispatch, At: at}, nil)
		case 2:
			if b := f.Core(p).Running(); b != nil {
				res := &event.StepResult{Batch: b.ID}
				for _, row := range b.Rows {
					v, _ := f.Core(p).View(row.Req)
					r := decide(p, v)
					r.Req = row.Req
					res.Rows = append(res.Rows, r)
				}
				cmds = f.Step(p, &event.Event{Kind: event.StepDone, At: at, Step: res}, nil)
			}
		default:
			_, cmds, _ = f.Deliver(event.Peer(from%3), p, at, nil)
		}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		return encode(cmds)
	}
	finished := 0
	for at := range int64(3000) {
		what, from, to := min(rng.IntN(12), 3), rng.IntN(3), rng.IntN(3)
		if what == 0 && at%4 != 0 {
			what = 1
		}
		var g *fabric.Fabric
		if at%50 == 0 {
			g = f.Clone()
			for ahead := range int64(20) {
				// The clone runs ahead and must not disturb the original.
				move(g, at+1+ahead, int(ahead%4), int(ahead), int(ahead/2))
			}
			g = f.Clone()
		}
		cmds := move(f, at+1, what, from, to)
		if g != nil && !bytes.Equal(move(g, at+1, what, from, to), cmds) {
			t.Fatalf("the clone made at %d goes on in another way", at)
		}
		finished = f.Core(0).Counts().Finished
	}
	if finished < 10 {
		t.Fatalf("only %d requests finished", finished)
	}
}
