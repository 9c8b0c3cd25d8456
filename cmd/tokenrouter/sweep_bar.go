package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// sweepBar shows on a terminal how far a sweep is and when it will be over, and
// writes nothing elsewhere.
type sweepBar struct {
	mu       sync.Mutex // points report from their own goroutines
	live     liveLine
	points   int
	problems int // of each
	over     int
	part     map[int]int // problems done of the points under way
	now      string
	since    time.Time
	clock    func() time.Time
}

func newSweepBar(f *os.File, points, problems int) *sweepBar {
	return &sweepBar{live: newLiveLine(f), points: points, problems: max(problems, 1), part: map[int]int{}, since: time.Now(), clock: time.Now}
}

func (b *sweepBar) begin(point int, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part[point], b.now = 0, key
	b.live.put(b.line())
}

// at is told how many problems of a point are done.
func (b *sweepBar) at(point, done int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part[point] = min(done, b.problems)
	b.live.put(b.line())
}

func (b *sweepBar) ended(point int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.part, point)
	b.over++
	b.live.put(b.line())
}

func (b *sweepBar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live.clear()
}

func (b *sweepBar) line() string {
	part := float64(b.over)
	for _, n := range b.part { // a sum
		part += float64(n) / float64(b.problems)
	}
	part /= float64(max(b.points, 1))
	const width = 24
	n := min(int(width*part), width)
	text := fmt.Sprintf("[%s%s] %d/%d points", strings.Repeat("#", n), strings.Repeat("-", width-n), b.over, b.points)
	if passed := b.clock().Sub(b.since); part > 0.02 && part < 1 {
		text += fmt.Sprintf("  %v left", time.Duration(float64(passed)*(1-part)/part).Round(time.Second))
	}
	return text + "  " + b.now
}
