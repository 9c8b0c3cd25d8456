// Package me is the mixture-model-like ensemble (Fu et al., arXiv 2605.00419):
// before every token, the first included, one model is drawn,
//
//	m ~ Cat(w),  P(m) = w[m] / sum(w),
//
// and that model alone runs and writes the token from its own distribution.
// Skipped models read the tokens of the others when they are drawn next.
//
// The claim of the paper, that this equals sampling from the averaged
// distribution, holds for plain sampling at temperature 1 only; under greedy
// decoding it is a random choice of model, not an ensemble.
//
// A request begins at home, so who writes the first token is drawn after the
// home model has made a candidate for it, which is dropped when another model
// is drawn. Draws are keyed by (seed, request, position, model): draw 0 at the
// first position chooses its writer, draw 1 at any position chooses the writer
// of the next one.
//
// Defaults: equal weights, as in all published configurations, which also sample at
// temperature 1 from the ten most likely tokens; sampling here is that of the
// request.
//
// Ours: draws that are keyed, in place of one generator for a run. The models share
// one vocabulary: the paper's union of vocabularies is not here.
//
// The invariant that matters: every token's writer is an independent draw from
// the same distribution, so run lengths are geometric.
//
// router.lua is what users copy; reference.go is the oracle. It takes two models
// or three.
package me
