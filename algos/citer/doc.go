// Package citer is CITER, "Collaborative Inference for Efficient Large Language
// Model Decoding with Token-Level Routing" (Zheng et al., COLM 2025, arXiv
// 2502.01976): a head on the small model's last hidden state says how sure it is
// that the small model does well at a position, and the large model writes that
// position iff
//
//	sigmoid(head) < threshold
//
// The small model's candidate is then dropped, the large model writes the same
// position, and control returns after that one token. The head does not see the
// candidate.
//
// Defaults: 0.95 is the published code's, 0.9 that of the command in its README.
// Neither means a share of tokens; tokenrouter head calibrate finds the threshold
// of a wanted share, which is the default wherever the head's manifest has it.
//
// Ours: the caps of the published code (500 new tokens) are those of the request,
// and the large model keeps its KV between its tokens, which changes no token. No
// weights were published: the head "citer" is one trained by tokenrouter head
// train, on labels of real runs, not by the paper's recipe. Without a head the
// router faults; no_weights.lua has the rule with the largest probability for the
// confidence, and is not CITER.
//
// The invariant that matters: the operator is <, so a tie stays with the small
// model. A high score means small here; in R2R and Co-LLM it means large.
//
// router.lua is what users copy; reference.go is the oracle.
package citer
