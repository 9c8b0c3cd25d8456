// Package rstitch is R-Stitch, "Dynamic Trajectory Stitching for Efficient
// Reasoning" (arXiv 2507.17307), algorithm 1. The signal is the normalised
// entropy of the model that is writing,
//
//	H = -sum p ln p / ln V   (V = rows of the vocabulary)
//
// and the model in charge changes by
//
//	small -> large  iff H >  threshold; the candidate is dropped, the large
//	                model writes the same position
//	large -> small  iff H <= threshold; the large model's own token is kept
//
// so the large model writes runs of one token or more. Sampling, EOS and the
// length limit are those of the request; the paper's T_max also counts dropped
// steps, ours counts tokens.
//
// Default: 0.03, the largest of the paper's three thresholds (0.001, 0.02, 0.03). All
// are normalised, so for a vocabulary of 151,936 it is 0.36 nats and for one of 424
// it is 0.18.
//
// Ours: nothing in the rule.
//
// The invariant that matters: > and <= are complements, so exactly one model is
// in charge; on a tie the small one is.
//
// router.lua is what users copy; reference.go is the oracle. R-Stitch+ (a
// trained policy behind the threshold) is not part of this package.
package rstitch
