package plan

import "slices"

// components finds the strongly connected components of the graph on some
// states, without the transitions out of those that are cut, in topological
// order: no component can reach an earlier one (Tarjan, "Depth-first search and
// linear graph algorithms", SIAM J. Comput. 1972). t holds scratch for all states.
func (g *graph) components(states []int32, t *tarjan) [][]int32 {
	for _, s := range states {
		t.index[s] = 0
		t.next[s], t.end[s] = g.row[s], g.row[s+1]
		if t.cut[s] {
			t.end[s] = t.next[s]
		}
		t.inside[s] = true
	}
	var (
		all        [][]int32
		open, path []int32
		count      int32
		done       = make([]int32, len(states)) // filled from the back
		left       = len(states)
	)
	for _, root := range states {
		if t.index[root] != 0 {
			continue
		}
		path = append(path[:0], root)
		for len(path) > 0 {
			i := path[len(path)-1]
			if t.index[i] == 0 {
				count++
				t.index[i], t.low[i] = count, count
				open = append(open, i)
			}
			if t.next[i] < t.end[i] {
				j := g.to[t.next[i]]
				t.next[i]++
				switch {
				case !t.inside[j]:
				case t.index[j] == 0:
					path = append(path, j)
				default:
					t.low[i] = min(t.low[i], t.index[j])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1]
				t.low[up] = min(t.low[up], t.low[i])
			}
			if t.low[i] != t.index[i] {
				continue
			}
			to := left
			for {
				j := open[len(open)-1]
				open = open[:len(open)-1]
				t.inside[j] = false
				left--
				done[left] = j
				if j == i {
					break
				}
			}
			all = append(all, done[left:to:to])
		}
	}
	slices.Reverse(all)
	return all
}

// tarjan is the scratch of components, by state.
type tarjan struct {
	index, low, next, end []int32
	inside                []bool // in the graph and not yet in a component
	cut                   []bool
}

func (g *graph) newTarjan() *tarjan {
	n := len(g.row) - 1
	i := make([]int32, 4*n)
	b := make([]bool, 2*n)
	return &tarjan{index: i[:n], low: i[n : 2*n], next: i[2*n : 3*n], end: i[3*n:], inside: b[:n], cut: b[n:]}
}

// class is a strongly connected component of the whole graph.
type class struct {
	states    []int32
	recurrent bool // no transition leaves it
}

// classes are those of the whole graph in topological order.
func (g *graph) classes(t *tarjan) []class {
	n := len(g.row) - 1
	states := make([]int32, n)
	for i := range states {
		states[i] = int32(i)
	}
	var all []class
	of := make([]int32, n)
	for c, states := range g.components(states, t) {
		for _, s := range states {
			of[s] = int32(c)
		}
		all = append(all, class{states, true})
	}
	for c := range all {
		for _, s := range all[c].states {
			for a := g.row[s]; a < g.row[s+1]; a++ {
				if of[g.to[a]] != int32(c) {
					all[c].recurrent = false
				}
			}
		}
	}
	return all
}

// absorb is the probability with which a run from the start ends in each class.
func (g *graph) absorb(all []class) []float64 {
	end := make([]float64, len(all))
	many := -1
	for i, c := range all {
		if c.recurrent {
			end[i] = 1
			many++
		}
	}
	if many == 0 {
		return end
	}
	clear(end)
	in := make([]float64, len(g.row)-1)
	for _, a := range g.origin {
		in[a.to] += a.p
	}
	sum := 0.0
	for i, c := range all {
		if !c.recurrent {
			g.pour(c.states, in)
			continue
		}
		for _, s := range c.states {
			end[i] += in[s]
		}
		sum += end[i]
	}
	for i := range end {
		end[i] /= sum
	}
	return end
}

// pour moves the probability that came into the states of a transient class on
// to later classes: round by round, until what is left inside no longer counts
// or, where leaving is very rare, is bound to split like what has left.
func (g *graph) pour(states []int32, in []float64) {
	const nothing, rounds = 1e-16, 10_000
	for range rounds {
		for _, s := range states {
			leave, flow := 0.0, in[s]
			in[s] = 0
			for a := g.row[s]; a < g.row[s+1]; a++ {
				if g.to[a] != s {
					leave += g.p[a]
				}
			}
			for a := g.row[s]; a < g.row[s+1]; a++ {
				if g.to[a] != s {
					in[g.to[a]] += flow * g.p[a] / leave
				}
			}
		}
		left := 0.0
		for _, s := range states {
			left += in[s]
		}
		if left < nothing {
			return
		}
	}
}
