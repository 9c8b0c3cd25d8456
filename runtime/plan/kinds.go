package plan

// kinds lists what a request can be: at which model it stands and, where that
// model has a law of sends, in which phase. Routing is then one law per kind and
// every method is blind to the difference between a model and a phase.
type kinds struct {
	model []int      // of each kind
	first []int      // first[m] up to first[m+1]: the kinds of model m
	next  [][]branch // where a step of a kind may lead, ascending by kind
	enter [][]branch // per model: the kind that a request starts in there
}

// branch is one outcome of a step. A chain of binomial draws picks among
// several: a branch is taken with probability given by those who took no earlier
// one. It is 1 for the last.
type branch struct {
	kind   int
	p      float64 // of this branch
	given  float64
	commit float64 // tokens
}

func kindsOf(s *Spec) *kinds {
	m := len(s.P)
	k := &kinds{first: make([]int, m+1), enter: make([][]branch, m)}
	for i := range m {
		start := []float64{1}
		if l := s.send(i); l != nil {
			start = l.Start
		}
		k.first[i+1] = k.first[i] + len(start)
		for x, p := range start {
			k.model = append(k.model, i)
			k.enter[i] = append(k.enter[i], branch{kind: k.first[i] + x, p: p})
		}
		k.enter[i] = chained(k.enter[i])
	}
	for x, i := range k.model {
		k.next = append(k.next, chained(k.leads(s, i, x-k.first[i])))
	}
	return k
}

// leads is what may become of a request after a step in that phase at model i.
func (k *kinds) leads(s *Spec, i, phase int) []branch {
	var out []branch
	exit := 1 - s.P[i][i]
	l := s.send(i)
	if l != nil {
		exit = 1
		for _, p := range l.Next[phase] {
			exit -= p
		}
		if exit < 1e-12 { // what is left of rounding
			exit = 0
		}
	}
	for j, p := range s.P[i] {
		switch {
		case j != i && p > 0:
			for _, b := range k.enter[j] {
				out = append(out, branch{kind: b.kind, p: exit * p / (1 - s.P[i][i]) * b.p, commit: s.committed(i, j)})
			}
		case j == i && l == nil:
			out = append(out, branch{kind: k.first[i], p: p, commit: s.committed(i, i)})
		case j == i:
			for y, p := range l.Next[phase] {
				out = append(out, branch{kind: k.first[i] + y, p: p, commit: s.committed(i, i)})
			}
		}
	}
	return out
}

// chained drops what cannot happen and fills in branch.given.
func chained(in []branch) []branch {
	var out []branch
	rest := 0.0
	for _, b := range in {
		if b.p > 0 {
			out = append(out, b)
			rest += b.p
		}
	}
	for i := range out {
		out[i].given = 1
		if i < len(out)-1 {
			out[i].given = min(1, out[i].p/rest)
		}
		rest -= out[i].p
	}
	return out
}

// send is the law of the steps between sends of model m, nil if geometric.
func (s *Spec) send(m int) *Phases {
	if s.Send == nil {
		return nil
	}
	return s.Send[m]
}

// committed is the tokens of a step at i routed to j; without K it is one.
func (s *Spec) committed(i, j int) float64 {
	if s.K == nil {
		return 1
	}
	return s.K[i][j]
}
