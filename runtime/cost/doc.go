// Package cost knows how long a step of a model takes: on a machine that is
// not this one by cost profiles, used by the paced clock (real tokens, foreign
// rhythm), the emulated clock and the simulator; on this one by fitting the
// steps that were measured.
//
// The invariant that matters: a step time is a pure function of profile,
// model and batch. Stalls, where a clock wants them, are drawn beside it with a
// key of their own (stalls.go); noise is drawn elsewhere.
//
// Read profile.go for the profiles, features.go for what a step time is linear
// in, read.go for the file, builtin.go for the figures and their sources.
// fit_profile.go fits a whole profile from many batches, once; fit.go follows
// what is measured while a system runs.
package cost
