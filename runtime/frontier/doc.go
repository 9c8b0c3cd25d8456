// Package frontier says what a router buys: accuracy against the share of tokens
// that the large model writes, against tokens/s and against what the tokens cost,
// with intervals, and how a router stands against others that answered the same
// problems.
//
// The invariant that matters: everything is paired by problem. Every figure is a
// function of the outcomes of single problems, points are set side by side over the
// problems that all of them answered, and a resample of the bootstrap draws
// problems, the same ones for every point and curve. What is easy or hard for
// everybody drops out of a difference.
//
// It is pure: it is given records or outcomes, and has no clock, no cluster and no
// file. Read outcome.go (what is known of a problem), set.go (points over common
// problems), curve.go (area, APGR, CPT), query.go (routers of whole requests,
// composed without a run), table.go and bootstrap.go (figures with intervals), then
// choose.go, text.go, export.go and svg.go.
package frontier
