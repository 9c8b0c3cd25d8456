// Package controls holds the baselines that a router is measured against:
// random.lua routes by a coin, chance.lua by a Markov chain over the models,
// small_only.lua and large_only.lua never change the model.
//
// The invariant that matters: none of them looks at a model's output.
//
// The routers are embedded by package algos.
package controls
