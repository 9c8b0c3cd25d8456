package bench

import (
	"errors"
	"sync"
	"sync/atomic"

	"tokenrouter/kernels/limits"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
)

// Handoff is how fast two models write together when each hands a request over
// after every token and, when it comes back, first reads the token it missed.
// Rates are tokens a second of all requests.
type Handoff struct {
	Cores    int `json:"cores"`
	Requests int `json:"requests"`
	// InTurn has all requests at one model, then all at the other.
	InTurn float64 `json:"in_turn_tokens_per_s"`
	// SideBySide lets both models step at the same time, each with the requests
	// that are at it.
	SideBySide float64 `json:"side_by_side_tokens_per_s"`
}

// handoffs is how many tokens a request gets before its positions are written
// over again.
const handoffs = 128

// MeasureHandoff measures two models on n cores with some requests. They should
// have one vocabulary; ids beyond the smaller one are folded into it.
func MeasureHandoff(a, b *Model, n, requests int, o Options) (h Handoff, err error) {
	if err := o.complete(); err != nil {
		return h, err
	}
	h.Cores, h.Requests = n, requests
	cores := team.New(n)
	defer cores.Close()
	p := &pair{context: o.Context, vocab: int32(min(a.Config.Vocab, b.Config.Vocab)), requests: make([]request, requests)}
	for i, m := range []*Model{a, b} {
		q := m.open(cores, requests, o.Context+handoffs+2)
		defer func() { err = errors.Join(err, q.pool.Close()) }()
		// The second model is one position ahead, so that each misses one token.
		if err := q.ready(o.Context+i, 2); err != nil {
			return h, err
		}
		p.lanes[i].q = q
	}
	p.reset()
	o.Progress("hand-offs, the models in turn")
	all := make([]int, requests)
	for i := range all {
		all[i] = i
	}
	t := limits.Time(n, o.Time, func() {
		p.hop(0, all)
		p.hop(1, all)
	})
	h.InTurn = float64(2*requests) / t.Seconds
	o.Progress("hand-offs, the models side by side")
	p.reset()
	h.SideBySide = p.sideBySide(o)
	return h, errors.Join(err, p.lanes[0].q.failed, p.lanes[1].q.failed)
}

// pair is two models and the requests that go to and fro.
type pair struct {
	lanes    [2]lane
	requests []request
	context  int
	vocab    int32
}

// request is where one stands: tokens at pos-1 and pos are still to be read by
// the model it comes to.
type request struct {
	pos    int
	tokens [2]int32
}

// lane is one model's side.
type lane struct {
	q    *sequences
	rows []model.Row

	mu    sync.Mutex
	come  sync.Cond
	ready []int
}

func (p *pair) reset() {
	for i := range p.requests {
		p.requests[i] = request{p.context + 1, [2]int32{int32(i) % p.vocab, int32(i+1) % p.vocab}}
	}
}

// hop lets a model write the next token of some requests.
func (p *pair) hop(side int, which []int) {
	l := &p.lanes[side]
	l.rows = l.rows[:0]
	for _, i := range which {
		r := &p.requests[i]
		if side == 0 && r.pos > p.context+handoffs-2 {
			r.pos = p.context + 1
		}
		l.rows = append(l.rows, model.Row{Blocks: l.q.rows[i].Blocks, Start: r.pos - 1, Tokens: r.tokens[:], Signals: true})
	}
	err := l.q.m.Forward(&l.q.ws, l.q.pool, l.rows)
	for k, i := range which {
		r := &p.requests[i]
		next := r.tokens[0]
		if err == nil {
			s, bad := l.q.ws.Signals(k)
			if err = bad; bad == nil {
				next = s.TopK[0].ID % p.vocab
			}
		}
		r.tokens = [2]int32{r.tokens[1], next}
		r.pos++
	}
	if l.q.failed == nil {
		l.q.failed = err
	}
}

// sideBySide runs each model in a goroutine of its own and gives tokens a second.
func (p *pair) sideBySide(o Options) float64 {
	var written, target atomic.Int64
	var stop atomic.Bool
	reached := make(chan struct{}, 1)
	var wg sync.WaitGroup
	for side := range p.lanes {
		l := &p.lanes[side]
		l.come.L = &l.mu
		l.ready = l.ready[:0]
		for i := range p.requests { // half of them begin at each model
			if i%2 == side {
				l.ready = append(l.ready, i)
				p.requests[i].pos += side
			}
		}
	}
	for side := range p.lanes {
		wg.Go(func() {
			l, other := &p.lanes[side], &p.lanes[1-side]
			var mine []int
			for {
				l.mu.Lock()
				for len(l.ready) == 0 && !stop.Load() {
					l.come.Wait()
				}
				mine = append(mine[:0], l.ready...)
				l.ready = l.ready[:0]
				l.mu.Unlock()
				if stop.Load() {
					return
				}
				p.hop(side, mine)
				other.mu.Lock()
				other.ready = append(other.ready, mine...)
				other.mu.Unlock()
				other.come.Signal()
				if written.Add(int64(len(mine))) >= target.Load() {
					select {
					case reached <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	stretch := int64(16 * len(p.requests))
	begun, tokens := written.Load(), 0.0
	t := limits.Clock(o.Time, func() {
		begun = written.Load()
		target.Store(begun + stretch)
		for written.Load() < begun+stretch {
			<-reached
		}
		tokens += float64(written.Load() - begun)
	})
	for side := range p.lanes {
		l := &p.lanes[side]
		l.mu.Lock()
		stop.Store(true)
		l.mu.Unlock()
		l.come.Signal()
	}
	wg.Wait()
	return tokens / float64(t.Samples+1) / t.Seconds
}
