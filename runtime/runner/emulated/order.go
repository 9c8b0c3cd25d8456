package emulated

import (
	"fmt"
	"sync"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// Order lets the requests of a recording come again and again, each round in an
// order of its own that depends on the seed alone. So a short recording is a
// process without end, and runs with the same seed meet the same requests in the
// same order, whatever their policy. Its methods may be called at once.
type Order struct {
	ids  []event.ReqID // recorded, in the order they came
	seed uint64

	mu     sync.Mutex
	rounds map[int][]int32
}

// NewOrder is an order of recorded requests.
func NewOrder(ids []event.ReqID, seed uint64) (*Order, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no recorded request to repeat")
	}
	return &Order{ids: ids, seed: seed, rounds: map[int][]int32{}}, nil
}

// At says which of the recorded requests, by its place in the recording, comes as
// the i-th, from 0.
func (o *Order) At(i int) int {
	n := len(o.ids)
	o.mu.Lock()
	defer o.mu.Unlock()
	round := o.rounds[i/n]
	if round == nil {
		round = o.shuffle(i / n)
		o.rounds[i/n] = round
	}
	return int(round[i%n])
}

// drawOrder is the stream of the orders of recorded requests.
const drawOrder = rng.Law + 3

// shuffle draws an order (Fisher and Yates).
func (o *Order) shuffle(round int) []int32 {
	out := make([]int32, len(o.ids))
	key := rng.Key{Seed: o.seed, Req: uint64(round), Purpose: drawOrder}
	for i := range out {
		j := min(int(key.Float64(i)*float64(i+1)), i)
		out[i] = out[j]
		out[j] = int32(i)
	}
	return out
}

// Again is a recording whose requests come in an order: request number i, from 1
// as a runtime counts them, says what At(i-1) said when it was recorded.
type Again struct {
	*Recording
	Order *Order
}

// Answer implements Tokens.
func (a *Again) Answer(model int, b *event.Batch, out []event.Output) ([]event.Output, error) {
	as := *b
	as.Rows = append([]event.Row(nil), b.Rows...)
	for i := range as.Rows {
		var err error
		if as.Rows[i].Req, err = a.recorded(as.Rows[i].Req); err != nil {
			return out, err
		}
	}
	return a.Recording.Answer(model, &as, out)
}

// Score is that of a recording.
func (a *Again) Score(model int, head string, id event.ReqID, pos int) (float64, error) {
	id, err := a.recorded(id)
	if err != nil {
		return 0, err
	}
	return a.Recording.Score(model, head, id, pos)
}

// recorded is the request that comes again as id.
func (a *Again) recorded(id event.ReqID) (event.ReqID, error) {
	if id < 1 {
		return 0, fmt.Errorf("request %d is none of those that come in an order; they are counted from 1", id)
	}
	return a.Order.ids[a.Order.At(int(id-1))], nil
}
