package plan

import (
	"math"
	"slices"
)

// binomial draws the number of successes by inversion: one uniform number a
// draw, and a larger one never gives fewer successes. So systems that read the
// same uniform numbers stay as alike as they can.
type binomial struct {
	p    float64
	rows []cdf // by trials, built when first asked for
	kept int   // values held in rows
	last cdf   // a row that is not kept
}

// cdf is a distribution function from lo on. What lies outside has less than
// 1e-15 together.
type cdf struct {
	lo    int
	at    []float64
	guide *[guides]uint16 // of a row that is kept: where a search for u from k/guides on starts
}

// guides makes a search take a step or two.
const guides = 64

// keptValues bounds the memory of a binomial. What is beyond is built anew for
// each draw, which happens with tens of thousands of requests only.
const keptValues = 1 << 20

func (b *binomial) draw(n int, u float64) int {
	if n < len(b.rows) && b.rows[n].at != nil {
		row := &b.rows[n]
		lo := int(row.guide[int(u*guides)])
		for row.at[lo] <= u {
			lo++
		}
		return row.lo + lo
	}
	b.build(n)
	at := b.last.at
	lo, hi := 0, len(at)-1
	for hi-lo > 8 {
		if mid := (lo + hi) / 2; at[mid] > u {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	for lo < hi && at[lo] <= u {
		lo++
	}
	return b.last.lo + lo
}

func (b *binomial) build(n int) {
	b.last.fill(n, b.p)
	if b.kept += len(b.last.at); b.kept > keptValues {
		b.kept = keptValues
		return
	}
	for n >= len(b.rows) {
		b.rows = append(b.rows, cdf{})
	}
	b.rows[n] = cdf{lo: b.last.lo, at: slices.Clone(b.last.at)}
	b.rows[n].lead()
}

// lead fills in the guide. A row has 65,536 entries or more only where draws
// vary by thousands; then some of its searches start early.
func (c *cdf) lead() {
	c.guide = new([guides]uint16)
	i := 0
	for k := range c.guide {
		for c.at[i] <= float64(k)/guides {
			i++
		}
		c.guide[k] = uint16(min(i, math.MaxUint16))
	}
}

// fill works outwards from the mode, where the mass is, by the ratio of
// neighbouring probabilities.
func (c *cdf) fill(n int, p float64) {
	const least = 1e-18 // against the mode
	odds := p / (1 - p)
	mode := min(n, int(float64(n+1)*p))
	c.lo = mode
	w := 1.0
	for c.lo > 0 && w > least {
		w *= float64(c.lo) / (odds * float64(n-c.lo+1))
		c.lo--
	}
	c.at = c.at[:0]
	sum := 0.0
	for x := c.lo; ; x++ {
		sum += w
		c.at = append(c.at, sum)
		if x == n || (x > mode && w < least) {
			break
		}
		w *= odds * float64(n-x) / float64(x+1)
	}
	for i := range c.at {
		c.at[i] /= sum
	}
	c.at[len(c.at)-1] = 1
}
