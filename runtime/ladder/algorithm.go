package ladder

import (
	"fmt"
	"slices"
	"strings"
)

// Algorithm is how one of the field routes, as a process: which shipped router
// draws it, and what its own code does about batches and KV.
type Algorithm struct {
	Name     string
	Router   string             // a shipped router that decides by chance
	Params   map[string]float64 // knobs of it
	P        [][]float64        // where a step sends its request, small first
	Drop     bool               // a token that the small model sends on is written anew; else it is kept
	Official string             // the rung that official code stands on
	From     string             // where the probabilities come from

	// Published are its tokens/s here and in official code, as TokenRouter's authors
	// measured them at concurrency 4; 0 where no figure is known.
	Published, PublishedOfficial float64
}

// Algorithms are the five of the TokenRouter paper (spec: section 0 of the
// algorithms' semantics). Of R2R the share is that of the paper's own validation;
// no source has one for CITER and Co-LLM under that system.
func Algorithms() []Algorithm {
	oneToken := func(name string, p float64) Algorithm {
		return Algorithm{
			Name: name, Router: "chance", Drop: true, P: [][]float64{{1 - p, p}, {1, 0}},
			Params: map[string]float64{"small_large": p, "large_small": 1, "small_middle": 0, "replace": 1},
		}
	}
	r2r := oneToken("r2r", 0.35)
	r2r.Official, r2r.From = Lockstep, "p published: the R2R validation of the TokenRouter paper"
	r2r.Published, r2r.PublishedOfficial = 244.6, 89.6
	citer := oneToken("citer", 0.07)
	citer.Official, citer.From = Recompute, "p assumed: the most that the edge system built on it reports (< 7 %)"
	citer.Published, citer.PublishedOfficial = 149.3, 17.2
	collm := oneToken("collm", 0.2)
	collm.Official, collm.From = Stateless, "p assumed: no share is published"
	collm.Published, collm.PublishedOfficial = 76.0, 3.46
	stitch := oneToken("rstitch", 0.11)
	stitch.P[1] = []float64{0.83, 0.17}
	stitch.Params["large_small"] = 0.83
	stitch.Official, stitch.From = Sequential, "small to large published (more than 89 % of small tokens have an entropy of 0.1 or less), the way back measured on the embedded pair (1.2 steps in the mean)"
	me := Algorithm{
		Name: "me", Router: "me", Params: map[string]float64{"small": 1, "large": 1}, P: [][]float64{{0.5, 0.5}, {0.5, 0.5}},
		Official: Sequential, From: "weights published: all shipped configurations weigh models alike",
	}
	return []Algorithm{r2r, citer, collm, stitch, me}
}

// ParseAlgorithms reads a list of names; empty is all of them.
func ParseAlgorithms(list string) ([]Algorithm, error) {
	all := Algorithms()
	if strings.TrimSpace(list) == "" {
		return all, nil
	}
	var out []Algorithm
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(all, func(a Algorithm) bool { return a.Name == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no algorithm %q; known are %s", name, algorithmNames(all))
		case slices.ContainsFunc(out, func(a Algorithm) bool { return a.Name == name }):
			return nil, fmt.Errorf("the algorithm %q is named twice", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func algorithmNames(all []Algorithm) string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}

// Commit is the style in which tokens are committed when a request changes hands.
func (a *Algorithm) Commit() string {
	if a.Drop {
		return "drop and redo"
	}
	return "commit and go"
}

// Rungs are those that an algorithm is run on: its official one if the ladder has
// it not, and the ladder's.
func (a *Algorithm) Rungs(of []Rung) []Rung {
	var out []Rung
	for _, r := range Official() {
		if r.Name == a.Official {
			out = append(out, r)
		}
	}
	return append(out, of...)
}

// Set changes a knob of the process. P follows where it is one of chance's between
// small and large, else it is no longer known.
func (a *Algorithm) Set(knob string, x float64) {
	params := map[string]float64{}
	for k, v := range a.Params {
		params[k] = v
	}
	params[knob] = x
	a.Params = params
	up, chance := params["small_large"]
	if !chance || a.P == nil {
		a.P = nil
		return
	}
	down := params["large_small"]
	a.P = [][]float64{{1 - up, up}, {down, 1 - down}}
	a.From = "set by hand"
}
