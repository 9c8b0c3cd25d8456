package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/runtime/event"
)

// chanceFlags are short for knobs of the router chance, under which where a
// request goes is drawn. They are those of plan, so that what it predicts can be
// run under the same flags.
type chanceFlags struct {
	P       *float64 `name:"p" placeholder:"P" help:"Router chance: probability that a step of the small model sends its request to the large one, which sends it back after a token."`
	P01     *float64 `name:"p01" placeholder:"P" help:"Router chance: probability that a step of the small model sends its request to the large one; with --p10."`
	P10     *float64 `name:"p10" placeholder:"P" help:"Router chance: probability that a step of the large model sends it back; with --p01."`
	Weights string   `placeholder:"W,W[,W]" help:"Router chance: any step sends its request to each model by its weight, and keeps its token."`
	Matrix  string   `name:"P" placeholder:"ROW;ROW" help:"Router chance: a row per model of the probabilities of where a step sends its request, such as '0.8,0.2;0.3,0.7'."`

	knobs  map[string]float64 // of chance, by the flags above
	models int                // that they are of, 0: any
}

// chance is the router that they set.
const chance = "chance"

// plan is the command plan with the same routing.
func (c *chanceFlags) plan() planCmd {
	return planCmd{P: c.P, P01: c.P01, P10: c.P10, Weights: c.Weights, Matrix: c.Matrix}
}

// given are the flags of the routing that were given.
func (c *chanceFlags) given() []string {
	p := c.plan()
	return p.routingFlags()
}

// settleRouter chooses the router where none is named, and turns the flags of
// the routing into knobs.
func (c *chanceFlags) settleRouter(f *clusterFlags) error {
	given := c.given()
	switch {
	case len(given) > 0 && f.Router != "" && strings.TrimSuffix(filepath.Base(f.Router), ".lua") != chance:
		return fmt.Errorf("%s sets knobs of the router %s, --router %s has its own: set them with --param, or leave --router out", given[0], chance, f.Router)
	case f.Router == "" && len(given) > 0:
		f.Router = chance
	case f.Router == "":
		f.Router = "r2r"
	}
	if len(given) == 0 {
		return nil
	}
	if len(given) > 1 && !slices.Equal(given, presets["r-stitch"]) {
		return fmt.Errorf("%s do not go together; give --p, or --p01 with --p10, or --weights, or --P", strings.Join(given, " and "))
	}
	p := c.plan()
	var s system
	if err := p.routing(&s); err != nil {
		return err
	}
	return c.set(&s)
}

// set takes the knobs of a routing. A pair is the small and the large model, so
// the knobs of the middle one are left alone.
func (c *chanceFlags) set(s *system) error {
	n := len(s.P)
	if n < 2 || n > 3 {
		return errors.New("--P and --weights are of two or three models here")
	}
	c.models, c.knobs = n, map[string]float64{"replace": 1}
	if s.Algo == "me" {
		c.knobs["replace"] = 0
	}
	if s.Algo != "me" && s.Algo != "matrix" {
		c.models = 0 // small and large, whoever is between
	}
	for i := range n {
		for j := range n {
			if i != j {
				from, to := event.Role(event.Peer(i), n), event.Role(event.Peer(j), n)
				c.knobs[from+"_"+to] = s.P[i][j]
			}
		}
	}
	if c.models == 0 && n == 2 {
		c.knobs["small_middle"], c.knobs["middle_small"], c.knobs["middle_large"] = 0, 1, 0
	}
	return nil
}
