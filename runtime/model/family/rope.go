package family

import (
	"fmt"
	"math"
)

// Kind is how rotary positions are scaled to reach beyond the context that a
// model was trained on.
type Kind string

// The kinds that are implemented. Others are refused by name.
const (
	Unscaled Kind = ""
	Linear   Kind = "linear" // all frequencies divided by Factor
	Llama3   Kind = "llama3" // long waves divided by Factor, short ones kept
	Yarn     Kind = "yarn"   // "YaRN" (arXiv 2309.00071), section 3
)

// Rope describes rotary positions: the pair (i, i + HeadDim/2) of a head turns
// by pos * Theta^(-2i/HeadDim), before scaling.
type Rope struct {
	Theta    float64
	Kind     Kind
	Factor   float64 // at least 1; not for Unscaled
	Low      float64 // Llama3: waves longer than Original / Low are divided
	High     float64 // Llama3: waves shorter than Original / High are kept
	Original int     // Llama3, Yarn: the context of the training
	Fast     float64 // Yarn: turns in Original from which on a pair is kept
	Slow     float64 // Yarn: turns in Original below which a pair is divided
	Exact    bool    // Yarn: the bounds are not rounded to whole pairs
	Scale    float64 // of cosines and sines; 1 but for Yarn
}

// kind gives the scaling of a name in a file.
func kind(keys *keys, name string) (Kind, error) {
	switch name {
	case "", "default", "none":
		return Unscaled, nil
	case string(Linear), string(Llama3), string(Yarn):
		return Kind(name), nil
	}
	return "", fmt.Errorf("%s: %s is %.80q, supported are linear, llama3 and yarn: take the scaling out of the file and keep to the original context, or choose another model", keys.file, keys.scaling, name)
}

// yarnScale is what the cosines and sines are multiplied by for a context that
// grows by factor (equation 22 of the paper, weighted by m).
func yarnScale(factor, m float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*m*math.Log(factor) + 1
}

// check holds the scaling's numbers against what they mean.
func (r *Rope) check(k *keys) error {
	bad := func(key string, value any, want string) error {
		return fmt.Errorf("%s: %s is %v, %s rotary positions need %s: the file is damaged", k.file, key, value, r.Kind, want)
	}
	if r.Kind == Unscaled {
		return nil
	}
	if !(r.Factor >= 1 && r.Factor <= 1e6) {
		return bad(k.factor, r.Factor, "a number from 1 on")
	}
	if r.Kind == Linear {
		return nil
	}
	if r.Original < 1 || r.Original > maxPos {
		return bad(k.original, r.Original, fmt.Sprintf("a number of positions, 1..%d", maxPos))
	}
	if r.Kind == Llama3 {
		if !(r.Low > 0 && r.High > r.Low && r.High < 1e6) {
			return fmt.Errorf("%s: %s and %s are %v and %v, the first must be above 0 and the second above the first: the file is damaged", k.file, k.low, k.high, r.Low, r.High)
		}
		return nil
	}
	if !(r.Slow > 0 && r.Fast > r.Slow && r.Fast < 1e6) {
		return fmt.Errorf("%s: %s and %s are %v and %v, the second must be above 0 and the first above the second: the file is damaged", k.file, k.fast, k.slow, r.Fast, r.Slow)
	}
	if !(r.Scale > 0 && r.Scale < 1e3) {
		return bad(k.attention, r.Scale, "a number above 0")
	}
	return nil
}

// Frequencies are the angles by which the pairs of a head of dim values turn
// from one position to the next, and what cosines and sines are multiplied by.
func (r *Rope) Frequencies(dim int) (angles []float64, scale float64) {
	angles = make([]float64, dim/2)
	for i := range angles {
		angles[i] = math.Pow(r.Theta, -2*float64(i)/float64(dim))
	}
	switch r.Kind {
	case Linear:
		for i := range angles {
			angles[i] /= r.Factor
		}
	case Llama3:
		for i, a := range angles {
			// How far the pair is from the divided waves to the kept ones.
			keep := (float64(r.Original)*a/(2*math.Pi) - r.Low) / (r.High - r.Low)
			angles[i] = mix(a/r.Factor, a, keep)
		}
	case Yarn:
		first, last := r.bounds(dim)
		for i, a := range angles {
			angles[i] = mix(a, a/r.Factor, (float64(i)-first)/(last-first))
		}
		return angles, r.Scale
	}
	return angles, 1
}

// mix goes from a to b as t goes from 0 to 1, and stays there outside.
func mix(a, b, t float64) float64 {
	t = min(max(t, 0), 1)
	return a*(1-t) + b*t
}

// bounds are the pairs between which YaRN goes over from kept to divided: those
// that make Fast and Slow turns in the original context.
func (r *Rope) bounds(dim int) (first, last float64) {
	pair := func(turns float64) float64 {
		return float64(dim) * math.Log(float64(r.Original)/(turns*2*math.Pi)) / (2 * math.Log(r.Theta))
	}
	first, last = pair(r.Fast), pair(r.Slow)
	if !r.Exact {
		first, last = math.Floor(first), math.Ceil(last)
	}
	first, last = max(first, 0), min(last, float64(dim-1))
	if last <= first {
		last = first + 0.001 // a step instead of a ramp
	}
	return first, last
}
