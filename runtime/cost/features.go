package cost

import (
	"fmt"
	"slices"
	"strings"
)

// The feature sets: which sums over a batch a row's step time is linear in. The
// name travels with the coefficients, as the same numbers mean other times under
// another set.
const (
	affine = "affine"
	eq9    = "eq9"
	split  = "split"
	hinge  = "hinge"
	legacy = "legacy"
	cross  = "cross"
)

// DefaultFeatures is the set that is fitted unless another is asked for.
const DefaultFeatures = split

// feature is one term of a step time beside the base.
type feature uint8

const (
	decodeRows feature = iota
	prefillTokens
	tokens
	tokensBeyond
	decodeCtx
	prefillPairs
	contexts
	prefillSq
	prefillCtx
	ctxSq
	features
)

// sets lists the features of each set in the order in which they are shown.
var sets = []struct {
	name string
	of   []feature
}{
	{affine, []feature{decodeRows, prefillTokens}},
	{eq9, []feature{tokens, decodeCtx, prefillPairs}},
	{split, []feature{prefillTokens, decodeRows, decodeCtx, prefillPairs}},
	{hinge, []feature{tokens, tokensBeyond, decodeCtx, prefillPairs}},
	{legacy, []feature{prefillTokens, decodeRows, contexts, prefillSq, ctxSq}},
	{cross, []feature{prefillTokens, decodeRows, contexts, prefillSq, prefillCtx}},
}

// FeatureSets names the known feature sets.
func FeatureSets() []string {
	var names []string
	for _, s := range sets {
		names = append(names, s.name)
	}
	return names
}

// featuresOf lists the features of a set; no name is affine.
func featuresOf(set string) ([]feature, error) {
	if set == "" {
		set = affine
	}
	for _, s := range sets {
		if s.name == set {
			return s.of, nil
		}
	}
	return nil, fmt.Errorf("feature set %q is unknown; sets are %s", set, strings.Join(FeatureSets(), ", "))
}

// setsWith names the sets that have a feature.
func setsWith(f feature) string {
	var names []string
	for _, s := range sets {
		if slices.Contains(s.of, f) {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// of is the feature's value for a batch; n0 is where the hinge lies, in tokens.
func (f feature) of(b *Batch, n0 float64) float64 {
	switch f {
	case decodeRows:
		return float64(b.Decode)
	case prefillTokens:
		return float64(b.Prefill)
	case tokens:
		return float64(b.Decode + b.Prefill)
	case tokensBeyond:
		return max(0, float64(b.Decode+b.Prefill)-n0)
	case decodeCtx:
		return b.DecodeCtx
	case prefillPairs:
		return b.PrefillCtx + b.PrefillTri
	case contexts:
		return b.Ctx
	case prefillSq:
		return b.PrefillSq
	case prefillCtx:
		return b.PrefillCtx
	default:
		return b.CtxSq
	}
}

// key is the coefficient's field in a file.
func (f feature) key() string {
	return [features]string{
		"per_decode_row_ms", "per_prefill_token_ms", "per_token_ms", "per_token_beyond_ms", "per_decode_ctx_ms",
		"per_prefill_pair_ms", "per_ctx_ms", "per_prefill_sq_ms", "per_prefill_ctx_ms", "per_ctx_sq_ms",
	}[f]
}

// name is the feature's field in the validity box of a file.
func (f feature) name() string {
	return [features]string{
		"decode_rows", "prefill_tokens", "tokens", "tokens_beyond", "decode_ctx",
		"prefill_pairs", "ctx", "prefill_sq", "prefill_ctx", "ctx_sq",
	}[f]
}

// coef is where a row keeps the feature's coefficient.
func (r *Row) coef(f feature) *float64 {
	return [features]*float64{
		&r.PerDecodeRow, &r.PerPrefillToken, &r.PerToken, &r.PerTokenBeyond, &r.PerDecodeCtx,
		&r.PerPrefillPair, &r.PerCtx, &r.PerPrefillSq, &r.PerPrefillCtx, &r.PerCtxSq,
	}[f]
}

// side is where a box keeps the feature's range.
func (x *Box) side(f feature) **Range {
	return [features]**Range{
		&x.DecodeRows, &x.PrefillTokens, &x.Tokens, &x.TokensBeyond, &x.DecodeCtx,
		&x.PrefillPairs, &x.Ctx, &x.PrefillSq, &x.PrefillCtx, &x.CtxSq,
	}[f]
}

// Set names the row's feature set.
func (r *Row) Set() string {
	if r.Features == "" {
		return affine
	}
	return r.Features
}

// Term is one part of a step time, for a person to read.
type Term struct {
	Key      string // the coefficient's field in a file
	Ms       float64
	Of       string // what it is multiplied by
	Measured *Range // its least and largest value where it was fitted, nil unknown
}

// Terms lists what a row's step time is made of, the base first. Rows of a set
// that is unknown have the base alone.
func (r *Row) Terms() []Term {
	out := []Term{{Key: "base_ms", Ms: r.Base, Of: "a step"}}
	set, err := featuresOf(r.Features)
	if err != nil {
		return out
	}
	for _, f := range set {
		t := Term{Key: f.key(), Ms: *r.coef(f), Of: f.words()}
		if f == tokensBeyond {
			t.Of = fmt.Sprintf("tokens beyond %.6g", r.HingeTokens)
		}
		if r.Box != nil {
			t.Measured = *r.Box.side(f)
		}
		out = append(out, t)
	}
	return out
}

// words says what a feature counts; p, d and c are a row's prefill tokens, decode
// token and context before them.
func (f feature) words() string {
	return [features]string{
		"decode rows", "prefill tokens", "tokens", "tokens beyond the hinge", "sum of c d",
		"sum of p c + p (p+1) / 2", "sum of c + p + d", "sum of p^2", "sum of p c", "sum of (c + p + d)^2",
	}[f]
}
