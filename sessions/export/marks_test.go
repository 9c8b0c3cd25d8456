package export

import "testing"

func TestMoved(t *testing.T) {
	for _, tc := range [][3]string{
		{"", "live", "live"}, // stated at the start
		{"0.5", "0.5", "0.5"},
		{"0.5", "0.2", "0.5 > 0.2"},
	} {
		if got := moved(tc[0], tc[1]); got != tc[2] {
			t.Errorf("from %q to %q: %q, want %q", tc[0], tc[1], got, tc[2])
		}
	}
}
