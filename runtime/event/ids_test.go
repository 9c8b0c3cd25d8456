package event_test

import (
	"slices"
	"testing"

	"tokenrouter/runtime/event"
)

func TestRoles(t *testing.T) {
	for n, want := range map[int][]string{
		1: {"small"},
		2: {"small", "large"},
		3: {"small", "middle", "large"},
		4: {"small", "middle1", "middle2", "large"},
	} {
		if got := event.Roles(n); !slices.Equal(got, want) {
			t.Errorf("%d subservers: %v, want %v", n, got, want)
		}
	}
	if event.Role(-1, 2) != "?" || event.Role(2, 2) != "?" {
		t.Error("a role outside the cluster")
	}
}
