package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Bounds of what is worth a warning.
const (
	offBy      = 0.02  // of a step time, in the band
	flipMargin = 0.001 // by which another vector must win in the band
	littleGain = 0.01
	largeRatio = 12 // above, an integer ratio of step times makes no visible jump
)

// band asks how the answer stands a step time that is off by 2 %. Moving all
// step times together only rescales the throughput, so instead of the first all
// others are moved, the other way.
func (q *search) band(a *Answer) error {
	a.Low, a.High = a.Throughput, a.Throughput
	home, err := q.value(a.B)
	if err != nil {
		return err
	}
	rivals := q.rivals(a.B)
	ask := func(f float64, which ...int) error {
		v, err := q.moved(f, which, rivals)
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
		if len(which) == 1 {
			a.Low, a.High = min(a.Low, th), max(a.High, th)
		}
		if len(which) == len(q.spec.P)-1 { // only the first off by 1/f is the same, f times as fast
			a.Low, a.High = min(a.Low, f*th), max(a.High, f*th)
		}
		best := v.best()
		loss := 1 - here.Throughput/best.Throughput
		a.Regret = max(a.Regret, loss)
		a.Flips = a.Flips || loss > max(flipMargin, v.blur(here, best))
		return nil
	}
	models := len(q.spec.P)
	for _, f := range []float64{1 - offBy, 1 + offBy} {
		for m := min(1, models-1); m < models; m++ {
			if err := ask(f, m); err != nil {
				return err
			}
		}
		if models > 2 {
			var others []int
			for m := 1; m < models; m++ {
				others = append(others, m)
			}
			if err := ask(f, others...); err != nil {
				return err
			}
		}
	}
	return nil
}

// rivals are b and what of the best was seen to come near it: a step time that
// is off by 2 % changes a throughput by 2 % at most, but for jumps. Under a bound
// on P99 there are none, as whoever beats b in the band may break it there.
func (q *search) rivals(b []int) [][]int {
	const near, most = 0.05, 6
	out := [][]int{b}
	ranked := q.ranked()
	for _, p := range ranked {
		if q.MaxP99 > 0 || len(out) == most || p.Throughput < ranked[0].Throughput*(1-near) {
			break
		}
		if !slices.Equal(p.B, b) {
			out = append(out, p.B)
		}
	}
	return out
}

// moved is a search that has looked at vectors with the step times of some models
// f times as long. It meets the same luck.
func (q *search) moved(f float64, which []int, vectors [][]int) (*search, error) {
	v := *q
	v.forget()
	stage := *q.stage
	v.stage = &stage
	v.spec.Step = slices.Clone(q.spec.Step)
	for _, m := range which {
		l := &v.spec.Step[m]
		l.Base, l.PerRow = f*l.Base, f*l.PerRow
	}
	var err error
	if stage.t, stage.tick, err = v.spec.ticks(); err != nil {
		return nil, err
	}
	err = v.each(vectors)
	if v.Method != ByChain && errors.Is(err, ErrTooLarge) { // other ticks may need more states
		v.forget()
		v.method = ByCountSim
		err = v.each(vectors)
	}
	return &v, err
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
	o.MaxP99, o.Near = 0, nil
	v, err := newSearch(&s, o)
	if err != nil {
		return 0, err
	}
	if q.method == ByChain {
		err = v.screen()
	} else {
		v = v.brief(refineEvents)
		err = v.climb()
	}
	if err != nil {
		return 0, err
	}
	eager, err := v.value(ones(len(s.P)))
	return v.best().Throughput/eager.Throughput - 1, err
}
