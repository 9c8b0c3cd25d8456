package cost

import (
	"math"
	"time"
)

// DefaultHalfLife is the half-life of a Fitter, in batches, where none is given.
const DefaultHalfLife = 50

// MinBatches is how many batches make a Fit Known.
const MinBatches = 5

const (
	trusted    = 3    // batches of a size before it shapes the line: one outlier among them is outvoted
	decodeRule = 0.2  // share of batches that are pure decode, from which on these alone give Base and PerRow
	fadeLives  = 20   // half-lives after which a size that was not seen again counts half
	faded      = 0.5  // what a size must count to belong to the box
	maxRows    = 4096 // batches with more rows are not kept
)

// Fitter follows the step time of one model on this machine:
//
//	ms = Base + PerRow x decode rows + PerToken x prefill tokens
//
// with coefficients of 0 or more. Prefill tokens are those of prompts and what
// resumed rows feed beyond one token, as in [Profile.Step].
//
// Decode batches, without prefill tokens, are kept by size: one level for each
// number of rows, which forgets by its own batches. Forgetting over all batches
// would lose what a batch of one takes while batches of eight run, and the slope
// with it. A size that is not seen again fades twenty times more slowly.
// Batches with prefill tokens are a phase of their own, of which the last three
// half-lives are kept. They give PerToken; Base and PerRow only where hardly any
// batch is pure decode, as at a model whose every visit brings a suffix.
//
// Outliers: a decode time is clipped at four times the spread of its size, and
// a size starts with the median of its first times. Prefill times are weighted
// by Huber's rule over five rounds. What a fifth of the batches does is no
// outlier, and eight times in a row on one side are a new level at once.
//
// All errors are relative: a step that is 5 % off counts the same at every size.
// Add takes a few ns and allocates only when a batch is the largest so far. A
// Fitter belongs to one goroutine.
type Fitter struct {
	halfLife float64
	keep     float64 // weight that a batch leaves to those before it
	decodes  int
	mixes    int
	clipped  int
	sizes    []level // by decode rows
	mixed    []mix   // ring of the last batches with prefill tokens
	points   []point // scratch of Fit
	resid    []float64
}

// mix is a batch with prefill tokens.
type mix struct{ rows, tokens, ms float64 }

// NewFitter returns an empty fitter. halfLife is the number of batches after
// which one counts half; 0 means DefaultHalfLife.
func NewFitter(halfLife float64) *Fitter {
	if !(halfLife > 0) {
		halfLife = DefaultHalfLife
	}
	return &Fitter{
		halfLife: halfLife,
		keep:     math.Exp2(-1 / halfLife),
		mixed:    make([]mix, int(min(max(3*halfLife, 32), 512))),
	}
}

// Reset forgets everything: the clock or its speed has changed.
func (f *Fitter) Reset() {
	clear(f.sizes)
	f.decodes, f.mixes, f.clipped = 0, 0, 0
}

// Add takes the time of one batch. A batch without rows and tokens, or without a
// time, is not counted.
func (f *Fitter) Add(rows, prefillTokens int, d time.Duration) {
	if d <= 0 || rows < 0 || rows > maxRows || prefillTokens < 0 || rows+prefillTokens == 0 {
		return
	}
	ms := float64(d) / float64(time.Millisecond)
	if prefillTokens > 0 {
		f.mixed[f.mixes%len(f.mixed)] = mix{float64(rows), float64(prefillTokens), ms}
		f.mixes++
		return
	}
	for rows >= len(f.sizes) {
		f.sizes = append(f.sizes, level{})
	}
	f.decodes++
	s := &f.sizes[rows]
	s.seen = f.decodes
	if s.add(ms, f.keep) {
		f.clipped++
	}
}

// Size is what was measured of decode batches of one size.
type Size struct {
	Rows int
	N    int     // batches
	Ms   float64 // robust mean
}

// Fit is the step time as it stands. Its zero value knows nothing.
type Fit struct {
	Base, PerRow, PerToken float64 // ms

	N        int // decode batches
	PrefillN int // batches with prefill tokens

	// Slope is whether PerRow is measured. It is not, and PerRow is 0, while fewer
	// than three batches were of another size than the rest.
	Slope bool
	// Joint is whether batches with prefill tokens gave Base and PerRow too.
	Joint bool

	// The validity box: the smallest and largest number of decode rows and of
	// prefill tokens that the coefficients come from.
	Low, High             int
	TokensLow, TokensHigh int

	Sizes   []Size // decode batches, rising by rows
	Clipped int    // decode batches that were outliers

	// Errors of the fit on the batches it last saw, outliers included, as shares:
	// the mean of |fit - measured| / measured and of (fit - measured) / measured,
	// for decode batches and for those with prefill tokens.
	MAPE, Bias               float64
	PrefillMAPE, PrefillBias float64

	// Stretch is how much longer those batches took in all than the fit says: on a
	// machine with other work, stalls that no coefficient should follow still cost
	// their time. 1 where there are no outliers.
	Stretch float64
}

// Known says whether there are enough batches to go by.
func (f *Fit) Known() bool { return f.N+f.PrefillN >= MinBatches }

// Of predicts the time of a step in ms. inside is false where the batch lies
// outside of what was measured.
func (f *Fit) Of(rows, prefillTokens int) (ms float64, inside bool) {
	ms = f.Base + f.PerRow*float64(rows) + f.PerToken*float64(prefillTokens)
	inside = f.N+f.PrefillN > 0 && rows >= f.Low && rows <= f.High
	if prefillTokens > 0 {
		inside = inside && f.PrefillN > 0 && prefillTokens >= f.TokensLow && prefillTokens <= f.TokensHigh
	}
	return ms, inside
}

// Fit gives the coefficients. The result shares nothing with the fitter.
func (f *Fitter) Fit() Fit {
	out := Fit{N: f.decodes, PrefillN: f.mixes, Clipped: f.clipped}
	if f.decodes+f.mixes == 0 {
		return out
	}
	out.Joint = float64(f.decodes) < decodeRule*float64(f.decodes+f.mixes)
	f.fitRows(&out)
	if !out.Joint {
		f.fitTokens(&out)
	}
	f.measure(&out)
	return out
}

// weight is what a size counts: its batches, and less the longer it was not seen.
func (f *Fitter) weight(s *level) float64 {
	return s.w * math.Exp2(-float64(f.decodes-s.seen)/(fadeLives*f.halfLife))
}

// fitRows finds Base and PerRow, in a joint fit PerToken too.
func (f *Fitter) fitRows(out *Fit) {
	f.points = f.points[:0]
	least := 1
	for b := range f.sizes {
		if s := &f.sizes[b]; s.n >= trusted && f.weight(s) >= faded {
			least = trusted
		}
	}
	var rows span
	for b := range f.sizes {
		s := &f.sizes[b]
		w := f.weight(s)
		if s.n == 0 || w < faded {
			continue
		}
		out.Sizes = append(out.Sizes, Size{Rows: b, N: s.n, Ms: s.at})
		if s.n < least {
			continue
		}
		f.points = append(f.points, newPoint(float64(b), 0, s.at, w))
		rows.add(b)
	}
	columns := colBase | colRows
	if out.Joint {
		columns |= colTokens
		f.eachMix(func(m *mix, w float64) {
			f.points = append(f.points, newPoint(m.rows, m.tokens, m.ms, w))
			rows.add(int(m.rows))
		})
		f.tokenBox(out)
	}
	out.Low, out.High = rows.low, rows.high
	out.Slope = rows.low < rows.high && (!out.Joint || f.sizesVary())
	if !out.Slope {
		columns &^= colRows
	}
	rounds := 1
	if out.Joint {
		rounds = huberRounds
	}
	c := f.solve(columns, rounds)
	out.Base, out.PerRow, out.PerToken = c[0], c[1], c[2]
}

// sizesVary says whether enough points are of another size than most.
func (f *Fitter) sizesVary() bool {
	f.resid = f.resid[:0]
	for i := range f.points {
		f.resid = append(f.resid, f.points[i].x[1])
	}
	most := median(f.resid)
	other := 0
	for _, rows := range f.resid {
		if rows != most {
			other++
		}
	}
	return other >= trusted
}

// fitTokens finds PerToken from what prefill batches take beyond their rows.
func (f *Fitter) fitTokens(out *Fit) {
	if f.mixes == 0 {
		return
	}
	f.points = f.points[:0]
	f.eachMix(func(m *mix, w float64) {
		p := newPoint(0, m.tokens, m.ms, w)
		p.x[0], p.y = 0, m.ms-out.Base-out.PerRow*m.rows
		f.points = append(f.points, p)
	})
	out.PerToken = f.solve(colTokens, huberRounds)[2]
	f.tokenBox(out)
}

// eachMix goes over the kept prefill batches with their weights.
func (f *Fitter) eachMix(do func(m *mix, w float64)) {
	w := 1.0
	for age := range min(f.mixes, len(f.mixed)) {
		do(&f.mixed[(f.mixes-1-age)%len(f.mixed)], w)
		w *= f.keep
	}
}

func (f *Fitter) tokenBox(out *Fit) {
	var tokens span
	f.eachMix(func(m *mix, _ float64) { tokens.add(int(m.tokens)) })
	out.TokensLow, out.TokensHigh = tokens.low, tokens.high
}

// measure states how far the fit is from the batches last seen.
func (f *Fitter) measure(out *Fit) {
	var decode, prefill errorSum
	for b := range f.sizes {
		s := &f.sizes[b]
		n := min(s.n, recent)
		if n == 0 {
			continue
		}
		w := f.weight(s) / float64(n)
		for _, ms := range s.last[:n] {
			decode.add(out.Base+out.PerRow*float64(b), ms, w)
		}
	}
	f.eachMix(func(m *mix, w float64) {
		prefill.add(out.Base+out.PerRow*m.rows+out.PerToken*m.tokens, m.ms, w)
	})
	out.MAPE, out.Bias = decode.shares()
	out.PrefillMAPE, out.PrefillBias = prefill.shares()
	out.Stretch = 1
	if fitted := decode.fitted + prefill.fitted; fitted > 0 {
		out.Stretch = (decode.measured + prefill.measured) / fitted
	}
}

// errorSum sums relative errors, and times.
type errorSum struct{ w, abs, signed, fitted, measured float64 }

func (e *errorSum) add(fit, ms, w float64) {
	r := (fit - ms) / ms
	e.w += w
	e.abs += w * math.Abs(r)
	e.signed += w * r
	e.fitted += w * fit
	e.measured += w * ms
}

func (e *errorSum) shares() (mape, bias float64) {
	if e.w == 0 {
		return 0, 0
	}
	return e.abs / e.w, e.signed / e.w
}

// span is the range of what was seen, 0 to 0 while nothing was.
type span struct {
	low, high int
	any       bool
}

func (s *span) add(x int) {
	if !s.any {
		s.any, s.low, s.high = true, x, x
		return
	}
	s.low, s.high = min(s.low, x), max(s.high, x)
}
