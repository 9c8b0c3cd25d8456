package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/ladder"
)

// gridAbout says what a grid is of: all that its figures depend on but what the
// cells themselves say.
type gridAbout struct {
	Program    string          `json:"program"`
	Profile    *cost.Profile   `json:"profile"`
	KVTokens   int             `json:"kv_tokens"`
	Length     float64         `json:"length"`
	Algorithms []gridAlgorithm `json:"algorithms"`
}

// gridAlgorithm is an algorithm as it was run.
type gridAlgorithm struct {
	Algo     string             `json:"algo"`
	Router   string             `json:"router"`
	Params   map[string]float64 `json:"params"`
	Routing  [][]float64        `json:"routing"` // null: as the router has it
	Commit   string             `json:"commit"`
	Official string             `json:"official"` // the rung that official code stands on
	From     string             `json:"from"`     // where the probabilities come from
}

func (g *gridRun) describe(a *ladder.Algorithm, c *cluster) {
	o := &g.about
	o.Program, o.Profile, o.KVTokens, o.Length = "tokenrouter "+version(), &c.profile, *c.flags.KVTokens, g.cmd.Length
	st := c.runtime.Status()
	is := gridAlgorithm{
		Algo: a.Name, Router: routerLabel(st.RouterFile, st.RouterHash), Params: map[string]float64{}, Routing: a.P,
		Commit: a.Commit(), Official: a.Official, From: a.From,
	}
	for _, k := range c.runtime.Knobs() {
		is.Params[k.Name] = k.Value
	}
	o.Algorithms = append(o.Algorithms, is)
}

func hasPool(r cost.Row) bool { return r.KVTokens > 0 }

// gridJSON is the stable form of grid --json.
type gridJSON struct {
	gridAbout
	WallS  float64           `json:"wall_s"` // of the runs made now
	Notes  []string          `json:"notes"`
	Tables []ladder.CaseJSON `json:"tables"`
}

func (g *gridRun) print(w io.Writer) error {
	cross := ladder.NewCross(g.algos, g.grids, gridRoles(), g.cells)
	switch {
	case g.cmd.CSV:
		return cross.WriteCSV(w)
	case g.cmd.JSON:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(&gridJSON{gridAbout: g.about, WallS: g.wall.Seconds(), Notes: g.notes(), Tables: cross.Report()})
	}
	text := ""
	for _, n := range g.notes() {
		text += ladder.Wrap(n, 0)
	}
	made := ""
	if g.made > 0 {
		made = fmt.Sprintf("\n%d runs in %v\n", g.made, g.wall.Round(100*time.Millisecond))
	}
	_, err := io.WriteString(w, cross.Text()+text+made)
	return err
}

// notes say what the figures cannot show.
func (g *gridRun) notes() []string {
	notes := []string{"Ratios are of the schedule and of what is computed again, on step times that are the same for all rungs. Overheads of official stacks are in none of them."}
	if p := g.about.Profile; p != nil && !feeds(p) {
		notes = append(notes, fmt.Sprintf("The cost profile %s takes no time for tokens that are fed: what a rung computes again costs only the batches into which it does not fit, of %d tokens. --profile qwen3-h100 has a price for it.", p.Name, drawnBudget))
	}
	return notes
}

// feeds says whether a profile has a price for tokens beyond one a row.
func feeds(p *cost.Profile) bool {
	var one, many cost.Batch
	one.Add(1, 100, false)
	many.Add(65, 36, false)
	for i := range p.Rows {
		if p.Step(i, &many) > p.Step(i, &one) {
			return true
		}
	}
	return false
}
