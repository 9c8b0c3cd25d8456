// Package routertest plays a router by the book for the tests of algorithms:
// one request, one VM per model, decisions applied as they are made, without
// scheduler and queues. Models and heads are invented.
//
// The invariant that matters: what is played here and what a reference loop
// writes differ only if the router and the algorithm differ.
//
// Read play.go for the rules that a request lives by, twin.go for single
// decisions.
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
// from their defaults; heads are scored by Heads unless there is a scorer.
func Load(t testing.TB, file, text string, peers int, seed uint64, set map[string]float64, scorer ...scripting.Scorer) []*scripting.VM {
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
	env := scripting.Env{Peers: peers, Seed: seed, Vocab: Vocab, Knobs: knobs, Scorer: Heads{}}
	if len(scorer) > 0 {
		env.Scorer = scorer[0]
	}
	vms := make([]*scripting.VM, peers)
	for self := range vms {
		env.Self = event.Peer(self)
		if vms[self], err = scripting.NewVM(env, p); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(vms[self].Close)
	}
	return vms
}

// Heads knows every head: what it says of a row is Score of its output.
type Heads struct{}

// Check implements scripting.Scorer.
func (Heads) Check(string) error { return nil }

// Score implements scripting.Scorer.
func (Heads) Score(_ string, row *scripting.Row) (float64, error) {
	return Score(event.Front, *row.Output), nil
}

// Score is a reference.Score for the models here, on a grid of 1/64.
func Score(_ event.Peer, o event.Output) float64 { return float64(o.LogSumExp) / 16 }

// Fixed is a scorer that says the same of every row.
type Fixed struct{ Value float64 }

// Check implements scripting.Scorer.
func (*Fixed) Check(string) error { return nil }

// Score implements scripting.Scorer.
func (f *Fixed) Score(string, *scripting.Row) (float64, error) { return f.Value, nil }

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
	o := event.Output{
		Token: event.Token(key.Uint64(2) % Vocab), Entropy: float32(norm * math.Log(Vocab)), EntropyNorm: float32(norm),
		Top1: top, Top2: (1 - top) / 2, LogSumExp: float32(math.Floor(64*key.Float64(3)) / 4),
	}
	// Few tokens and few probabilities, so that two models' lists overlap and tie.
	for k, first := 0, key.Uint64(4)%8; k < 5; k++ {
		o.TopK = append(o.TopK, event.TokenProb{
			Token: event.Token((first + uint64(k)*3) % 8), Logprob: -0.5*float32(k) - float32(key.Uint64(5)%3),
		})
	}
	return o
}

// Models returns n different models.
func Models(n int) []reference.Model {
	out := make([]reference.Model, n)
	for i := range out {
		out[i] = Model{Number: i}
	}
	return out
}
