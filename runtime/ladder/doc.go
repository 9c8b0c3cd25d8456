// Package ladder measures what people do today against what this scheduler does,
// rung by rung: one request at a time, all in lock-step, every switch a new
// request, no waiting, thresholds by the plan, look-ahead. A rung is settings of
// one and the same cluster, so all of them run on one engine and leave one kind
// of tape.
//
// The invariant that matters: rungs are compared within pairs. Every rung runs
// every concurrency with every seed, a seed gives the same requests whatever the
// rung, and only cells of one seed are divided by one another: at one concurrency
// in the table, at that where either rung carries most in the service-level view.
// A cell that was not run is missing and marked as such, never filled in.
//
// Several ladders side by side are a cross: algorithms by workloads, each algorithm
// with the rung that its official code stands on. What TokenRouter's rung is worth
// over a lower one is taken apart along a way on which one thing is switched at a
// time, so the parts multiply to the whole.
//
// It is pure: it is given a function that runs one setting, and has no clock, no
// cluster and no file. Read rung.go, then grid.go (what is run, in which order),
// table.go (what is made of it), slo.go, and text.go; of a cross algorithm.go,
// split.go and cross.go.
package ladder
