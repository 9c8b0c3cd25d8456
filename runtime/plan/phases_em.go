package plan

import "math"

// The expectation maximisation stops when emLook rounds have added less than
// emEnough to the log likelihood, far less than the BIC asks of a parameter, and
// after emRounds at last.
const (
	emRounds = 2000
	emLook   = 25
	emEnough = 0.02
)

// phases is the best acyclic law of n phases, from several beginnings: the climb
// ends on the hill that it begins on.
func (l *Life) phases(n int) Law {
	made, sent := l.steps()
	g := float64(sent) / float64(made)
	best := Law{BIC: math.Inf(1)}
	for _, f := range beginnings(n, g) {
		e := newEM(l, f)
		e.climb()
		// The canonical form of such a law has n shares and n - 1 beginnings.
		if x := l.rate(Law{Phases: f, Kind: Acyclic, Share: g, Params: 2*n - 1}); x.BIC < best.BIC {
			best = x
		}
	}
	return best
}

// beginnings are laws near which a run of mean 1/g may lie: phases side by side,
// phases one behind the other, and both.
func beginnings(n int, g float64) []*Phases {
	blank := func() *Phases {
		f := &Phases{Start: make([]float64, n), Next: make([][]float64, n)}
		for i := range f.Next {
			f.Next[i] = make([]float64, n)
		}
		return f
	}
	side, chain, both := blank(), blank(), blank()
	for i := range n {
		// Shares from 3 g down to g / 3.
		h := g
		if n > 1 {
			h = g * math.Pow(3, 1-2*float64(i)/float64(n-1))
		}
		h = min(h, 0.95)
		side.Start[i], side.Next[i][i] = 1/float64(n), 1-h
		each := min(float64(n)*g, 0.95)
		chain.Next[i][i] = 1 - each
		both.Start[i], both.Next[i][i] = 1/float64(n), 1-h
		if i+1 < n {
			chain.Next[i][i+1] = each * 0.9
			both.Next[i][i+1] = h / 2
		}
	}
	chain.Start[0] = 1
	return []*Phases{side, chain, both}
}

// em climbs in the likelihood of a law: the phases that a run was in are not seen,
// so a round first takes what is expected of them under the law so far, and then
// the law that explains that best.
type em struct {
	*Life
	f *Phases

	before      [][]float64 // by step, the chance of each phase of those who make it
	scale       []float64   // by step, the chance to make it after the one before
	leave       []float64   // by phase, the chance to be sent on after a step
	after, now  []float64
	start, left []float64
	leads       [][]float64
}

func newEM(l *Life, f *Phases) *em {
	n := len(f.Start)
	rows := func(k int) [][]float64 {
		all, out := make([]float64, k*n), make([][]float64, k)
		for i := range out {
			out[i] = all[i*n : (i+1)*n]
		}
		return out
	}
	return &em{
		Life: l, f: f, before: rows(len(l.Made) + 1), scale: make([]float64, len(l.Made)+1), leave: make([]float64, n),
		after: make([]float64, n), now: make([]float64, n), start: make([]float64, n), left: make([]float64, n), leads: rows(n),
	}
}

func (e *em) climb() {
	last := math.Inf(-1)
	for i := range emRounds {
		log := e.round()
		if i%emLook != 0 {
			continue
		}
		if log-last < emEnough {
			return
		}
		last = log
	}
}

// round improves the law and gives the log likelihood that it had.
func (e *em) round() (log float64) {
	for i, row := range e.f.Next {
		e.leave[i] = 1
		for _, p := range row {
			e.leave[i] -= p
		}
		e.leave[i] = max(e.leave[i], 0)
	}
	length := e.forward()
	clear(e.left)
	clear(e.after)
	for i := range e.leads {
		clear(e.leads[i])
	}
	// after[i] is the number of runs expected in phase i at a step over the chance to
	// be in it; it weighs what leads there.
	for k := length - 1; k >= 0; k-- {
		log += e.back(k, length)
	}
	for i, p := range e.f.Start {
		e.start[i] = p * e.after[i]
	}
	e.settle()
	return log
}

// forward fills in before and scale, and says how many steps can be made.
func (e *em) forward() int {
	copy(e.before[0], e.f.Start)
	for k := range e.Made {
		at, next := e.before[k], e.before[k+1]
		sum := 0.0
		for _, p := range at {
			sum += p
		}
		if sum <= 0 {
			return k
		}
		e.scale[k] = sum
		clear(next)
		for i := range at {
			at[i] /= sum
			for j := i; j < len(at); j++ { // phases lead on upwards
				next[j] += at[i] * e.f.Next[i][j]
			}
		}
	}
	return len(e.Made)
}

// back takes what was seen at a step into the expected counts, with what followed,
// and gives its part of the log likelihood.
func (e *em) back(k, length int) (log float64) {
	sent, on := float64(e.Sent[k]), 0.0
	if k+1 < len(e.Made) {
		on = float64(e.Made[k+1])
	}
	lost := float64(e.Made[k]-e.Sent[k]) - on
	at, out := e.before[k], 0.0
	for i, p := range at {
		out += p * e.leave[i]
	}
	whenSent, whenLost := 0.0, 0.0
	if sent > 0 && out > 0 {
		whenSent = sent / out
		log += sent * math.Log(out)
	}
	if out < 1 {
		whenLost = lost / (1 - out)
		if lost+on > 0 {
			log += (lost + on) * math.Log1p(-out)
		}
	}
	for i, p := range at {
		x := whenSent * e.leave[i]
		e.left[i] += p * x
		for j := i; j < len(at); j++ {
			q := e.f.Next[i][j]
			if q == 0 {
				continue
			}
			w := whenLost
			if k+1 < length {
				w += e.after[j] / e.scale[k+1]
			}
			e.leads[i][j] += p * q * w
			x += q * w
		}
		e.now[i] = x
	}
	e.after, e.now = e.now, e.after
	return log
}

// settle takes the law that explains the expected counts best.
func (e *em) settle() {
	share := func(xs []float64, more float64) float64 {
		for _, x := range xs {
			more += x
		}
		return more
	}
	if all := share(e.start, 0); all > 0 {
		for i := range e.start {
			e.f.Start[i] = e.start[i] / all
		}
	}
	for i := range e.leads {
		all := share(e.leads[i], e.left[i])
		if !(all > 0) {
			continue // nobody was there: it stays as it is
		}
		for j := range e.leads[i] {
			e.f.Next[i][j] = e.leads[i][j] / all
		}
		// A phase that nobody is seen to leave would keep a run for ever.
		if e.f.Next[i][i] > 1-1e-9 {
			e.f.Next[i][i] = 1 - 1e-9
		}
	}
}
