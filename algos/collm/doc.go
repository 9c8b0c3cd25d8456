// Package collm is Co-LLM, "Learning to Decode Collaboratively with Multiple
// Language Models" (Shen et al., ACL 2024, arXiv 2403.03870): one row d more in the
// base model's output head gives the probability of deferring at a position, and
// the assistant takes part iff
//
//	sigmoid(d . h) > threshold   (h: the base model's last hidden state)
//
// The base model's candidate is dropped. Then
//
//	router.lua   (defer)    the assistant writes the position; control returns
//	                        after that one token
//	compose.lua  (compose)  the token is argmax (1-d) P_base + d P_ref, written by
//	                        the base model's subserver
//	draft.lua    (defer)    the base model drafts k tokens before it looks; from the
//	                        first one over the threshold on the draft is cut
//
// The tokens of draft.lua are those of router.lua at any k, what differs is how
// much is written in vain: with one in ten over the threshold, 6.5 of 10 stand.
//
// Defaults: 0.5 is the published fallback; the paper searches the threshold on a
// validation set (tokenrouter head calibrate finds that of a wanted share, which is
// the default wherever the head's manifest has it). k = 10 is the published function's
// default; all published scripts use 1, which is router.lua.
//
// Ours: compose adds over the five most likely tokens of each model, in place of
// both whole distributions: a token counts as improbable for the model whose list
// lacks it. So it is not exact. It may differ where a distribution is flat: where the
// mixture's best token is in one list only, or, sixth in both, in neither. What is
// missing in a sum is at most the weight times the fifth probability of the list, so
// a lead of more than (1-d)*base[5] + d*ref[5] cannot be wrong. Compose is greedy
// whatever the request's sampling. The warm-up schedule of the threshold is not here.
// The paper fine-tunes the whole base model together with d; a head of tokenrouter
// head train is a row alone on a frozen base, the paper's starting point of that
// training: it is not full Co-LLM. No weights were published. Without a head the routers fault; no_weights.lua has the rule with 1 - top1 for
// the probability, and is not Co-LLM.
//
// The invariant that matters: the operator is >, so a tie stays with the base
// model.
//
// router.lua is what users copy; reference.go is the oracle.
package collm
