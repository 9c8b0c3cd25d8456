package plan

// order sorts the states of a class so that few transitions go back, and those
// only from where a batch of one model ends: it cuts the graph there and sorts
// what is left. Between two ends of the slow model time runs forwards, so with
// two models nothing turns in a circle any more but loops of one state; where
// something does, it is cut at another model as well.
func (g *graph) order(states []int32, t *tarjan) []int32 {
	return g.orderInto(make([]int32, 0, len(states)), states, t)
}

func (g *graph) orderInto(out, states []int32, t *tarjan) []int32 {
	if len(states) == 1 {
		return append(out, states[0])
	}
	at := g.rarest(states, t)
	for _, s := range states {
		t.cut[s] = t.cut[s] || g.ending[s]&at != 0
	}
	for _, c := range g.components(states, t) {
		out = g.orderInto(out, c, t)
	}
	return out
}

// rarest is the bit of the model that ends a batch in the fewest of the states,
// of those that do in any. States of one component are not cut yet, or it would
// have fallen apart, so a next one exists.
func (g *graph) rarest(states []int32, t *tarjan) uint64 {
	var best uint64
	least := len(states) + 1
	for m := range min(len(g.b), 64) {
		count := 0
		for _, s := range states {
			if g.ending[s]&bit(m) != 0 {
				count++
			}
		}
		if count > 0 && count < least {
			best, least = bit(m), count
		}
	}
	return best
}

// incoming holds the transitions of a class by target, without loops, the states
// renamed to their places in the order.
type incoming struct {
	row   []int32 // into place i: row[i] up to row[i+1]
	from  []int32
	p     []float64
	scale []float64 // 1 / chance to leave the place
}

func (g *graph) incoming(states []int32) *incoming {
	n := len(states)
	place := make([]int32, len(g.row)-1)
	for i, s := range states {
		place[s] = int32(i)
	}
	in := &incoming{row: make([]int32, n+2), scale: make([]float64, n)}
	for i, s := range states {
		leave := 0.0
		for a := g.row[s]; a < g.row[s+1]; a++ {
			if j := place[g.to[a]]; j != int32(i) {
				in.row[j+2]++
				leave += g.p[a]
			}
		}
		in.scale[i] = 1 / leave
	}
	for i := range n {
		in.row[i+2] += in.row[i+1]
	}
	in.from, in.p = make([]int32, in.row[n+1]), make([]float64, in.row[n+1])
	for i, s := range states {
		for a := g.row[s]; a < g.row[s+1]; a++ {
			if j := place[g.to[a]]; j != int32(i) {
				at := &in.row[j+1] // moves up to where the next place begins
				in.from[*at], in.p[*at] = int32(i), g.p[a]
				*at++
			}
		}
	}
	return in
}
