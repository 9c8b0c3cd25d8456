package cost

import (
	"fmt"
	"slices"
	"strings"
)

// A100R2R is the rhythm of the paper's machine: 6.0 ms for a step of the
// small model and 27.9 ms for one of the large, whatever the batch and
// without a surcharge for prefill.
//
// The middle model's 12.3 ms is no measurement on that machine: it is the
// middle step time of the three-model cascade example of the throughput model
// (6 / 12.3 / 48.3 ms), taken so that three models can be paced too. Runs with
// two models do not use it.
const A100R2R = "a100-r2r"

func builtin() []Profile {
	return []Profile{{
		Name:   A100R2R,
		Source: "R2R pair on A100, flat step times of the TokenRouter paper; middle from the cascade example",
		Rows: []Row{
			{Role: Small, Base: 6.0},
			{Role: Middle, Base: 12.3},
			{Role: Large, Base: 27.9},
		},
	}}
}

// Names lists the built-in profiles, sorted.
func Names() []string {
	var names []string
	for _, p := range builtin() {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// Lookup returns a built-in profile; the error of an unknown name lists the
// known ones.
func Lookup(name string) (Profile, error) {
	for _, p := range builtin() {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("cost profile %q is unknown; built-in profiles: %s", name, strings.Join(Names(), ", "))
}
