package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// MinSamples is how many batches of a model a profile is fitted from at least.
const MinSamples = 50

const (
	heldOut   = 5   // one batch in so many is kept from the fit
	stallAt   = 6.0 // deviations above the fit, from which on a batch is a stall
	gridRows  = 8192
	perOctave = 8 // places of the hinge that are tried between a number of tokens and its double
	digits    = 7 // of what is written
)

// NoGap marks a batch that nothing followed at once.
const NoGap time.Duration = -1

// Sample is what one batch took.
type Sample struct {
	Batch Batch
	Exec  time.Duration // forward pass and sampling, without scheduling
	// Gap is the time from the end of the execution to the start of the next batch,
	// where rows were ready for that one; below 0 where none were.
	Gap time.Duration
}

// Measured is one model of a run.
type Measured struct {
	Role     string
	Model    string
	KVTokens int // positions that its machine holds, 0 unknown
	TP       int // devices, 0 unknown
	Samples  []Sample
}

// ErrFew is in the error of a fit from too few batches.
var ErrFew = errors.New("too few batches")

// FitProfile finds the coefficients of a feature set for every model, small
// first, from the batches that it ran. One batch in five is kept from the fit and
// says how good it is. messages are times that messages between subservers were
// under way.
//
// Step times: least squares of relative errors under coefficients of 0 or more,
// then five rounds of Huber's weights, so that stalls move nothing; the hinge's
// place is that of the least errors on a grid. As that is near the median of the
// errors, all coefficients are then multiplied by one factor with which batches
// that do not stall take in the mean what they took. Overhead is fitted alike, from
// gaps by their absolute errors. Latency is the mean of the messages, but for the
// one in a hundred that took longest.
func FitProfile(name, source, set string, models []Measured, messages []time.Duration) (Profile, error) {
	if set == "" {
		set = DefaultFeatures
	}
	of, err := featuresOf(set)
	if err != nil {
		return Profile{}, err
	}
	p := Profile{Name: name, Source: source}
	if len(messages) > 0 {
		p.LatencyMs = fitLatency(messages)
	}
	for i := range models {
		m := &models[i]
		if n := len(m.Samples); n < MinSamples {
			return Profile{}, fmt.Errorf("%w: %d of the %s model, a fit takes at least %d", ErrFew, n, m.Role, MinSamples)
		}
		r := Row{Role: m.Role, Model: m.Model, Features: set, KVTokens: m.KVTokens, TP: m.TP}
		if err := r.fit(m.Samples, of); err != nil {
			return Profile{}, err
		}
		p.Rows = append(p.Rows, r)
	}
	if err := p.check(); err != nil {
		return Profile{}, fmt.Errorf("the batches do not tell what a step takes: %w", err)
	}
	return p, nil
}

// kept says whether a batch is kept from the fit: one in five, spread by the
// golden ratio so that no rhythm of a load falls together with it.
func kept(i int) bool { return uint64(i+1)*0x9e3779b97f4a7c15 < math.MaxUint64/heldOut }

// fit fills in everything that is measured.
func (r *Row) fit(samples []Sample, set []feature) error {
	train := make([]Sample, 0, len(samples))
	var test []Sample
	for i := range samples {
		if s := &samples[i]; s.Exec <= 0 || s.Batch.Rows <= 0 {
			return fmt.Errorf("a batch of %d rows of the %s model took %v; both must be above 0", s.Batch.Rows, r.Role, s.Exec)
		}
		if kept(i) {
			test = append(test, samples[i])
		} else {
			train = append(train, samples[i])
		}
	}
	if r.Features == hinge {
		r.HingeTokens = hingeOf(train, set)
	}
	d := designOf(train, set, r.HingeTokens)
	c, deviation := d.robust()
	level := r.levelled(train, set, &c, deviation)
	for k := range c {
		c[k] *= level
	}
	r.Base = round(c[0])
	r.Quality = &Quality{Batches: len(train)}
	if r.Base == 0 {
		r.Quality.Zeroed = append(r.Quality.Zeroed, "base_ms")
	}
	for k, f := range set {
		*r.coef(f) = round(c[k+1])
		if *r.coef(f) == 0 {
			r.Quality.Zeroed = append(r.Quality.Zeroed, f.key())
		}
	}
	r.Box = boxOf(train, set, r.HingeTokens)
	r.judge(test)
	r.stalls(samples, deviation)
	r.fitGaps(samples)
	return nil
}

// designOf is the regression of relative errors.
func designOf(samples []Sample, set []feature, n0 float64) *design {
	d := newDesign(1+len(set), len(samples))
	for i := range samples {
		s := &samples[i]
		y := inMillis(s.Exec)
		d.add(y, 1/y)
		for _, f := range set {
			d.put(f.of(&s.Batch, n0))
		}
	}
	return d
}

// hingeOf tries places for the hinge between the smallest and the largest batch,
// eight between a number of tokens and its double.
func hingeOf(samples []Sample, set []feature) float64 {
	some := make([]Sample, 0, gridRows)
	for i := range min(len(samples), gridRows) {
		some = append(some, samples[i*len(samples)/min(len(samples), gridRows)])
	}
	low, high := math.Inf(1), 0.0
	for i := range some {
		n := tokens.of(&some[i].Batch, 0)
		low, high = min(low, n), max(high, n)
	}
	best, least := high, math.Inf(1)
	for at, step := 1.0, 1.0; at < high; at += step {
		if at >= 2*perOctave*step {
			step *= 2
		}
		if at < low {
			continue
		}
		d := designOf(some, set, at)
		d.robust()
		if l := d.loss(); l < least {
			best, least = at, l
		}
	}
	return best
}

func boxOf(samples []Sample, set []feature, n0 float64) *Box {
	box := &Box{}
	for _, f := range set {
		side := Range{math.Inf(1), 0}
		for i := range samples {
			x := f.of(&samples[i].Batch, n0)
			side[0], side[1] = min(side[0], x), max(side[1], x)
		}
		*box.side(f) = &side
	}
	return box
}

// judge states the errors on batches that the fit has not seen.
func (r *Row) judge(test []Sample) {
	var all, prefill, decode errorSum
	var mean, total, unexplained float64
	for i := range test {
		mean += inMillis(test[i].Exec) / float64(len(test))
	}
	for i := range test {
		s := &test[i]
		y, fit := inMillis(s.Exec), r.ms(&s.Batch)
		total += (y - mean) * (y - mean)
		unexplained += (y - fit) * (y - fit)
		all.add(fit, y, 1)
		if s.Batch.Prefill > 0 {
			prefill.add(fit, y, 1)
		} else {
			decode.add(fit, y, 1)
		}
	}
	q := r.Quality
	q.All, q.Prefill, q.Decode = all.errors(), prefill.errors(), decode.errors()
	if total > 0 {
		q.R2 = round(1 - unexplained/total)
	}
}

func (e *errorSum) errors() Errors {
	mape, bias := e.shares()
	return Errors{N: int(e.w), MAPE: round(mape), Bias: round(bias)}
}

// levelled is by what factor batches beside stalls took longer in all than the
// coefficients c say.
func (r *Row) levelled(train []Sample, set []feature, c *[maxColumns]float64, deviation float64) float64 {
	s := sift{limit: stallAt * max(deviation, leastSD)}
	for i := range train {
		fit := c[0]
		for k, f := range set {
			fit += c[k+1] * f.of(&train[i].Batch, r.HingeTokens)
		}
		s.add(fit, inMillis(train[i].Exec))
	}
	return s.level()
}

// stalls keeps what lies far above the fit, and what all batches took beside it.
func (r *Row) stalls(samples []Sample, deviation float64) {
	s := sift{limit: stallAt * max(deviation, leastSD)}
	fitted, measured := 0.0, 0.0
	for i := range samples {
		fit, y := r.ms(&samples[i].Batch), inMillis(samples[i].Exec)
		fitted, measured = fitted+fit, measured+y
		s.add(fit, y)
	}
	if fitted > 0 {
		r.Quality.Stretch = round(measured / fitted)
	}
	r.Stalls = stallsOf(s.longer, len(samples))
}

// fitGaps finds the overhead.
func (r *Row) fitGaps(samples []Sample) {
	n := 0
	for i := range samples {
		if samples[i].Gap >= 0 {
			n++
		}
	}
	if n == 0 {
		return
	}
	d := newDesign(2, n)
	for i := range samples {
		if s := &samples[i]; s.Gap >= 0 {
			d.add(inMillis(s.Gap), 1)
			d.put(float64(s.Batch.Rows))
		}
	}
	c, deviation := d.robust()
	s := sift{limit: stallAt * leastSD, least: max(stallAt*deviation, clockMs)}
	for i, y := range d.y {
		row := d.row(i)
		s.add(c[0]*row[0]+c[1]*row[1], y)
	}
	r.Overhead, r.OverheadPerRow = round(s.level()*c[0]), round(s.level()*c[1])
	r.OverheadStalls = stallsOf(s.longer, n)
}

// fitLatency is the mean: hardly any message takes what most of them do, as each
// waits for who is to hear it. Beyond the 99th percentile it is the machine that
// stood still.
func fitLatency(messages []time.Duration) float64 {
	all := slices.Sorted(slices.Values(messages))
	all = all[:len(all)-len(all)/100]
	sum := time.Duration(0)
	for _, m := range all {
		sum += max(m, 0)
	}
	return round(inMillis(sum) / float64(len(all)))
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// round keeps seven significant digits: files are read by people.
func round(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		return x
	}
	return y
}
