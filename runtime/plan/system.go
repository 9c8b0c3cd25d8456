package plan

import (
	"math"
	"math/bits"
	"slices"
)

// system is a spec made ready for the chain. Requests of one kind are alike in
// all that follows, so a state counts, per kind, those that wait (q) and those
// that run (r), and per model the ticks that its batch has left (tau).
type system struct {
	*kinds
	n      int
	b, cap []int // per model
	t      [][]int
	tick   float64   // ms
	gain   []float64 // kind -> tokens that one of its steps commits, expected
	after  []*law    // kind -> where its requests go; kinds with the same law share it
	come   []*law    // model -> the kind in which a request comes
	fields []field   // q per kind, r per kind, tau per model
	words  int
}

// law is a distribution over kinds, with the multinomials made from it.
type law struct {
	to     []int // kinds with positive probability, ascending
	p      []float64
	splits []*split // by number of requests
}

// split lists the ways in which some requests fall on law.to, one per row.
type split struct {
	p     []float64
	count []int32 // len(p) rows of len(law.to)
}

// field is the place of a number in a packed state.
type field struct {
	word  int
	shift uint
	mask  uint64
}

func newSystem(s *Spec) (*system, error) {
	t, tick, err := s.ticks()
	if err != nil {
		return nil, err
	}
	y := &system{kinds: kindsOf(s), n: s.N, t: t, tick: tick}
	for m := range s.P {
		y.b, y.cap = append(y.b, s.threshold(m)), append(y.cap, s.most(m))
		y.come = append(y.come, newLaw(y.enter[m]))
	}
	for _, next := range y.next {
		gain, l := 0.0, newLaw(next)
		for _, b := range next {
			gain += b.p * b.commit
		}
		for _, old := range y.after {
			if slices.Equal(old.to, l.to) && slices.Equal(old.p, l.p) {
				l = old // in a mixture of experts all kinds are routed as one
			}
		}
		y.gain, y.after = append(y.gain, gain), append(y.after, l)
	}
	y.layout()
	return y, nil
}

func newLaw(branches []branch) *law {
	l := &law{}
	for _, b := range branches {
		l.to, l.p = append(l.to, b.kind), append(l.p, b.p)
	}
	return l
}

// layout gives each number of a state its bits, none across two words.
func (y *system) layout() {
	longest := 0
	for _, row := range y.t {
		longest = max(longest, slices.Max(row))
	}
	word, used := 0, 0
	put := func(width int) {
		if used+width > 64 {
			word, used = word+1, 0
		}
		y.fields = append(y.fields, field{word: word, shift: uint(used), mask: 1<<width - 1})
		used += width
	}
	for range 2 * len(y.model) {
		put(bits.Len(uint(y.n)))
	}
	for range y.b {
		put(bits.Len(uint(longest)))
	}
	y.words = word + 1
}

// split lists the ways in which n requests fall on the law; nil if there are
// more than most.
func (l *law) split(n, most int) *split {
	for len(l.splits) <= n {
		l.splits = append(l.splits, nil)
	}
	if l.splits[n] != nil {
		return l.splits[n]
	}
	if ways(n, len(l.to)) > float64(most) {
		return nil
	}
	s := &split{}
	count := make([]int32, len(l.to))
	var place func(k, left int, lp float64)
	place = func(k, left int, lp float64) {
		if k == len(count)-1 {
			count[k] = int32(left)
			lp += float64(left)*math.Log(l.p[k]) - logFact(left)
			if p := math.Exp(lp); p > never {
				s.p = append(s.p, p)
				s.count = append(s.count, count...)
			}
			return
		}
		for i := 0; i <= left; i++ {
			count[k] = int32(i)
			place(k+1, left-i, lp+float64(i)*math.Log(l.p[k])-logFact(i))
		}
	}
	place(0, n, logFact(n))
	sum := 0.0
	for _, p := range s.p {
		sum += p
	}
	for i := range s.p {
		s.p[i] /= sum
	}
	l.splits[n] = s
	return s
}

// ways counts the splits of n alike requests over d kinds: C(n+d-1, d-1).
func ways(n, d int) float64 {
	w := 1.0
	for k := 1; k < d; k++ {
		w = w * float64(n+k) / float64(k)
	}
	return w
}
