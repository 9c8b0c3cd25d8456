package live

import (
	"context"
	"fmt"
	"math"
	"time"

	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
)

// schedule says when the next request arrives. It is absolute: an arrival that
// came late moves none of those behind it.
type schedule struct {
	arrivals workload.Arrivals
	offset   time.Duration // of the arrival that is due, since the first moment of the run at speed 1
	due      int64         // ns since the session began
}

func newSchedule(a workload.Arrivals, origin int64) *schedule {
	return &schedule{arrivals: a, due: origin}
}

// advance looks up the next arrival; false means that there is none. Speed is how
// many seconds of the workload pass in one of the session.
func (s *schedule) advance(speed float64) bool {
	next, ok := s.arrivals.Next()
	if !ok {
		return false
	}
	gap := next - s.offset
	if speed != 1 {
		gap = time.Duration(float64(gap) / speed)
	}
	s.offset = next
	s.due += int64(gap)
	return true
}

// hold moves the arrival that is due, and with it all behind it, by the length of
// a pause.
func (s *schedule) hold(pause int64) { s.due += pause }

// Offered is what the open loop asked of the cluster so far.
type Offered struct {
	Arrived   int
	Requested float64       // arrivals/s asked for on average; 0 in the closed loop
	Achieved  float64       // arrivals/s that came
	Late      time.Duration // the most that one came behind its time

	offset time.Duration // of the last one
	trace  bool          // asked for are the times of a file, of which a run may see a part
}

// tolerance is how far the achieved rate may be from the requested one: a run
// that is further off measured another load than the one asked for.
const tolerance = 0.10

func (o *Offered) add(offset, late time.Duration) {
	o.Arrived++
	o.offset = offset
	o.Late = max(o.Late, late)
	if o.trace && offset > 0 {
		o.Requested = float64(o.Arrived) / offset.Seconds()
	}
	o.Achieved = 0
	if took := offset + late; took > 0 {
		o.Achieved = float64(o.Arrived) / took.Seconds()
	}
}

// Off tells whether the rate that came is more than a tenth from that asked for.
func (o *Offered) Off() bool {
	return o.Requested > 0 && o.Achieved > 0 && math.Abs(o.Achieved/o.Requested-1) > tolerance
}

func (o *Offered) String() string {
	return fmt.Sprintf("%d arrivals came at %.3g a second, %.3g were asked for; the latest was %s behind its time", o.Arrived, o.Achieved, o.Requested, o.Late.Round(time.Microsecond))
}

// report says once how the arrivals went.
func (b *book) report() {
	if b.said || b.rate.Arrived == 0 {
		return
	}
	b.said = true
	o := &b.rate
	if !o.Off() {
		b.message(tape.Info, o.String())
		return
	}
	why := "so few scatter that much: run more requests"
	if drawn := float64(o.Arrived) / o.offset.Seconds(); math.Abs(drawn/o.Requested-1) <= tolerance {
		why = "this machine is too slow to send them: ask for a lower rate"
	}
	b.message(tape.Warn, fmt.Sprintf("%s. That is %.0f %% off, so this run did not measure the load that it names; %s", o, 100*math.Abs(o.Achieved/o.Requested-1), why))
}

// Offered tells how the arrivals of the open loop go.
func (r *Runtime) Offered() Offered {
	r.client.mu.Lock()
	defer r.client.mu.Unlock()
	return r.client.book.rate
}

// arrivals is the loop that says when a request is due. It waits for the clock
// and nothing else, so no slow step and no full queue delays the next arrival.
func (c *client) arrivals(ctx context.Context) {
	s := newSchedule(c.rt.cfg.Arrivals, c.rt.Now())
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for s.advance(c.speed()) {
		if !c.await(ctx, s, timer) {
			return
		}
		c.in.put(clientItem{op: opArrive, offset: s.offset, due: s.due})
	}
	c.in.put(clientItem{op: opNoMore})
}

// await waits until the next arrival is due; false when none is wanted any more.
// While the runtime is paused the schedule stands still, as it does in virtual time.
func (c *client) await(ctx context.Context, s *schedule, timer *time.Timer) bool {
	for {
		now, paused := c.rt.Now(), c.rt.paused.Load()
		var due <-chan time.Time
		switch {
		case paused:
		case s.due <= now:
			return true
		default:
			timer.Reset(time.Duration(s.due - now))
			due = timer.C
		}
		select {
		case <-due:
		case <-c.turned:
		case <-c.over:
			return false
		case <-ctx.Done():
			return false
		}
		if paused {
			s.hold(c.rt.Now() - now)
		}
	}
}

// speed is the factor on the paced clock; the live one has none.
func (c *client) speed() float64 {
	if c.rt.cfg.Pacer.Profile() == nil {
		return 1
	}
	return c.rt.cfg.Pacer.Speed()
}

// nudge lets the arrivals hear that a pause has begun or ended.
func (c *client) nudge() {
	select {
	case c.turned <- struct{}{}:
	default:
	}
}
