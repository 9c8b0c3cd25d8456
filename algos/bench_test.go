package algos_test

import (
	"fmt"
	"runtime"
	"testing"

	"tokenrouter/algos"
	"tokenrouter/algos/internal/routertest"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

// BenchmarkRouters is what a shipped router costs per decode step in Lua: route, and
// send and receive where the step hands the request over, at the model that is
// named, over rows of which some are unsure. Heads are answered at once: what they
// cost themselves is for package head to say.
func BenchmarkRouters(b *testing.B) {
	for _, r := range algos.Routers() {
		for self, role := range event.Roles(2) {
			b.Run(r.Name+"/"+role, func(b *testing.B) { benchRouter(b, r.Name, r.Text, event.Peer(self)) })
		}
	}
}

func benchRouter(b *testing.B, name, text string, self event.Peer) {
	var knobs map[string]float64
	if self != event.Front {
		knobs = toLarge[name]
	}
	vms := routertest.Load(b, name+".lua", text, 2, 1, knobs, benchHeads{})
	const prompt = 50
	rows := make([]scripting.Row, 64)
	for i := range rows {
		o := routertest.Signals(rng.Key{Seed: 2, Req: uint64(i)})
		if i%8 > 0 { // as real models are: sure of most tokens
			o.Entropy, o.EntropyNorm, o.Top1 = o.Entropy/100, o.EntropyNorm/100, 1-(1-o.Top1)/100
		}
		rows[i] = scripting.Row{
			Req: 1, Output: &o, Pos: prompt + i, PromptLen: prompt, Step: i, Prefill: i == 0, Emitted: max(prompt, prompt+i-vms[0].Program().Hold),
		}
	}
	held := make([]event.Token, prompt+len(rows))
	var first, fields []byte // r.state at the first row, and what the other's send gave
	if self != event.Front {
		first, fields = askedBy(b, vms, rows, held)
	}
	var state []byte
	handed := 0
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		row := &rows[i%len(rows)]
		if i%len(rows) == 0 {
			state = first // another request
		}
		row.State, row.Fields = state, fields
		d := vms[self].Route(row)
		if d.Fault != "" {
			b.Fatal(d.Fault)
		}
		state = d.State
		if d.Dest != self {
			handed++
			handOver(b, vms, row, self, d.Dest, held)
		}
	}
	b.ReportMetric(float64(threadTime()-start)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(100*float64(handed)/float64(b.N), "%handed")
}

// askedBy finds a row at which the small model brings the large one in, and tells
// what the large one then has of it.
func askedBy(b *testing.B, vms []*scripting.VM, rows []scripting.Row, held []event.Token) (state, fields []byte) {
	for i := range rows {
		row := rows[i]
		row.State = state
		d := vms[event.Front].Route(&row)
		if state = d.State; d.Dest != event.Front {
			return state, handOver(b, vms, &row, event.Front, d.Dest, held)
		}
	}
	return nil, nil
}

// handOver is send at one subserver and receive at another.
func handOver(b *testing.B, vms []*scripting.VM, row *scripting.Row, from, to event.Peer, held []event.Token) []byte {
	_, fields, fault := vms[from].Send(row, to)
	msg := event.PeerReq{ID: row.Req, From: from, Loc: row.Pos, Status: event.Alive, Fields: fields, State: row.State}
	if v := vms[to].Receive(&msg, held[:row.Pos]); fault != "" || v.Fault != "" {
		b.Fatal(fmt.Sprint(fault, v.Fault))
	}
	return fields
}

// toLarge is knobs that bring a request to the large model at once, of routers that
// do so for whole requests.
var toLarge = map[string]map[string]float64{
	"query_mix": {"share": 1}, "query_length": {"length": 1}, "query_probe": {"threshold": 0}, "query_head": {"threshold": 0},
}

// benchHeads says of one row in eight that the large model should write.
type benchHeads struct{}

func (benchHeads) Check(string) error { return nil }

func (benchHeads) Score(head string, row *scripting.Row) (float64, error) {
	if unsure := row.Pos%8 == 0; unsure != (head == "citer") {
		return 0.99, nil
	}
	return 0.01, nil
}
