package workload

import (
	"fmt"
	"math"
	"time"
)

// Arrivals is when requests come in the open loop, whatever became of those
// before. It is not safe for concurrent use.
type Arrivals interface {
	// Next gives the next arrival as time since the first moment of the run;
	// offsets never fall. ok is false when there are no more.
	Next() (offset time.Duration, ok bool)
	// Rate is how many arrivals a second are asked for on average, 0 where that
	// is not known.
	Rate() float64
	// String is the form that [ParseArrivals] reads.
	String() string
}

// The bounds of a rate in arrivals/s: one a day, and more than any front takes.
const (
	minRate = 1.0 / 86400
	maxRate = 1e5
)

func checkRate(rate float64) error {
	if !(rate >= minRate && rate <= maxRate) { // NaN is neither
		return fmt.Errorf("a rate of %g arrivals a second is outside %.2g to %g", rate, minRate, float64(maxRate))
	}
	return nil
}

// farthest ends every stream of arrivals: offsets far beyond it would leave the
// range of a time.Duration.
const farthest = 200 * 365 * 24 * time.Hour

// Uniform gives arrivals at equal distances, the first after one of them.
func Uniform(rate float64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &uniform{rate: rate}, nil
}

type uniform struct {
	rate float64
	n    int
}

func (u *uniform) Next() (time.Duration, bool) {
	u.n++ // a product, not a sum: it gathers no rounding
	return offset(float64(u.n) / u.rate)
}

func (u *uniform) Rate() float64  { return u.rate }
func (u *uniform) String() string { return fmt.Sprintf("uniform:%g", u.rate) }

// Poisson gives independent exponential gaps: the count in any window has the
// variance of its mean.
func Poisson(seed uint64, rate float64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &poisson{rate: rate, gaps: draws{seed: seed, process: processPoisson}}, nil
}

type poisson struct {
	rate    float64
	gaps    draws
	seconds float64
}

func (p *poisson) Next() (time.Duration, bool) {
	p.gaps.step()
	p.seconds += p.gaps.exponential() / p.rate
	return offset(p.seconds)
}

func (p *poisson) Rate() float64  { return p.rate }
func (p *poisson) String() string { return fmt.Sprintf("poisson:%g", p.rate) }

// Gamma gives independent gamma-distributed gaps of mean 1/rate whose coefficient
// of variation is cv: 1 is Poisson, above it arrivals come in bursts, below it
// they space out. In long windows the variance of the count is cv^2 of its mean.
func Gamma(seed uint64, rate, cv float64) (Arrivals, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	if !(cv >= minCV && cv <= maxCV) {
		return nil, fmt.Errorf("cv=%g is outside %g to %g; for equal distances use uniform", cv, minCV, float64(maxCV))
	}
	return &gamma{rate: rate, cv: cv, gaps: draws{seed: seed, process: processGamma}}, nil
}

// Beyond 10 nearly all gaps are 0 and a few are hours, so that no run is long
// enough to have a rate.
const (
	minCV = 0.01
	maxCV = 10
)

type gamma struct {
	rate, cv float64
	gaps     draws
	seconds  float64
}

func (g *gamma) Next() (time.Duration, bool) {
	g.gaps.step()
	square := g.cv * g.cv
	g.seconds += g.gaps.gamma(1/square) * square / g.rate
	return offset(g.seconds)
}

func (g *gamma) Rate() float64  { return g.rate }
func (g *gamma) String() string { return fmt.Sprintf("gamma:%g,cv=%g", g.rate, g.cv) }

// MMPPSpec describes a Markov-modulated Poisson process of two states, a low and
// a high one, by what can be seen of it.
type MMPPSpec struct {
	Rate        float64       // arrivals/s on average
	Ratio       float64       // rate of the high state / rate of the low one, at least 1
	High        float64       // share of the time in the high state, between 0 and 1
	Correlation time.Duration // in which what is known of the state fades to 1/e
}

// Rates gives the arrivals/s in the low and in the high state.
func (s *MMPPSpec) Rates() (low, high float64) {
	low = s.Rate / (1 - s.High + s.High*s.Ratio)
	return low, low * s.Ratio
}

// minStay is the fewest arrivals in a correlation time: each change of state is
// drawn, so below it an arrival would take hundreds of draws.
const minStay = 1e-3

func (s *MMPPSpec) check() error {
	if err := checkRate(s.Rate); err != nil {
		return err
	}
	switch {
	case !(s.Ratio >= 1 && s.Ratio <= 1000):
		return fmt.Errorf("r=%g is outside 1 to 1000; it is the high state's rate over the low one's", s.Ratio)
	case !(s.High >= 0.001 && s.High <= 0.999):
		return fmt.Errorf("h=%g is outside 0.001 to 0.999; it is the share of time in the high state", s.High)
	case s.Correlation < time.Millisecond || s.Correlation > 24*time.Hour:
		return fmt.Errorf("tc=%s is outside 1ms to 24h", s.Correlation)
	case s.Correlation.Seconds()*s.Rate < minStay:
		return fmt.Errorf("at %g arrivals a second the state changes many times between two of them with tc=%s, which is a poisson process; give tc=%s or more", s.Rate, s.Correlation, time.Duration(math.Ceil(minStay/s.Rate*1e9)))
	}
	return nil
}

// MMPP gives arrivals of a Markov-modulated Poisson process. With rates l, h of
// the states the process leaves the low state at High/Correlation and the high
// one at (1-High)/Correlation, and starts in the high state with probability
// High, so that it is stationary from the first moment.
func MMPP(seed uint64, spec MMPPSpec) (Arrivals, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	m := &mmpp{spec: spec, gaps: draws{seed: seed, process: processMMPP}}
	m.rate[0], m.rate[1] = spec.Rates()
	m.leave[0] = spec.High / spec.Correlation.Seconds()
	m.leave[1] = (1 - spec.High) / spec.Correlation.Seconds()
	if m.gaps.uniform() < spec.High {
		m.state = 1
	}
	return m, nil
}

type mmpp struct {
	spec        MMPPSpec
	rate, leave [2]float64 // by state
	state       int
	gaps        draws
	seconds     float64
}

// Next lets the next arrival and the next change of state compete.
func (m *mmpp) Next() (time.Duration, bool) {
	for m.seconds <= farthest.Seconds() {
		m.gaps.step()
		both := m.rate[m.state] + m.leave[m.state]
		m.seconds += m.gaps.exponential() / both
		if m.gaps.uniform()*both < m.rate[m.state] {
			break
		}
		m.state = 1 - m.state
	}
	return offset(m.seconds)
}

func (m *mmpp) Rate() float64 { return m.spec.Rate }

func (m *mmpp) String() string {
	s := &m.spec
	return fmt.Sprintf("mmpp:%g,r=%g,h=%g,tc=%s", s.Rate, s.Ratio, s.High, s.Correlation)
}

func offset(seconds float64) (time.Duration, bool) {
	if !(seconds <= farthest.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
