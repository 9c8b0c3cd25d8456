// Package r2r is R2R, "Efficiently Navigating Divergent Reasoning Paths with
// Small-Large Model Token Routing" (Fu et al., NeurIPS 2025, arXiv 2505.21600):
// the large model writes a position iff
//
//	router.lua  H = -sum p ln p  >= threshold   (nats, raw logits, whole vocabulary)
//	neural.lua  sigmoid(head)    >= threshold   (the paper's own router)
//	outcome.lua the same of another head
//
// where both are of the small model's step. Its candidate is then dropped, the
// large model writes the same position, and control returns after that one token.
// The first token is routed like any other. EOS ends a request where it is
// committed: a dropped EOS does not count. The random strategy of the published
// code (p = 0.5) is random.lua of package controls at share 0.5.
//
// Defaults: 0.45 nats is that of the published entropy strategy, 0.5 that of the
// published server's command line. The published configurations bring 0.406 (AIME),
// 0.42 (GPQA) and 0.139 (LiveCodeBench). Neither is portable:
// nats depend on the vocabulary, a head's score on how it was trained. A head
// that was calibrated (tokenrouter head calibrate) has its threshold in its manifest,
// which is then the default.
//
// Ours: nothing in the rule. The head is whatever "r2r" names in the folder of
// heads: the published network (hidden state, embedding of the candidate and 100
// largest logits) or a smaller one. The paper's labels come from a judge of
// divergence; tokenrouter head collect has none, and labels by the answers that each
// model's token leads to, as the shipped heads are, or by a mere mismatch of the two
// tokens. outcome.lua asks the head "outcome", a smaller network that also reads the
// entropy. The published strategies immediate, momentum and rolling are not here.
//
// The invariant that matters: the operator is >=, so a tie goes to the large
// model; R-Stitch and Co-LLM have > instead, CITER has < on the opposite sign.
//
// router.lua is what users copy; reference.go is the oracle.
package r2r
