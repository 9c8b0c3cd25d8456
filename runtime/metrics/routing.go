package metrics

import (
	"math"

	"tokenrouter/runtime/event"
)

// slowBy is how many times longer the memory is that a drift is seen against.
const slowBy = 10

// routing is one row of the routing matrix: where the rows of a batch at one
// subserver went. Each row leaves the weight keep to those before it.
type routing struct {
	keep float64
	n    int       // rows since the law last changed
	w    []float64 // weight by destination
	sum  float64   // of w
	sq   float64   // of the squared weights of single rows

	prior  []float64 // what is believed before, worth one row
	tokens []yield   // by destination

	slow drift
}

// yield is how many tokens a row that goes one way commits.
type yield struct {
	n      int
	w, sum float64
	prior  float64
}

// drift compares leaving over a short and a long memory.
type drift struct {
	keep         float64
	leave        float64 // weighted rows that left
	sum, sq, mix float64 // of weights, of their squares, of their products with the short ones
}

// newRouting is the row of a subserver among n: before anything is seen, each way
// is as likely as any other and commits a token.
func newRouting(n int, halfLife float64) routing {
	r := routing{keep: math.Exp2(-1 / halfLife), w: make([]float64, n), prior: make([]float64, n), tokens: make([]yield, n)}
	r.slow.keep = math.Exp2(-1 / (slowBy * halfLife))
	for j := range n {
		r.prior[j] = 1 / float64(n)
		r.tokens[j].prior = 1
	}
	return r
}

// restart lets new rows decide at once: what was known is left as a belief worth
// one row.
func (r *routing) restart() {
	for j := range r.w {
		r.prior[j] = r.share(j)
		y := &r.tokens[j]
		*y = yield{prior: y.mean()}
	}
	clear(r.w)
	r.n, r.sum, r.sq = 0, 0, 0
	r.slow = drift{keep: r.slow.keep}
}

// add counts a row at self that went to j and committed some tokens.
func (r *routing) add(self, j event.Peer, tokens int) {
	for k := range r.w {
		r.w[k] *= r.keep
	}
	r.n++
	r.w[j]++
	r.sum = r.keep*r.sum + 1
	r.sq = r.keep*r.keep*r.sq + 1

	y := &r.tokens[j]
	y.n++
	y.w = r.keep*y.w + 1
	y.sum = r.keep*y.sum + float64(tokens)

	d := &r.slow
	d.leave *= d.keep
	if j != self {
		d.leave++
	}
	d.sum = d.keep*d.sum + 1
	d.sq = d.keep*d.keep*d.sq + 1
	d.mix = d.keep*r.keep*d.mix + 1
}

// credit adds tokens to a row counted before, the at-th that went to j: what its
// destination appended on receiving it.
func (r *routing) credit(j event.Peer, at, tokens int) {
	y := &r.tokens[j]
	if at > 0 && at <= y.n {
		y.sum += float64(tokens) * math.Pow(r.keep, float64(y.n-at))
	}
}

// share is the estimate of going to j.
func (r *routing) share(j int) float64 {
	if r.known() {
		return r.w[j] / r.sum
	}
	return (r.w[j] + r.prior[j]) / (r.sum + 1)
}

func (r *routing) known() bool { return r.n >= minRows }

// effective is the number of equally weighted rows that would give shares of the
// same standard error: (sum of weights)^2 / sum of squares.
func (r *routing) effective() float64 {
	if r.n == 0 {
		return 0
	}
	return r.sum * r.sum / r.sq
}

func (y *yield) mean() float64 {
	if y.n == 0 {
		return y.prior
	}
	return y.sum / y.w
}

// Drift compares the share of rows that leave a subserver over the half-life with
// that over ten half-lives. Z is their difference in standard errors, for rows
// that are independent: beyond 3 or so the share moves.
type Drift struct{ Now, Before, Z float64 }

func (r *routing) drift(self event.Peer) Drift {
	if r.n == 0 {
		return Drift{}
	}
	d := &r.slow
	out := Drift{Now: 1 - r.w[self]/r.sum, Before: d.leave / d.sum}
	// The variance of a weighted share is q(1-q) times the squares of its weights.
	q := out.Before
	v := q * (1 - q) * (r.sq/(r.sum*r.sum) + d.sq/(d.sum*d.sum) - 2*d.mix/(r.sum*d.sum))
	if v > 1e-12 {
		out.Z = (out.Now - out.Before) / math.Sqrt(v)
	}
	return out
}
