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

// Qwen3H100 is the pool of Qwen3-0.6B, 8B and 32B on H100 (the last on two of
// them) under vLLM, by the coefficients that were published with arXiv
// 2607.18253. Whoever runs two models of it has the first and the last.
const Qwen3H100 = "qwen3-h100"

func builtin() []Profile {
	return []Profile{{
		Name:   A100R2R,
		Source: "R2R pair on A100, flat step times of the TokenRouter paper; middle from the cascade example",
		Rows: []Row{
			{Role: Small, Base: 6.0},
			{Role: Middle, Base: 12.3},
			{Role: Large, Base: 27.9},
		},
	}, {
		Name:   Qwen3H100,
		Source: "Qwen3-0.6B, 8B, 32B on 1, 1, 2 H100, published coefficients of arXiv 2607.18253",
		Rows: []Row{
			{
				Role: Small, Model: "Qwen3-0.6B", Features: legacy, KVTokens: 628_512, TP: 1,
				Base: 2.582076153, PerPrefillToken: 2.0335711505e-3, PerDecodeRow: 1.6889500804e-2,
				PerCtx: 3.5429418766e-5, PerPrefillSq: 1.8925400080e-7, PerCtxSq: 1.5754738958e-10,
			},
			{
				Role: Middle, Model: "Qwen3-8B", Features: legacy, KVTokens: 382_304, TP: 1,
				Base: 7.295929681, PerPrefillToken: 2.0789009923e-2, PerDecodeRow: 2.5632010898e-2,
				PerCtx: 4.6490885514e-5, PerPrefillSq: 5.1195590336e-7, PerCtxSq: 2.6851287985e-10,
			},
			{
				Role: Large, Model: "Qwen3-32B", Features: legacy, KVTokens: 298_416, TP: 2,
				Base: 14.347877296, PerPrefillToken: 5.2941851182e-2, PerDecodeRow: 6.3048760783e-2,
				PerCtx: 3.6863941394e-5, PerPrefillSq: 8.7740594432e-7, PerCtxSq: 4.5195933178e-10,
			},
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
