package frontier

import "testing"

// Two curves of one plot never look alike.
func TestMarksAreApart(t *testing.T) {
	type look struct {
		hue  string
		form int
	}
	seen := map[look]int{}
	for i := range forms * len(hues) {
		l := look{hue(i), form(i)}
		if j, twice := seen[l]; twice {
			t.Errorf("curves %d and %d are both %v", j, i, l)
		}
		seen[l] = i
	}
}
