package main

import (
	"testing"
	"time"
)

// A speed is of a second and more of wall time without a pause, and begins anew
// when another one is asked for.
func TestSpeedometer(t *testing.T) {
	var s speedometer
	origin := time.Unix(1000, 0)
	for i, step := range []struct {
		wall    time.Duration // since the beginning
		at      time.Duration // session time
		asked   float64
		paused  bool
		reached float64
	}{
		{0, 0, 100, false, 0},
		{500 * time.Millisecond, 40 * time.Second, 100, false, 0}, // too short to tell
		{time.Second, 80 * time.Second, 100, false, 80},
		{1500 * time.Millisecond, 99 * time.Second, 100, false, 80},
		{2 * time.Second, 180 * time.Second, 100, false, 100},
		{3 * time.Second, 200 * time.Second, 100, true, 100}, // partly paused
		{9 * time.Second, 200 * time.Second, 100, true, 100},
		{10 * time.Second, 200 * time.Second, 100, false, 100},
		{11 * time.Second, 290 * time.Second, 100, false, 90},
		{12 * time.Second, 390 * time.Second, 1, false, 0}, // another speed
		{14 * time.Second, 392 * time.Second, 1, false, 1},
	} {
		got, wall := s.read(origin.Add(step.wall), int64(step.at), step.asked, step.paused)
		if got != step.reached || wall != step.wall {
			t.Errorf("step %d: reached %v after %v, want %v after %v", i, got, wall, step.reached, step.wall)
		}
	}
}
