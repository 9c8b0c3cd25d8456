// Package r2r is R2R, "Efficiently Navigating Divergent Reasoning Paths with
// Small-Large Model Token Routing" (Fu et al., arXiv 2505.21600), with its
// entropy strategy: the large model writes a position iff the small model's
// entropy there is at or above the threshold,
//
//	H = -sum p ln p >= threshold   (nats, raw logits over the full vocabulary)
//
// The small model's candidate is then dropped, the large model writes the same
// position, and control returns after that one token. The first token is routed
// like any other. EOS ends a request where it is committed: a dropped EOS does
// not count.
//
// The invariant that matters: the operator is >=, so a tie goes to the large
// model; R-Stitch has > instead.
//
// router.lua is what users copy; reference.go is the oracle. The trained router
// of the paper is not part of this package.
package r2r
