package team

import (
	"fmt"
	"testing"
	"time"
)

// TestOffersBackOff: a core that comes back late is offered less and less often,
// one that comes back soon each time.
func TestOffersBackOff(t *testing.T) {
	const ms = int64(time.Millisecond)
	now, away, offered := ms, int64(0), 0
	clock := func() int64 { return now }
	yield := func() {
		offered++
		now += away
	}
	var o offers
	// during counts the offers of a time in which there is an opportunity every ms.
	during := func(d int64) int {
		before := offered
		for end := now + d*ms; now < end; now += ms {
			o.offer(clock, yield)
		}
		return offered - before
	}
	var got []int
	got = append(got, during(100)) // nobody waits
	away = 3 * ms
	got = append(got, during(100), during(1000), during(1000)) // somebody who computes without end
	away = longYield - 1
	got = append(got, during(1000)) // threads that soon sleep again
	if want := "[100 3 4 3 567]"; fmt.Sprint(got) != want {
		t.Errorf("offers %v, want %v", got, want)
	}
}
