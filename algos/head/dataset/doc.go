// Package dataset is labelled rows: what a small model said at positions of texts,
// what the large one said there, and which of the two should write. It is what
// heads are trained and judged with.
//
// The invariant that matters: rows of a problem lie together, in the order of their
// positions, and problems in the order of their numbers, so that a file is a
// function of models, workload, seed and options, byte for byte.
//
// Read rows.go, then file.go for the form on disk, which docs/heads.md documents.
package dataset
