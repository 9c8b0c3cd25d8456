package sim

import (
	"math"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
)

// share is how far a batch is where models slow one another down.
type share struct {
	rest  float64 // ns that the model would still need alone
	since int64   // as of then
	slow  float64 // factor since then; 0 when nothing executes
}

// until is when the batch of a core stopped executing, now if it has not.
func (c *coreState) until(now int64) int64 {
	if c.takes == 0 {
		return now
	}
	return min(now, c.started+c.takes)
}

// start lets core p execute batch b.
func (s *Sim) start(p event.Peer, c *coreState, b *event.Batch) {
	c.batch = b
	c.run++
	c.started = s.now
	alone := s.alone(p, b)
	if s.cfg.Contention == nil {
		c.takes = alone
		s.state(p, c, s.now+alone)
		return
	}
	c.takes = 0
	c.share = share{rest: float64(alone), since: s.now, slow: s.slowdown(p)}
	s.finish(p, c)
	s.others(p)
}

// alone is how long batch b of core p executes if nobody slows it down: at least
// 1 ns.
func (s *Sim) alone(p event.Peer, b *event.Batch) int64 {
	s.sums = cost.Of(b)
	run := s.cores[p].run
	d := s.jitter.of(int64(s.cfg.Step(int(p), &s.sums)), s.cfg.Seed, p, run)
	if s.cfg.Stall != nil {
		longer, _ := s.cfg.Stall(s.cfg.Seed, int(p), run)
		d += max(0, int64(longer))
	}
	return max(1, d)
}

// state lets the end of the batch that core p executes until at be stated.
func (s *Sim) state(p event.Peer, c *coreState, at int64) {
	if s.cfg.Overhead != nil {
		at += max(0, int64(s.cfg.Overhead(int(p), len(c.batch.Rows))))
	}
	if s.cfg.Stall != nil {
		_, later := s.cfg.Stall(s.cfg.Seed, int(p), c.run)
		at += max(0, int64(later))
	}
	c.end++
	s.queue.put(due{at: at, class: stepDone, core: p, id: c.end})
}

// slowdown is by what factor core p executes slower at this moment. What several
// others take away adds up: n models that share one device fairly have factor 2
// for each pair and n all together.
func (s *Sim) slowdown(p event.Peer) float64 {
	f := 1.0
	for j := range s.cores {
		if x := s.cfg.Contention[p][j]; x > 0 && j != int(p) && s.cores[j].share.slow > 0 {
			f += x - 1
		}
	}
	return f
}

// others stretches or relaxes what remains of every batch but that of core p,
// which has just begun or ended.
func (s *Sim) others(p event.Peer) {
	for i := range s.cores {
		c, q := &s.cores[i], event.Peer(i)
		if q == p || c.share.slow == 0 {
			continue
		}
		f := s.slowdown(q)
		if f == c.share.slow {
			continue
		}
		c.share.rest = max(0, c.share.rest-float64(s.now-c.share.since)/c.share.slow)
		c.share.since, c.share.slow = s.now, f
		s.vain++ // the end that is in the queue
		s.finish(q, c)
	}
}

// finish puts into the queue when core p will have executed its batch, if nothing
// changes.
func (s *Sim) finish(p event.Peer, c *coreState) {
	c.end++
	at := c.share.since + int64(math.Round(c.share.rest*c.share.slow))
	s.queue.put(due{at: max(at, s.now), class: executed, core: p, id: c.end})
}

// executed ends the execution of the batch of core p, under contention.
func (s *Sim) executed(p event.Peer, c *coreState) {
	c.takes = s.now - c.started
	c.share = share{}
	s.others(p)
	s.state(p, c, s.now)
}

// lose forgets the batch of core p, if there is one.
func (s *Sim) lose(p event.Peer, c *coreState) {
	if c.batch == nil {
		return
	}
	s.vain++
	c.end++
	s.books.killed(p, s.now, c)
	c.batch = nil
	if c.share.slow > 0 {
		c.share = share{}
		s.others(p)
	}
}
