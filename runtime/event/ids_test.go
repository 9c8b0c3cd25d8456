package event_test

import (
	"slices"
	"strings"
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
		for i, role := range want {
			if p, err := event.PeerOf(role, n); err != nil || p != event.Peer(i) {
				t.Errorf("%s of %d: %v %v", role, n, p, err)
			}
		}
		if p, err := event.PeerOf("huge", n); err == nil || p != event.None || !strings.Contains(err.Error(), want[n-1]) {
			t.Errorf("huge of %d: %v %v", n, p, err)
		}
	}
	if event.Role(-1, 2) != "?" || event.Role(2, 2) != "?" {
		t.Error("a role outside the cluster")
	}
}
