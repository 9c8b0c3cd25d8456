// Package query holds query-level routers: one model writes the whole answer, and
// the router picks which. They stand beside the token-level ones at equal share of
// large tokens.
//
//	mix     P(large) = share, one draw per request: the straight line between the
//	        two models
//	length  large iff the prompt has at least so many tokens
//	probe   large iff the mean entropy of the small model's first tokens is >=
//	        threshold; they are then cut, and the large model begins at the first
//	        position. An answer that is shorter than the probe is judged by what
//	        it has
//	head    large iff the head "query" scores the prompt >= threshold: the idea of
//	        RouteLLM (Ong et al., arXiv 2406.18665) with a head on the small model's
//	        hidden state behind the prompt in place of RouteLLM's own routers, which
//	        are not here
//
// A request begins at the small model, so its first candidate is made, and dropped,
// where the large model answers. With the probe so many steps are, and the answer
// is shown that many tokens late.
//
// Defaults: all ours, that of head the one in the head's manifest where it has one;
// none is portable between models or workloads.
//
// The invariant that matters: the rule decides once per request, at its first token
// or at the end of the probe, so an answer has one writer; later tokens cost a look
// at whether they are the first.
//
// mix.lua, length.lua, probe.lua and head.lua are what users copy; reference.go is
// their oracle.
package query
