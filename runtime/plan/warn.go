package plan

import (
	"fmt"
	"math"
)

// Bounds of what is worth a warning.
const (
	offBy      = 0.02  // of a step time, in the band
	flipMargin = 0.001 // by which another vector must win in the band
	littleGain = 0.01
	largeRatio = 12 // above, an integer ratio of step times makes no visible jump
)

// band asks how the answer stands a step time that is off by 2 %. Moving all
// step times together only rescales the throughput, so one model moves at a time,
// and the first stays (a single model moves alone).
func (q *search) band(a *Answer) error {
	a.Low, a.High = a.Throughput, a.Throughput
	home, err := q.value(a.B)
	if err != nil {
		return err
	}
	for m := min(1, len(q.spec.P)-1); m < len(q.spec.P); m++ {
		for _, f := range []float64{1 - offBy, 1 + offBy} {
			v, err := q.moved(m, f)
			if err != nil {
				return err
			}
			here, err := v.value(a.B)
			if err != nil {
				return err
			}
			th := here.Throughput
			if v.method == q.method { // and so shares the error
				th *= a.Throughput / home.Throughput
			}
			a.Low, a.High = min(a.Low, th), max(a.High, th)
			if q.MaxP99 > 0 {
				continue // whoever beats B* there may break the bound
			}
			best := v.best()
			loss := 1 - here.Throughput/best.Throughput
			a.Regret = max(a.Regret, loss)
			a.Flips = a.Flips || loss > max(flipMargin, v.blur(here, best))
		}
	}
	return nil
}

// moved is the search once the step time of model m is f times as long.
func (q *search) moved(m int, f float64) (*search, error) {
	s := q.spec
	s.Step = append([]Latency(nil), s.Step...)
	s.Step[m] = Latency{Base: f * s.Step[m].Base, PerRow: f * s.Step[m].PerRow}
	o := q.Options
	o.MaxP99 = 0
	v, err := newSearch(&s, o)
	if err != nil {
		return nil, err
	}
	return v, v.screen()
}

// warn says in words what a user should know before trusting or using B*.
func (q *search) warn(a *Answer) error {
	say := func(format string, args ...any) { a.Warnings = append(a.Warnings, fmt.Sprintf(format, args...)) }
	if gain := a.Gain(); gain < littleGain && q.n > 1 {
		say("delayed batching idles here: B* gains %.1f %% over eager", 100*max(0, gain))
		if flat, err := q.flatGain(); err != nil {
			return err
		} else if flat >= littleGain {
			say("step times that grow with the batch take the gain away: if all took the time of one row it would be %.1f %%", 100*flat)
		}
	}
	if a.Eager.Throughput < a.Lockstep.Throughput*(1-flipMargin) {
		say("eager loses to lock-step: %.1f against %.1f tokens/s", a.Eager.Throughput, a.Lockstep.Throughput)
	}
	if a.Classes > 1 {
		say("where the system ends up depends on how it starts: %d classes of states can be reached, the figures are means over them", a.Classes)
	}
	if a.Flips {
		say("B* changes within 2 %% of the step times; keeping it loses up to %.1f %%", 100*a.Regret)
	}
	for m := 1; m < len(q.spec.P) && !q.Measured; m++ {
		ratio := q.spec.Step[m].mean(a.MeanBatch[m]) / q.spec.Step[0].mean(a.MeanBatch[0])
		if near := math.Round(ratio); near >= 1 && ratio < largeRatio && math.Abs(ratio-near) <= offBy*ratio {
			say("a step of %s takes %.2f times one of %s, near a whole number: the throughput of the model jumps there, that of a real system with jitter does not", q.name(m), ratio, q.name(0))
		}
	}
	if q.method == ByFluid {
		p, err := q.value(a.B)
		if err != nil {
			return err
		}
		say("the search used the fluid limit, which is %.1f %% off at B*", 100*math.Abs(p.Throughput/a.Throughput-1))
	}
	return nil
}

// name is how a warning calls model m.
func (q *search) name(m int) string {
	if m < len(q.Names) {
		return q.Names[m]
	}
	return fmt.Sprintf("model %d", m)
}

// flatGain is the gain over eager if every step took the time of one row; 0 if
// it does.
func (q *search) flatGain() (float64, error) {
	s := q.spec
	s.Step = nil
	grows := false
	for _, l := range q.spec.Step {
		s.Step = append(s.Step, Latency{Base: l.Of(1)})
		grows = grows || l.PerRow > 0
	}
	if !grows {
		return 0, nil
	}
	o := q.Options
	o.MaxP99 = 0
	v, err := newSearch(&s, o)
	if err != nil {
		return 0, err
	}
	if err := v.screen(); err != nil {
		return 0, err
	}
	eager, err := v.value(ones(len(s.P)))
	return v.best().Throughput/eager.Throughput - 1, err
}
