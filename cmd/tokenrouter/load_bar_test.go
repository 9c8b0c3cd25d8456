package main

import (
	"strings"
	"testing"
	"time"
)

// The line is written over, clipped to the terminal, and leaves nothing behind;
// without a terminal there is none.
func TestLiveLine(t *testing.T) {
	var out strings.Builder
	l := liveLine{w: &out, room: 6}
	l.put("größer als das")
	l.put("ab")
	l.clear()
	l.clear()
	if got, want := out.String(), "\rgrößer\rab    \r  \r"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	silent := liveLine{}
	silent.put("x")
	silent.clear()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}

// Progress is a line on a terminal, with how much of how much.
func TestLoadBar(t *testing.T) {
	var out strings.Builder
	now := time.Unix(100, 0)
	b := &loadBar{out: &out, doing: "loading", live: liveLine{w: &out}, now: func() time.Time { return now }}
	b.begin("small qwen3")
	now = now.Add(300 * time.Millisecond)
	b.at(150e6, 600e6)
	b.at(160e6, 600e6) // too soon after the one before
	b.at(0, 0)
	if got, want := out.String(), "\rloading small qwen3\rloading small qwen3  150 MB of 600 MB, 25 %  0.3 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 12_345: "12.3 kB", 633_000_000: "633 MB", 1_234_567_890: "1.23 GB", 1e13: "10000 GB", -5: "-5 B"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{5: "5", 36_800: "36.8 k", 596_049_920: "596.0 M", 32_762_123_264: "32.8 B"} {
		if got := count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
