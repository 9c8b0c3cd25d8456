package live_test

import (
	"strings"
	"testing"

	"tokenrouter/runtime/live"
)

func TestParsePolicy(t *testing.T) {
	for _, text := range []string{"eager", "fixed:1,3", "fixed:4,2", "table", "look-ahead", "lock-step"} {
		p, err := live.ParsePolicy(text, 2)
		if err != nil || p.Form() != text {
			t.Errorf("ParsePolicy(%q) = %v, %v", text, p.Form(), err)
		}
	}
	for text, want := range map[string]string{
		"lazy":        "none of eager, fixed",
		"fixed":       "none of eager, fixed",
		"lock-step:4": "none of eager, fixed",
		"fixed:1":     "1 thresholds for 2 models",
		"fixed:1,0":   `"0" is not a threshold`,
		"fixed:1,x":   `"x" is not a threshold`,
		"fixed:1,2,3": "3 thresholds for 2 models",
	} {
		if _, err := live.ParsePolicy(text, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePolicy(%q): %v, want %q", text, err, want)
		}
	}
}
