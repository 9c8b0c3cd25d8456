// Package routertest plays a router by the book for the tests of algorithms:
// one request, one VM per model, decisions applied as they are made, without
// scheduler and messages.
//
// The invariant that matters: what is played here and what a reference loop
// writes differ only if the router and the algorithm differ.
package routertest

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"

	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/scripting"
)

// Load compiles a router and opens a VM at every subserver. set moves knobs
// from their defaults.
func Load(t testing.TB, file, text string, peers int, seed uint64, set map[string]float64) []*scripting.VM {
	t.Helper()
	p, err := scripting.Compile(file, text)
	if err != nil {
		t.Fatal(err)
	}
	knobs := scripting.NewKnobs()
	knobs.Declare(p)
	for name, v := range set {
		if err := knobs.Set(name, v, "flag"); err != nil {
			t.Fatal(err)
		}
	}
	vms := make([]*scripting.VM, peers)
	for self := range vms {
		vms[self], err = scripting.NewVM(scripting.Env{
			Self: event.Peer(self), Peers: peers, Seed: seed, Vocab: Vocab, Knobs: knobs,
		}, p)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(vms[self].Close)
	}
	return vms
}

// Play runs a request under a router. A fault fails the test, and so does a
// second DROP of one subserver at one position.
func Play(t testing.TB, run reference.Run, vms []*scripting.VM) reference.Result {
	t.Helper()
	w := run.Begin()
	var state, fields []byte
	self := event.Front
	droppedHere := map[event.Peer]int{}
	for step := 0; ; {
		o := w.Next(self)
		row := scripting.Row{
			Req: run.Req, Output: &o, Pos: w.Pos(), PromptLen: len(run.Prompt), Step: step,
			Prefill: step == 0, State: state, Fields: fields,
		}
		d := vms[self].Route(&row)
		if d.Fault != "" {
			t.Fatal(d.Fault)
		}
		state = d.State
		row.State = state
		if d.Action == event.Drop {
			if at, ok := droppedHere[self]; ok && at == w.Pos() {
				t.Fatalf("subserver %d drops twice at %d", self, at)
			}
			droppedHere[self] = w.Pos()
			w.Drop(self, o)
		} else {
			step++
			if !w.Commit(self, o) {
				return w.Result
			}
		}
		if d.Dest == self {
			continue
		}
		_, f, fault := vms[self].Send(&row, d.Dest)
		if fault != "" {
			t.Fatal(fault)
		}
		self, fields = d.Dest, f
	}
}

// Vocab is the vocabulary of the models here.
const Vocab = 64

// EOS ends an answer of the models here.
const EOS event.Token = 0

// Model invents a language model: tokens and signals are a function of the
// tokens before and of the model's number. Entropies fall on a grid, so that
// thresholds are met exactly.
type Model struct{ Number int }

// Next implements reference.Model.
func (m Model) Next(tokens []event.Token, req event.ReqID, pos int) event.Output {
	h := fnv.New64a()
	for _, t := range tokens[max(len(tokens)-6, 0):] {
		_ = binary.Write(h, binary.LittleEndian, t)
	}
	key := rng.Key{Seed: h.Sum64(), Req: uint64(req), Pos: pos, Model: m.Number}
	o := Signals(key)
	o.Token = event.Token(key.Uint64(9) % Vocab)
	return o
}

// Signals draws a row's signals on a grid of 1/64 of ln V.
func Signals(key rng.Key) event.Output {
	norm := math.Floor(64*key.Float64(0)*key.Float64(1)) / 64
	top := float32(1 - norm)
	return event.Output{
		Token: event.Token(key.Uint64(2) % Vocab), Entropy: float32(norm * math.Log(Vocab)), EntropyNorm: float32(norm),
		Top1: top, Top2: (1 - top) / 2, LogSumExp: float32(10 * key.Float64(3)),
	}
}

// Models returns n different models.
func Models(n int) []reference.Model {
	out := make([]reference.Model, n)
	for i := range out {
		out[i] = Model{Number: i}
	}
	return out
}
