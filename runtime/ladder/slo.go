package ladder

// SLO is the service-level view: how many tokens/s a rung carries, over the
// concurrencies that were run, while each user gets at least Bound of them.
type SLO struct {
	Bound float64 // tokens/s of a user
	Key   string  // which figure keeps it: UserMean or UserP5
	Rows  []SLORow
}

// SLORow is what one rung carries.
type SLORow struct {
	Rung   string
	N      int    // concurrency, 0 where none that was run keeps the bound
	Tokens Value  // tokens/s there
	User   Value  // the figure that keeps the bound there
	Before *Ratio // of Tokens against those of the rung before, nil where either has none
}

// NewSLO chooses for each rung the concurrency of the highest mean throughput
// among those at which the mean of the figure over the seeds is at least bound.
// The choice is made once for all seeds: the best of each seed would flatter.
func NewSLO(t *Table, cells []Cell, bound float64, key string) *SLO {
	out := &SLO{Bound: bound, Key: key}
	for i, rung := range t.Grid.Rungs {
		row := SLORow{Rung: rung.Name}
		for _, n := range t.Grid.Concurrency {
			at := t.Row(rung.Name, n)
			tokens, user := at.Values[Throughput], at.Values[key]
			if user.N == 0 || user.Mean < bound || tokens.N == 0 {
				continue
			}
			if row.N == 0 || tokens.Mean > row.Tokens.Mean {
				row.N, row.Tokens, row.User = n, tokens, user
			}
		}
		if i > 0 && row.N > 0 && out.Rows[i-1].N > 0 {
			for _, f := range t.Figures {
				if f.Key == Throughput {
					r := t.ratio(cells, &f, rung, row.N, t.Grid.Rungs[i-1], out.Rows[i-1].N)
					row.Before = &r
				}
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
