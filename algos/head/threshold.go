package head

import "slices"

// seedThreshold is what the seed of the problems is for that a threshold was chosen
// on.
const seedThreshold = "threshold"

// WithThreshold is the same head with another threshold in its manifest, the share of
// the large model's tokens that it was chosen for, and the seed of the problems that
// it was chosen on, nil where they have none.
func (h *Head) WithThreshold(threshold, share float64, seed *uint64) *Head {
	c := *h
	c.m.Threshold, c.m.Share = threshold, share
	c.m.Seeds = slices.DeleteFunc(slices.Clone(c.m.Seeds), func(s Seed) bool { return s.For == seedThreshold })
	if seed != nil {
		c.m.Seeds = append(c.m.Seeds, Seed{For: seedThreshold, Seed: *seed})
	}
	return &c
}
