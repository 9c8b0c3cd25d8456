package workload

import (
	"math"

	"tokenrouter/runtime/rng"
)

// process tells the random streams of the arrival processes apart. The values are
// part of what a seed means.
type process int

const (
	processPoisson process = 1 + iota
	processGamma
	processMMPP
)

// draws is one stream of keyed draws: each step has a position of its own, so
// what is drawn at one depends on no other.
type draws struct {
	seed    uint64
	process process
	at      int // step
	n       int // draws at it
}

func (d *draws) step() { d.at, d.n = d.at+1, 0 }

// uniform gives a number in (0, 1).
func (d *draws) uniform() float64 {
	key := rng.Key{Seed: d.seed, Pos: d.at, Purpose: rng.Arrivals + rng.Purpose(d.process)}
	u := key.Uint64(d.n)
	d.n++
	return unit(u)
}

// exponential gives a number of mean 1.
func (d *draws) exponential() float64 { return -math.Log(d.uniform()) }

// gamma gives a gamma number of the given shape and scale 1 (Marsaglia and Tsang,
// "A Simple Method for Generating Gamma Variables", TOMS 26, 2000; below shape 1
// by their section 6, a number of shape+1 times a power of a uniform one).
func (d *draws) gamma(shape float64) float64 {
	if shape < 1 {
		return d.gamma(shape+1) * math.Pow(d.uniform(), 1/shape)
	}
	a := shape - 1.0/3
	c := 1 / math.Sqrt(9*a)
	for {
		x := normal(d.uniform(), d.uniform())
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(d.uniform()) < x*x/2+a-a*v+a*math.Log(v) {
			return a * v
		}
	}
}

// unit turns 64 random bits into a number in (0, 1): never 0, whose logarithm is
// not finite.
func unit(u uint64) float64 { return (float64(u>>11) + 0.5) * 0x1p-53 }

// normal gives a standard normal number (Box and Muller 1958).
func normal(u, v float64) float64 {
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}
