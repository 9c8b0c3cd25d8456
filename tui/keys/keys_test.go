package keys

import (
	"regexp"
	"testing"
)

// case J15: everything can be reached without Ctrl, Alt or function keys, and
// no key means two things in one place.
func TestKeys(t *testing.T) {
	hard := regexp.MustCompile(`^(ctrl|alt|meta|super|hyper)\+|^f\d+$`)
	for c := range contexts {
		seen := map[string]Action{}
		for _, b := range Table(c) {
			easy := false
			for _, k := range b.Keys {
				if other, ok := seen[k]; ok {
					t.Errorf("in context %d the key %q means %q and %q", c, k, other, b.Action)
				}
				seen[k] = b.Action
				easy = easy || !hard.MatchString(k)
				if Find(c, k) != b.Action {
					t.Errorf("in context %d the key %q is found as %q, not %q", c, k, Find(c, k), b.Action)
				}
			}
			if !easy {
				t.Errorf("%q has no plain key", b.Action)
			}
		}
		for _, must := range []Action{Quit, Help} {
			found := false
			for _, a := range seen {
				found = found || a == must
			}
			if !found {
				t.Errorf("context %d has no %q", c, must)
			}
		}
	}
	if Find(Board, "no such key") != "" || Find(contexts, "q") != "" {
		t.Error("keys that are not bound have an action")
	}
}

// Every action is in the help: by itself or with its partner.
func TestEveryActionIsExplained(t *testing.T) {
	for i, b := range table {
		if b.Help != "" && b.Show == "" {
			t.Errorf("%q has a help and no key to show", b.Action)
		}
		if b.Help != "" {
			continue
		}
		explained := false
		for _, p := range table[max(0, i-3):min(len(table), i+2)] {
			explained = explained || p.Help != "" && p.Show != ""
		}
		if !explained {
			t.Errorf("%q is not explained", b.Action)
		}
	}
}
