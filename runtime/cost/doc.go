// Package cost knows how long a step of a model takes: on a machine that is
// not this one by cost profiles, used by the paced clock (real tokens, foreign
// rhythm), the emulated clock and the simulator; on this one by fitting the
// steps that were measured.
//
// The invariant that matters: a step time is a pure function of profile,
// model and batch. Noise, where a clock wants it, is drawn elsewhere with a
// key of its own.
//
// Read profile.go for the profiles, builtin.go for the figures and their
// sources, and fit.go for what is measured.
package cost
