package synth

import (
	"math"
	"strings"
	"testing"
)

// The divisors of Llama 3's rule: none for short waves, the factor for long
// ones, in between by the published interpolation.
func TestRopeFactors(t *testing.T) {
	s := Shape{HeadDim: 64, RopeTheta: 500000, Rope: Rope{Kind: "llama3", Factor: 32, Low: 1, High: 4, Original: 8192}}
	_, file := create(t, "m.gguf", func() Shape {
		m := small("llama")
		m.HeadDim, m.RopeTheta, m.Rope = s.HeadDim, s.RopeTheta, s.Rope
		return m
	}(), Options{})
	got := values(t, file, "rope_freqs.weight")
	if len(got) != 32 {
		t.Fatalf("%d factors", len(got))
	}
	middle := 0
	for i, f := range got {
		freq := math.Pow(500000, -float64(i)/32)
		wave := 2 * math.Pi / freq
		want := 0.0
		switch {
		case wave < 8192.0/4:
			want = freq
		case wave > 8192.0/1:
			want = freq / 32
		default:
			middle++
			smooth := (8192/wave - 1) / (4 - 1)
			want = (1-smooth)*freq/32 + smooth*freq
		}
		if math.Abs(freq/float64(f)/want-1) > 1e-6 {
			t.Errorf("factor %d is %v: frequency %v, want %v", i, f, freq/float64(f), want)
		}
	}
	if got[0] != 1 || got[31] != 32 || middle == 0 {
		t.Errorf("factors %v", got)
	}
}

func TestShapes(t *testing.T) {
	for _, s := range Shapes() {
		if err := s.check(); err != nil {
			t.Error(err)
		}
		if f, err := Find(s.Name); err != nil || f != s {
			t.Errorf("%s: %v, %v", s.Name, f, err)
		}
	}
	s, err := Find("qwen3-0.6b")
	if err != nil || s.Params() != 596_049_920 { // as published: 0.6 B, 0.44 B without the embedding
		t.Errorf("%d parameters, %v", s.Params(), err)
	}
	if _, err := Find("7b"); err == nil || !strings.Contains(err.Error(), "5m, 30m, 150m, qwen3-0.6b") {
		t.Error(err)
	}
}
