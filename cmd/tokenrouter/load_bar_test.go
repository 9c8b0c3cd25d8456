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
	if got, want := out.String(), "\rgrößer\rab    \r    \r"; got != want {
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

// A line is as wide as its cells, and names hold anything: what a terminal would
// act on is shown as a picture, and the end of the line stays in sight.
func TestLiveLineHoldsAnything(t *testing.T) {
	var out strings.Builder
	l := liveLine{w: &out, room: 20}
	l.put("模型 \x1b[2J\nred and more")
	if got, want := out.String(), "\r模型 ␛[2J␊red and mo"; got != want || l.filled != 20 {
		t.Errorf("%q of %d cells, want %q", got, l.filled, want)
	}
	out.Reset()
	l.putEnd("loading large qwen3", "  12 %")
	if got, want := out.String(), "\rloading large…  12 %"; got != want || l.filled != 20 {
		t.Errorf("%q of %d cells, want %q", got, l.filled, want)
	}
	if got, want := onTerminal("no \x1b[2Jfile\u009b\xff:\n\tx"), "no \ufffd[2Jfile\ufffd\ufffd:\n\tx"; got != want {
		t.Errorf("a message %q, want %q", got, want)
	}
	if got, want := modelName("/m/evil\x1b[2J\n.gguf"), "evil␛[2J␊"; got != want {
		t.Errorf("a name %q, want %q", got, want)
	}
}

// Who loads may tell how far it is after nobody waits for it any more.
func TestLoadBarEnds(t *testing.T) {
	var out strings.Builder
	b := &loadBar{out: &out, doing: "loading", live: liveLine{w: &out}, now: time.Now}
	b.begin("large")
	b.clear()
	out.Reset()
	b.at(1, 2)
	if out.Len() > 0 {
		t.Errorf("after the end %q", out.String())
	}
	b.begin("next")
	b.at(1, 2)
	if !strings.Contains(out.String(), "50 %") {
		t.Errorf("of the next model %q", out.String())
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
