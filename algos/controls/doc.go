// Package controls holds the routers that a router is measured against.
//
//	small_only, large_only  one model writes everything: the ends of a sweep
//	random      a coin per token, P(large) = share: the share of large tokens is
//	            the knob, up to chance, whatever the models say; draws are keyed by
//	            (seed, request, position), so it is the same in every run
//	oracle      the large model writes where its token is not the small one's: the
//	            text is the large model's (greedy), its share of tokens the least
//	            that gives this text. Every position takes a step of both models,
//	            so the share says nothing of cost: large steps are 1 per token
//	handover    small -> large iff H >= threshold, then a span of tokens
//	hysteresis  small -> large iff H >= up, large -> small iff H <= down, nats of
//	            whoever writes: R-Stitch with two thresholds
//	window      mean H over a window of the small model's tokens >= threshold: the
//	            text is cut back to the highest H in it, the first of equals, and
//	            the large model writes a span from there
//	chance      a Markov chain over the models: what plan computes with
//
// Where they come from: random is R2R's strategy of that name (published at 0.5);
// window is what users of R2R have added to it; the others are ours. Defaults that
// are in nats are R2R's 0.45 where one token decides, and ours elsewhere.
//
// The invariant that matters: none of them is trained, and all of them run on any
// models, so what a trained router gains over them is gained by the training.
//
// The routers are embedded by package algos; reference.go is their oracle.
package controls
