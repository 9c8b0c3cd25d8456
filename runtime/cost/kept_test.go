package cost

import "testing"

// One in five is kept from the fit, whatever the rhythm of a load.
func TestKeptHasNoRhythm(t *testing.T) {
	for period := 1; period <= 12; period++ {
		for phase := range period {
			n, of := 0, 0
			for i := phase; i < 12_000; i += period {
				of++
				if kept(i) {
					n++
				}
			}
			if share := float64(n) / float64(of); share < 0.19 || share > 0.21 {
				t.Errorf("every %d-th from %d: %.3f are kept", period, phase, share)
			}
		}
	}
}
