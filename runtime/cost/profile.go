package cost

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// The roles of a profile's rows, in the order of models.
const (
	Small  = "small"
	Middle = "middle"
	Large  = "large"
)

// rolesOf lists the roles of a run by its number of models.
var rolesOf = map[int][]string{
	1: {Small},
	2: {Small, Large},
	3: {Small, Middle, Large},
}

// maxMillis bounds every coefficient: an hour. maxStep bounds a step, as sums of
// squares over a batch could take an hour past what time.Duration holds.
const (
	maxMillis = 3.6e6
	maxStep   = float64(1000 * time.Hour)
)

// Row is the step time of one role in milliseconds: base_ms and, for each
// feature of its set, coefficient x sum over the batch. Of each row of the batch,
// p is the prefill tokens, d = 0 or 1 the decode token and c the context before
// them. The coefficients of features that are not in the set are 0.
type Row struct {
	Role     string `json:"role"`
	Model    string `json:"model,omitempty"`     // name of the model that was measured
	Features string `json:"features,omitempty"`  // feature set, affine where empty
	KVTokens int    `json:"kv_tokens,omitempty"` // positions that its machine holds, 0 unknown
	TP       int    `json:"tp,omitempty"`        // tensor-parallel size that the figures are for, 0 unknown

	Base            float64 `json:"base_ms"`
	PerDecodeRow    float64 `json:"per_decode_row_ms,omitempty"`    // x sum of d
	PerPrefillToken float64 `json:"per_prefill_token_ms,omitempty"` // x sum of p
	PerToken        float64 `json:"per_token_ms,omitempty"`         // x sum of p + d
	PerTokenBeyond  float64 `json:"per_token_beyond_ms,omitempty"`  // x max(0, sum of p + d - hinge_tokens)
	HingeTokens     float64 `json:"hinge_tokens,omitempty"`         // tokens that a batch takes while the weights are read
	PerDecodeCtx    float64 `json:"per_decode_ctx_ms,omitempty"`    // x sum of c d
	PerPrefillPair  float64 `json:"per_prefill_pair_ms,omitempty"`  // x sum of p c + p (p+1) / 2
	PerCtx          float64 `json:"per_ctx_ms,omitempty"`           // x sum of c + p + d
	PerPrefillSq    float64 `json:"per_prefill_sq_ms,omitempty"`    // x sum of p^2
	PerPrefillCtx   float64 `json:"per_prefill_ctx_ms,omitempty"`   // x sum of p c
	PerCtxSq        float64 `json:"per_ctx_sq_ms,omitempty"`        // x sum of (c + p + d)^2

	Overhead       float64 `json:"overhead_ms,omitempty"`         // between the end of a step and the start of the next
	OverheadPerRow float64 `json:"overhead_per_row_ms,omitempty"` // the same, for each row of the step

	Stalls         *Stalls `json:"stalls,omitempty"`          // of the execution
	OverheadStalls *Stalls `json:"overhead_stalls,omitempty"` // of what lies between

	Box     *Box     `json:"box,omitempty"`
	Quality *Quality `json:"fit,omitempty"`
}

// Range is the least and the largest value of a feature.
type Range [2]float64

// Box is the part of the space of batches that a row was fitted on, by feature.
type Box struct {
	DecodeRows    *Range `json:"decode_rows,omitempty"`
	PrefillTokens *Range `json:"prefill_tokens,omitempty"`
	Tokens        *Range `json:"tokens,omitempty"`
	TokensBeyond  *Range `json:"tokens_beyond,omitempty"`
	DecodeCtx     *Range `json:"decode_ctx,omitempty"`
	PrefillPairs  *Range `json:"prefill_pairs,omitempty"`
	Ctx           *Range `json:"ctx,omitempty"`
	PrefillSq     *Range `json:"prefill_sq,omitempty"`
	PrefillCtx    *Range `json:"prefill_ctx,omitempty"`
	CtxSq         *Range `json:"ctx_sq,omitempty"`
}

// Errors are relative errors (fit - measured) / measured of N batches that the
// fit has not seen, as shares.
type Errors struct {
	N    int     `json:"n"`
	MAPE float64 `json:"mape"`
	Bias float64 `json:"bias"`
}

// Quality is how well a row describes the batches that were kept from its fit,
// stalls included.
type Quality struct {
	Batches int      `json:"batches"` // that it was fitted on
	All     Errors   `json:"all"`
	Prefill Errors   `json:"prefill"` // batches with prefill tokens
	Decode  Errors   `json:"decode"`  // batches without
	R2      float64  `json:"r2"`
	Zeroed  []string `json:"zeroed,omitempty"` // coefficients that came out as 0, by their fields

	// Stretch is what all batches took over what the fit says: with it as a factor
	// (see [Profile.Scaled]) steps take in the mean what they took, stalls included.
	Stretch float64 `json:"stretch,omitempty"`
}

// Profile is a named set of step times. Its JSON form is that of the fields;
// docs/format/cost-profile.md describes it.
type Profile struct {
	Name      string  `json:"name"`
	Source    string  `json:"source,omitempty"`     // where the figures come from
	LatencyMs float64 `json:"latency_ms,omitempty"` // a message from one subserver to another
	Rows      []Row   `json:"roles"`                // small first
}

// For returns the profile of a run with the given number of models (1 to 3,
// small first): one row per model, so that Step may be asked by model index.
func (p Profile) For(models int) (Profile, error) {
	roles, ok := rolesOf[models]
	if !ok {
		return Profile{}, fmt.Errorf("cost profile %q has step times for 1 to 3 models, not for %d", p.Name, models)
	}
	rows := make([]Row, 0, len(roles))
	for _, role := range roles {
		i := slices.IndexFunc(p.Rows, func(r Row) bool { return r.Role == role })
		if i < 0 {
			return Profile{}, fmt.Errorf("cost profile %q has no step time for the %s of %d models; add a row with that role", p.Name, role, models)
		}
		rows = append(rows, p.Rows[i])
	}
	p.Rows = rows
	return p, nil
}

// Scaled returns the profile with the step times of model i multiplied by
// factors[i], as for another tensor-parallel size. Overhead, stalls and latency are
// not the device's and stay.
func (p Profile) Scaled(factors []float64) (Profile, error) {
	if len(factors) != len(p.Rows) {
		return Profile{}, fmt.Errorf("cost profile %q has %d models for %d factors; give one factor per model", p.Name, len(p.Rows), len(factors))
	}
	p.Rows = slices.Clone(p.Rows)
	for i := range p.Rows {
		r, x := &p.Rows[i], factors[i]
		if !(x > 0 && x <= maxMillis) {
			return Profile{}, fmt.Errorf("factor %v of the %s model's step times is outside 0 to %g; give one above 0, 1 for as they are", x, r.Role, maxMillis)
		}
		r.Base *= x
		for f := range features {
			*r.coef(f) *= x
		}
	}
	return p, nil
}

// Step returns how long one step takes on the model with that index among
// Rows (see [Profile.For]). That is a nanosecond at least: in virtual time steps
// of none would go on for ever at the same moment. An index outside Rows is a
// programming error and panics.
func (p *Profile) Step(model int, b *Batch) time.Duration {
	ns := math.Round(p.Rows[model].ms(b) * float64(time.Millisecond))
	return time.Duration(min(max(ns, 1), maxStep))
}

// ms is the step time before rounding. Every sum is taken, also those of other
// sets: their coefficients are 0, and a choice would cost more.
func (r *Row) ms(b *Batch) float64 {
	d, p := float64(b.Decode), float64(b.Prefill)
	ms := r.Base + r.PerDecodeRow*d + r.PerPrefillToken*p
	if r.Features == "" {
		return ms
	}
	return ms + r.PerToken*(d+p) + r.PerTokenBeyond*max(0, d+p-r.HingeTokens) +
		r.PerDecodeCtx*b.DecodeCtx + r.PerPrefillPair*(b.PrefillCtx+b.PrefillTri) +
		r.PerCtx*b.Ctx + r.PerPrefillSq*b.PrefillSq + r.PerPrefillCtx*b.PrefillCtx + r.PerCtxSq*b.CtxSq
}

// Affine returns the step time of decode batches whose rows stand behind ctx
// positions each, in ms: base + perRow x rows. Under hinge it is that of batches
// below the hinge, as those of decode rows are.
func (p *Profile) Affine(model int, ctx float64) (base, perRow float64) {
	r := &p.Rows[model]
	end := ctx + 1
	one := Batch{Decode: 1, Rows: 1, DecodeCtx: ctx, Ctx: end, CtxSq: end * end}
	for f := range features {
		if f != tokensBeyond {
			perRow += *r.coef(f) * f.of(&one, 0)
		}
	}
	return r.Base, perRow
}

// Overhead returns the time between the end of a step of that many rows and the
// start of the next one that is not execution: routing, scheduling.
func (p *Profile) Overhead(model, rows int) time.Duration {
	r := &p.Rows[model]
	return millis(r.Overhead + r.OverheadPerRow*float64(rows))
}

// Latency returns how long a message between two subservers is under way.
func (p *Profile) Latency() time.Duration { return millis(p.LatencyMs) }

func millis(ms float64) time.Duration {
	return time.Duration(min(math.Round(ms*float64(time.Millisecond)), maxStep))
}

// Outside says whether a batch leaves the validity box: its step time is then a
// guess beyond what was measured. A row without a box has no outside.
func (p *Profile) Outside(model int, b *Batch) bool {
	r := &p.Rows[model]
	x := r.Box
	if x == nil {
		return false
	}
	d, q := float64(b.Decode), float64(b.Prefill)
	return x.DecodeRows.misses(d) || x.PrefillTokens.misses(q) || x.Tokens.misses(d+q) ||
		x.TokensBeyond.misses(max(0, d+q-r.HingeTokens)) || x.DecodeCtx.misses(b.DecodeCtx) ||
		x.PrefillPairs.misses(b.PrefillCtx+b.PrefillTri) || x.Ctx.misses(b.Ctx) ||
		x.PrefillSq.misses(b.PrefillSq) || x.PrefillCtx.misses(b.PrefillCtx) || x.CtxSq.misses(b.CtxSq)
}

func (r *Range) misses(x float64) bool { return r != nil && (x < r[0] || x > r[1]) }
