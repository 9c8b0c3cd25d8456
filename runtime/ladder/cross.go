package ladder

import (
	"encoding/csv"
	"io"
	"strconv"
)

// Cross is algorithms by workloads: a ladder for each, and what TokenRouter's rung
// is worth over what each algorithm's official code does and over the baselines.
type Cross struct{ Cases []CaseTable }

// CaseTable is one algorithm under one workload.
type CaseTable struct {
	Algorithm Algorithm
	Table     *Table
	cells     []Cell
}

// Baselines are the rungs that TokenRouter's is set against, beside the official
// one of the algorithm.
func Baselines() []string { return []string{Lockstep, Resubmit, Sequential} }

// CrossKeys are the figures that are compared, by key; a latency below 1 is
// shorter.
func CrossKeys() []string {
	return []string{Throughput, UserMean, "latency_ms_p50", "latency_ms_p99", "ttft_ms_p50", "ttft_ms_p99", "itl_ms_p99"}
}

// NewCross makes the tables of grids, each of the case of one of the algorithms.
// Cells of other cases are left out.
func NewCross(algos []Algorithm, grids []Grid, roles []string, cells []Cell) *Cross {
	by := map[Case][]Cell{}
	for i := range cells {
		c := Case{cells[i].Algo, cells[i].Workload}
		by[c] = append(by[c], cells[i])
	}
	out := &Cross{}
	for _, g := range grids {
		for _, a := range algos {
			if a.Name == g.Case.Algo {
				out.Cases = append(out.Cases, CaseTable{a, NewTable(g, roles, by[g.Case]), by[g.Case]})
			}
		}
	}
	return out
}

// Split is [Table.Split] of the case.
func (c *CaseTable) Split(key, from string, n int) (Split, bool) {
	return c.Table.Split(c.cells, key, from, n)
}

// CaseJSON is the stable form of one case.
type CaseJSON struct {
	Algo     string      `json:"algo"`
	Workload string      `json:"workload"`
	Official string      `json:"official"`
	Over     []SplitJSON `json:"over"` // TokenRouter's rung over lower ones
	Report
}

// SplitJSON is a ratio with its parts; they multiply to it.
type SplitJSON struct {
	N     int                  `json:"n"`
	Rung  string               `json:"rung"`
	Key   string               `json:"key"`
	Total RatioJSON            `json:"total"`
	Parts map[string]RatioJSON `json:"parts"`
}

// Report is the stable form of all cases.
func (x *Cross) Report() []CaseJSON {
	out := []CaseJSON{}
	for i := range x.Cases {
		c := &x.Cases[i]
		of := CaseJSON{Algo: c.Algorithm.Name, Workload: c.Table.Grid.Case.Workload, Official: c.Algorithm.Official, Over: []SplitJSON{}, Report: NewReport(c.Table, c.cells)}
		for _, n := range c.Table.Grid.Concurrency {
			for _, r := range c.Table.Grid.Rungs {
				for _, key := range CrossKeys() {
					s, ok := c.Split(key, r.Name, n)
					if !ok {
						continue
					}
					j := SplitJSON{N: n, Rung: r.Name, Key: key, Total: *s.Total.json(), Parts: map[string]RatioJSON{}}
					for _, p := range s.Parts {
						j.Parts[p.Cause] = *p.Ratio.json()
					}
					of.Over = append(of.Over, j)
				}
			}
		}
		out = append(out, of)
	}
	return out
}

// WriteCSV writes a line for each cell of all cases.
func (x *Cross) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	for i := range x.Cases {
		t := x.Cases[i].Table
		if i == 0 {
			head := []string{"algo", "workload", "rung", "n", "seed"}
			for _, f := range t.Figures {
				head = append(head, f.Key)
			}
			if err := out.Write(head); err != nil {
				return err
			}
		}
		for _, s := range t.Grid.Order() {
			line := []string{s.Case.Algo, s.Case.Workload, s.Rung.Name, strconv.Itoa(s.N), strconv.FormatUint(s.Seed, 10)}
			if err := out.Write(append(line, t.figuresOf(x.Cases[i].cells, s)...)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
