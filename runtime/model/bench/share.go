package bench

import (
	"errors"
	"slices"
	"sync"
	"time"

	"tokenrouter/kernels/limits"
	"tokenrouter/kernels/team"
)

// Share is how two models get along with the cores they share. Rates are steps
// of decoding a second, by the clock.
type Share struct {
	Cores int `json:"cores"`
	Batch int `json:"batch"`
	// Solo is each model alone on its half of the cores, at least one.
	Solo [2]float64 `json:"solo"`
	// Both is each while the other steps as well, Kept the fraction of Solo that
	// is left.
	Both [2]float64 `json:"both"`
	Kept [2]float64 `json:"kept"`
	// All is the second model on all cores while the first is idle, Gain in
	// relation to Solo.
	All  float64 `json:"all"`
	Gain float64 `json:"gain"`
}

// rounds is how often each part of a measurement of two models comes: by turns,
// so that what else the machine does is spread over all of them.
const rounds = 3

// MeasureShare measures two models on n cores, each with a batch of decoding
// rows. They may be one model, then with two workspaces.
func MeasureShare(a, b *Model, n, batch int, o Options) (s Share, err error) {
	if err := o.complete(); err != nil {
		return s, err
	}
	s.Cores, s.Batch = n, batch
	half, all := team.New(max(n/2, 1)), team.New(n)
	defer half.Close()
	defer all.Close()
	var parts [2]struct{ alone, shared *sequences }
	for i, m := range []*Model{a, b} {
		for _, c := range []*team.Cores{half, all} {
			q := m.open(c, batch, o.Context+1)
			defer func() { err = errors.Join(err, q.pool.Close()) }()
			if err := q.ready(o.Context, 1); err != nil {
				return s, err
			}
			if c == half {
				parts[i].alone = q
			} else {
				parts[i].shared = q
			}
		}
	}
	var solo, both [2][]float64
	var alone []float64
	d := o.Time / rounds
	for range rounds {
		for i := range parts {
			o.Progress("one model on its half of the cores")
			solo[i] = append(solo[i], parts[i].alone.rate(d))
		}
		o.Progress("two models at once")
		var wg sync.WaitGroup
		var rates [2]float64
		for i := range parts {
			wg.Go(func() { rates[i] = parts[i].shared.rate(d) })
		}
		wg.Wait()
		for i, r := range rates {
			both[i] = append(both[i], r)
		}
		o.Progress("one model on all cores")
		alone = append(alone, parts[1].shared.rate(d))
	}
	for i := range parts {
		s.Solo[i], s.Both[i] = median(solo[i]), median(both[i])
		s.Kept[i] = s.Both[i] / s.Solo[i]
	}
	s.All = median(alone)
	s.Gain = s.All / s.Solo[1]
	for i := range parts {
		err = errors.Join(err, parts[i].alone.failed, parts[i].shared.failed)
	}
	return s, err
}

// rate is steps a second.
func (q *sequences) rate(d time.Duration) float64 {
	t := limits.Clock(d, q.timed)
	return 1 / t.Seconds
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
