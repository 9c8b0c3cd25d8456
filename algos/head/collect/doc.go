// Package collect gathers labelled rows from a pair of models: what the small one
// knew at positions of texts like those it will meet in use, and whether the large
// one should have written there.
//
// A row is labelled by mismatch (the models' most likely tokens differ) or by
// outcome: with the small model's token in its place the large model, writing all
// that follows, comes to a wrong answer, and without it to the right one. Where the
// models agree there is nothing to decide, so only mismatches are rolled out.
//
// The invariant that matters: a problem's rows depend on the models, the problem and
// the options, not on what was collected beside it.
//
// Read collect.go, then walk.go for the life of one problem.
package collect
