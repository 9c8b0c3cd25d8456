package plan

import (
	"fmt"
	"math"
	"slices"
)

// Life is what was seen of the steps that requests make at a model before they are
// sent on: Made[k-1] of them made a k-th step, Sent[k-1] of those were sent on
// after it. The others went on, or were lost from sight (their request ended).
type Life struct{ Made, Sent []int }

// Law is a law of sends with how well it explains a [Life].
type Law struct {
	*Phases         // nil: geometric, with Share
	Kind    LawKind // what it was fitted as
	Share   float64 // of steps after which a request is sent on, over all
	Params  int     // free ones
	Log     float64 // log likelihood
	BIC     float64 // Params ln(steps) - 2 Log: the less the better
}

// LawKind names a family of laws.
type LawKind string

// The families that FitLaw chooses among.
const (
	Geometric LawKind = "geometric" // one share for all steps
	Acyclic   LawKind = "phases"    // a few phases, none of which is come back to
	Histogram LawKind = "histogram" // a share of its own for each of the first steps
)

// String is for tables: phases by their number.
func (l *Law) String() string {
	if l.Kind == Geometric {
		return string(Geometric)
	}
	return fmt.Sprintf("%s %d", l.Kind, len(l.Start))
}

// Sizes of what FitLaw tries.
const (
	mostPhases = 4
	mostBars   = 32
)

// FitLaw fits laws of sends by maximum likelihood and chooses among them by BIC, so
// that a phase is there only if the runs ask for it: the geometric one; acyclic
// phase-type laws of 2 to 4 phases, which have the hyper-geometric (some runs short,
// some long), the Erlang-like (no run very short) and mixtures of them as cases, by
// expectation maximisation (Asmussen, Nerman and Olsson 1996, here for discrete
// times and runs that are lost from sight); and the histogram of the first steps.
//
// With kinds given only those, and the geometric law, are tried.
//
// Errors: a life without a send, or one in which a k-th step was made more often
// than there were requests to make it.
func FitLaw(l Life, kinds ...LawKind) (Law, error) {
	if err := l.check(); err != nil {
		return Law{}, err
	}
	best := l.geometric()
	take := func(x Law) {
		if x.BIC < best.BIC {
			best = x
		}
	}
	if best.Share == 1 {
		return best, nil
	}
	asked := func(k LawKind) bool { return len(kinds) == 0 || slices.Contains(kinds, k) }
	for n := 2; n <= mostPhases && asked(Acyclic); n++ {
		take(l.phases(n))
	}
	for n := 2; n <= min(mostBars, len(l.Made)) && asked(Histogram); n *= 2 {
		take(l.histogram(n))
	}
	return best, nil
}

// FitPhases is the acyclic phase-type law of n phases that explains a life best.
func FitPhases(l Life, n int) (Law, error) {
	if err := l.check(); err != nil {
		return Law{}, err
	}
	if n < 1 {
		return Law{}, fmt.Errorf("a law of %d phases is none; give at least 1", n)
	}
	return l.phases(n), nil
}

func (l *Life) check() error {
	if len(l.Made) != len(l.Sent) {
		return fmt.Errorf("there are %d counts of steps and %d of sends", len(l.Made), len(l.Sent))
	}
	sends := 0
	for k, made := range l.Made {
		if l.Sent[k] < 0 || made < l.Sent[k] || k > 0 && made > l.Made[k-1]-l.Sent[k-1] {
			return fmt.Errorf("step %d was made %d times and ended %d runs, which does not go with the steps before it", k+1, made, l.Sent[k])
		}
		sends += l.Sent[k]
	}
	if sends == 0 {
		return fmt.Errorf("no run ended with a send; there is no law to fit")
	}
	return nil
}

// steps and sends are the sums.
func (l *Life) steps() (made, sent int) {
	for k := range l.Made {
		made += l.Made[k]
		sent += l.Sent[k]
	}
	return made, sent
}

// rate fills in the likelihood of a law.
func (l *Life) rate(x Law) Law {
	made, _ := l.steps()
	share := x.Shares(len(l.Made))
	x.Log = 0
	for k, h := range share {
		if s := l.Sent[k]; s > 0 {
			x.Log += float64(s) * math.Log(max(h, 1e-300))
		}
		if s := l.Made[k] - l.Sent[k]; s > 0 {
			x.Log += float64(s) * math.Log(max(1-h, 1e-300))
		}
	}
	x.BIC = float64(x.Params)*math.Log(float64(made)) - 2*x.Log
	return x
}

func (l *Life) geometric() Law {
	made, sent := l.steps()
	return l.rate(Law{Kind: Geometric, Share: float64(sent) / float64(made), Params: 1})
}

// histogram gives each of the first n-1 steps its own share, and the rest one.
func (l *Life) histogram(n int) Law {
	stay := make([]float64, n)
	for k := range n - 1 {
		stay[k] = 1 - float64(l.Sent[k])/float64(max(l.Made[k], 1))
	}
	made, sent := 0, 0
	for k := n - 1; k < len(l.Made); k++ {
		made, sent = made+l.Made[k], sent+l.Sent[k]
	}
	x := l.geometric()
	if stay[n-1] = 1 - x.Share; sent > 0 { // nobody stays for ever
		stay[n-1] = 1 - float64(sent)/float64(made)
	}
	return l.rate(Law{Phases: Stays(stay), Kind: Histogram, Share: x.Share, Params: n})
}

// Shares gives, of a request's k-th steps up to n, the share after which it is
// sent on: Shares[k-1].
func (l *Law) Shares(n int) []float64 {
	out := make([]float64, n)
	if l.Phases == nil {
		for k := range out {
			out[k] = l.Share
		}
		return out
	}
	return l.Phases.shares(n)
}

func (f *Phases) shares(n int) []float64 {
	out := make([]float64, n)
	at, next := append([]float64{}, f.Start...), make([]float64, len(f.Start))
	for k := range out {
		sum, left := 0.0, 0.0
		clear(next)
		for i, p := range at {
			sum += p
			for j, q := range f.Next[i] {
				next[j] += p * q
			}
		}
		for _, p := range next {
			left += p
		}
		if sum <= 0 {
			out[k] = 1
			continue
		}
		out[k] = 1 - left/sum
		for i := range at { // what is certain stays so, and nothing gets too small
			if at[i] = 0; left > 0 {
				at[i] = next[i] / left
			}
		}
	}
	return out
}

// Mean and CV2 are of the steps between coming and being sent on: CV2 is variance
// over the square of the mean.
func (l *Law) Moments() (mean, cv2 float64) {
	if l.Phases == nil {
		return 1 / l.Share, 1 - l.Share
	}
	n := len(l.Start)
	// Steps still to be made from a phase: m1 = 1 + T m1, and of their square
	// m2 = 1 + 2 T m1 + T m2. Phases lead on upwards, so they are solved from the end.
	m1, m2 := make([]float64, n), make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		a, b := 1.0, 1.0
		for j := i + 1; j < n; j++ {
			a += l.Next[i][j] * m1[j]
			b += l.Next[i][j] * (2*m1[j] + m2[j])
		}
		stay := 1 - l.Next[i][i]
		m1[i] = a / stay
		m2[i] = (b + 2*l.Next[i][i]*m1[i]) / stay
	}
	square := 0.0
	for i, p := range l.Start {
		mean += p * m1[i]
		square += p * m2[i]
	}
	return mean, max(0, square/(mean*mean)-1)
}

// GeometricLaw is the geometric law of a life.
func GeometricLaw(l Life) Law { return l.geometric() }
