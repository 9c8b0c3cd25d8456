package live

import (
	"math"
	"time"
)

// pace lays virtual time beside the wall clock. Where the machine is too slow,
// the virtual time falls behind and goes on from there.
type pace struct {
	on    bool
	speed float64
	base  int64     // virtual time at which it was started
	from  time.Time // on the wall
}

// slip is how far, on the wall, virtual time may fall behind before it is let go.
const slip = 250 * time.Millisecond

// stop lets the pace begin anew at whatever time it is when it is asked again.
func (p *pace) stop() { p.on = false }

// until is how long it takes on the wall until virtual time at, when it is now;
// 0 or less if that has come. Speed 0 knows no waiting.
func (p *pace) until(at, now int64, speed float64) time.Duration {
	if speed == 0 {
		p.on = false
		return 0
	}
	if !p.on || p.speed != speed {
		*p = pace{on: true, speed: speed, base: now, from: time.Now()}
	}
	rest := time.Duration(math.Ceil(float64(at-p.base)/speed)) - time.Since(p.from)
	if rest < -slip {
		*p = pace{on: true, speed: speed, base: at, from: time.Now()}
	}
	return rest
}

// passed is the virtual time that has come by the wall clock, not before now.
func (p *pace) passed(now int64) int64 {
	if !p.on {
		return now
	}
	return max(now, p.base+int64(float64(time.Since(p.from))*p.speed))
}
