package frontier

import (
	"fmt"
	"math"
)

// Choice is the point of a series that is chosen by one set and reported on another.
type Choice struct {
	Series string
	Point  *Point // of the set that was chosen on, nil where none keeps enough
	Chosen *Row   // what it came to there
	Row    *Row   // what it comes to on the other problems, nil if it was not run there
}

// Choose takes for each series that was run the cheapest point whose accuracy is at
// least keep times that of large only, and looks it up in the table to report on. The
// cheapest has the smallest large share, of equal ones the smallest cost. What is
// looked up is not chosen again: that table must be of other problems.
func Choose(on, report *Table, keep float64) ([]Choice, error) {
	if !(keep > 0 && keep <= 1) {
		return nil, fmt.Errorf("a part of the large model's accuracy lies above 0 and up to 1, not at %g", keep)
	}
	var out []Choice
	for i := range on.Curves {
		c := &on.Curves[i]
		if c.Composed {
			continue
		}
		choice := Choice{Series: c.Series}
		for _, at := range c.Points {
			r := &on.Rows[at]
			if r.OfLarge.Value >= keep && (choice.Chosen == nil || cheaper(r, choice.Chosen)) {
				choice.Chosen, choice.Point = r, r.Point
			}
		}
		if choice.Chosen != nil {
			choice.Row = report.named(choice.Point.Name())
		}
		out = append(out, choice)
	}
	return out, nil
}

func cheaper(a, b *Row) bool {
	if a.Share.Value != b.Share.Value {
		return a.Share.Value < b.Share.Value
	}
	return a.Cost.Value < b.Cost.Value
}

// named gives the row of a point that was run.
func (t *Table) named(name string) *Row {
	for i := range t.Rows {
		if r := &t.Rows[i]; !r.Point.Composed() && r.Point.Name() == name {
			return r
		}
	}
	return nil
}

// ChoiceText is the table of choices for people.
func ChoiceText(choices []Choice) string {
	g := grid{{"chosen", "there: large %", "of large %", "here: large %", "", "right %", "", "of large %", "", "tok/s"}}
	for _, c := range choices {
		switch {
		case c.Chosen == nil:
			g = append(g, []string{c.Series, "-", "no point keeps enough"})
			continue
		case c.Row == nil:
			g = append(g, []string{c.Point.Name(), number(100*c.Chosen.Share.Value, 2), number(100*c.Chosen.OfLarge.Value, 1), "not run here"})
			continue
		}
		row := []string{c.Point.Name(), number(100*c.Chosen.Share.Value, 2), number(100*c.Chosen.OfLarge.Value, 1)}
		row = append(append(append(row, hundreds(c.Row.Share)...), hundreds(c.Row.Accuracy)...), hundreds(c.Row.OfLarge)...)
		g = append(g, append(row, number(c.Row.Point.Rate, 0)))
	}
	return g.text()
}

// ChoiceJSON is a choice in its stable form.
type ChoiceJSON struct {
	Series  string     `json:"series"`
	Knobs   *string    `json:"knobs"` // null where no point keeps enough
	There   FigureJSON `json:"accuracy_of_large_there"`
	Share   FigureJSON `json:"large_share"` // null where the point was not run
	Right   FigureJSON `json:"accuracy"`
	OfLarge FigureJSON `json:"accuracy_of_large"`
	Rate    *float64   `json:"tokens_per_s"`
}

// NewChoices is the stable form.
func NewChoices(choices []Choice) []ChoiceJSON {
	out := []ChoiceJSON{}
	none := exactly(math.NaN()).json()
	for _, c := range choices {
		j := ChoiceJSON{Series: c.Series, There: none, Share: none, Right: none, OfLarge: none}
		if c.Chosen != nil {
			j.Knobs, j.There = &c.Point.Label, c.Chosen.OfLarge.json()
		}
		if c.Row != nil {
			j.Share, j.Right, j.OfLarge, j.Rate = c.Row.Share.json(), c.Row.Accuracy.json(), c.Row.OfLarge.json(), finite(c.Row.Point.Rate)
		}
		out = append(out, j)
	}
	return out
}
