package frontier

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// Report is a table in its stable JSON form. What there is none of is null.
type Report struct {
	Problems  int          `json:"problems"`
	LeftOut   int          `json:"left_out"` // that some point lacks, or that have no answer to check
	Resamples int          `json:"resamples"`
	Seed      uint64       `json:"bootstrap_seed"`
	Cost      CostOf       `json:"cost_of"`
	From      *float64     `json:"from_share"`
	To        *float64     `json:"to_share"`
	Families  []string     `json:"families"`
	Points    []PointJSON  `json:"points"`
	Curves    []CurveJSON  `json:"curves"`
	Versus    []VersusJSON `json:"versus"`
}

// FigureJSON is a number with its 95 % interval.
type FigureJSON struct {
	Value     *float64 `json:"value"`
	Lo        *float64 `json:"lo"`
	Hi        *float64 `json:"hi"`
	Undefined int      `json:"undefined,omitempty"` // resamples that have none
}

// PointJSON is one point.
type PointJSON struct {
	Series    string       `json:"series"`
	Knobs     string       `json:"knobs"`
	Router    string       `json:"router"` // "" of one that was composed
	Composed  bool         `json:"composed"`
	Share     FigureJSON   `json:"large_share"`
	Accuracy  FigureJSON   `json:"accuracy"`
	OfLarge   FigureJSON   `json:"accuracy_of_large"`
	Recovered FigureJSON   `json:"gap_recovered"`
	TokensPS  *float64     `json:"tokens_per_s"`
	DeviceS   *float64     `json:"device_s"` // of the whole run
	Cost      FigureJSON   `json:"cost_per_problem"`
	OfCost    FigureJSON   `json:"cost_of_large"`
	Switches  FigureJSON   `json:"switches_per_token"`
	Lead      FigureJSON   `json:"lead"` // over the first reference, at the same share
	BestShare bool         `json:"best_share"`
	BestRate  bool         `json:"best_rate"`
	BestCost  bool         `json:"best_cost"`
	ByFamily  []FigureJSON `json:"accuracy_by_family"`
	Faults    int          `json:"router_faults"`
}

// CurveJSON is one curve.
type CurveJSON struct {
	Series   string     `json:"series"`
	Composed bool       `json:"composed"`
	Points   int        `json:"points"`
	Low      *float64   `json:"low_share"`
	High     *float64   `json:"high_share"`
	Area     FigureJSON `json:"area"`
	APGR     FigureJSON `json:"apgr"`
	CPT50    FigureJSON `json:"cpt_50"`
	CPT80    FigureJSON `json:"cpt_80"`
	CPT95    FigureJSON `json:"cpt_95"`
}

// VersusJSON is how much more area a curve has than another one.
type VersusJSON struct {
	Series     string     `json:"series"`
	Reference  string     `json:"reference"`
	Difference FigureJSON `json:"area_difference"`
}

// NewReport is the stable form of a table.
func NewReport(t *Table) Report {
	out := Report{
		Problems: t.Problems, LeftOut: t.Set.LeftOut, Resamples: t.Options.Resamples, Seed: t.Options.Seed, Cost: t.Set.Cost,
		From: finite(t.From), To: finite(t.To), Families: append([]string{}, t.Families...),
		Points: []PointJSON{}, Curves: []CurveJSON{}, Versus: []VersusJSON{},
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		p := PointJSON{
			Series: r.Point.Series, Knobs: r.Point.Label, Router: r.Point.Router, Composed: r.Point.Composed(),
			Share: r.Share.json(), Accuracy: r.Accuracy.json(), OfLarge: r.OfLarge.json(), Recovered: r.Recovered.json(),
			TokensPS: finite(r.Point.Rate), DeviceS: finite(r.Point.DeviceS), Cost: r.Cost.json(), OfCost: r.OfCost.json(),
			Switches: r.Switches.json(), Lead: r.Lead.json(), BestShare: r.BestShare, BestRate: r.BestRate, BestCost: r.BestCost,
			ByFamily: []FigureJSON{}, Faults: r.Point.Faults,
		}
		for _, f := range r.ByFamily {
			p.ByFamily = append(p.ByFamily, f.json())
		}
		out.Points = append(out.Points, p)
	}
	for i := range t.Curves {
		c := &t.Curves[i]
		out.Curves = append(out.Curves, CurveJSON{
			Series: c.Series, Composed: c.Composed, Points: len(c.Points), Low: finite(c.Low), High: finite(c.High),
			Area: c.Area.json(), APGR: c.APGR.json(), CPT50: c.CPT[0].json(), CPT80: c.CPT[1].json(), CPT95: c.CPT[2].json(),
		})
	}
	for i := range t.Versus {
		v := &t.Versus[i]
		out.Versus = append(out.Versus, VersusJSON{v.Series, v.Reference, v.Difference.json()})
	}
	return out
}

func (f Figure) json() FigureJSON {
	return FigureJSON{finite(f.Value), finite(f.Lo), finite(f.Hi), f.Undefined}
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// WriteCSV writes a line for each point, composed ones too. Columns keep their names;
// a cell is empty where there is no figure. Families follow, a column each.
func WriteCSV(w io.Writer, t *Table) error {
	out := csv.NewWriter(w)
	head := []string{"series", "knobs", "composed"}
	for _, name := range []string{"large_share", "accuracy", "accuracy_of_large", "gap_recovered", "cost_per_problem", "cost_of_large", "switches_per_token", "lead"} {
		head = append(head, name, name+"_lo", name+"_hi")
	}
	head = append(head, "tokens_per_s", "device_s", "best_share", "best_rate", "best_cost")
	for _, f := range t.Families {
		head = append(head, "accuracy "+f)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		row := []string{r.Point.Series, r.Point.Label, strconv.FormatBool(r.Point.Composed())}
		for _, f := range []Figure{r.Share, r.Accuracy, r.OfLarge, r.Recovered, r.Cost, r.OfCost, r.Switches, r.Lead} {
			row = append(row, cell(f.Value), cell(f.Lo), cell(f.Hi))
		}
		row = append(row, cell(r.Point.Rate), cell(r.Point.DeviceS), strconv.FormatBool(r.BestShare), strconv.FormatBool(r.BestRate), strconv.FormatBool(r.BestCost))
		for _, f := range r.ByFamily {
			row = append(row, cell(f.Value))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func cell(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 8, 64)
}
