package limits

import "testing"

func TestCacheSize(t *testing.T) {
	for text, want := range map[string]int64{
		"32768K\n": 32 << 20, "1M": 1 << 20, "512": 512, "": 0, "K": 0, "-1K": 0, "99999999999999K": 0,
	} {
		if got := cacheSize(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if largestCache() < 0 {
		t.Error("a cache of less than nothing")
	}
}
