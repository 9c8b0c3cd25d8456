package family_test

import (
	"math"
	"testing"

	"tokenrouter/runtime/model/family"
)

// Each kind against the formulas of its source, written out plainly.
func TestFrequencies(t *testing.T) {
	const dim, theta = 64, 500000.0
	plain := func(i int) float64 { return 1 / math.Pow(theta, float64(2*i)/dim) }
	for name, c := range map[string]struct {
		rope  family.Rope
		want  func(i int) float64
		scale float64
	}{
		"unscaled": {family.Rope{Theta: theta, Scale: 1}, plain, 1},
		"linear":   {family.Rope{Theta: theta, Kind: family.Linear, Factor: 4, Scale: 1}, func(i int) float64 { return plain(i) / 4 }, 1},
		// transformers, _compute_llama3_parameters
		"llama3": {
			family.Rope{Theta: theta, Kind: family.Llama3, Factor: 32, Low: 1, High: 4, Original: 8192, Scale: 1},
			func(i int) float64 {
				wave := 2 * math.Pi / plain(i)
				switch {
				case wave > 8192:
					return plain(i) / 32
				case wave < 8192/4.0:
					return plain(i)
				}
				smooth := (8192/wave - 1) / (4 - 1)
				return (1-smooth)*plain(i)/32 + smooth*plain(i)
			}, 1,
		},
		// transformers, _compute_yarn_parameters
		"yarn": {
			family.Rope{Theta: theta, Kind: family.Yarn, Factor: 4, Original: 32768, Fast: 32, Slow: 1, Scale: 0.1*math.Log(4) + 1},
			func(i int) float64 {
				correction := func(turns float64) float64 {
					return dim * math.Log(32768/(turns*2*math.Pi)) / (2 * math.Log(theta))
				}
				low, high := math.Floor(correction(32)), math.Ceil(correction(1))
				ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
				return plain(i)/4*ramp + plain(i)*(1-ramp)
			}, 1.1386294361119891,
		},
	} {
		angles, scale := c.rope.Frequencies(dim)
		if len(angles) != dim/2 || math.Abs(scale-c.scale) > 1e-15 {
			t.Fatalf("%s: %d angles, scale %v", name, len(angles), scale)
		}
		for i, a := range angles {
			if want := c.want(i); math.Abs(a-want) > 1e-14*want {
				t.Errorf("%s: angle %d is %v, want %v", name, i, a, want)
			}
		}
	}
	// A context so short that the bounds fall together is a step, not a division
	// by zero.
	short := family.Rope{Theta: theta, Kind: family.Yarn, Factor: 2, Original: 1, Fast: 32, Slow: 1, Scale: 1}
	angles, _ := short.Frequencies(dim)
	for i, a := range angles {
		if want := plain(i) / 2; i > 0 && a != want {
			t.Errorf("angle %d of a short context is %v, want %v", i, a, want)
		}
	}
}
