package metrics

import (
	"reflect"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

func TestAnswersByFamily(t *testing.T) {
	r := NewRun(2)
	add := func(h tape.Host) { r.Add(&tape.Record{Kind: tape.KindHost, Host: h}) }
	for i, c := range []struct {
		family         string
		checked, right bool
	}{
		{"units", true, true},
		{"ledger", true, false},
		{"", true, true},
		{"units", true, false},
		{"units", false, false},
		{"sort", false, false},
		{"ledger", true, true},
	} {
		id := event.ReqID(i + 1)
		add(&tape.Request{Req: id, Family: c.family})
		add(&tape.Result{Req: id, Reason: "stop", Checked: c.checked, Correct: c.right})
	}
	add(&tape.Request{Req: 99, Family: "count"}) // still open
	s := r.Summary(0)
	if s.Correct != 3 || s.Total != 5 {
		t.Errorf("%d of %d right, want 3 of 5", s.Correct, s.Total)
	}
	var want []FamilySummary
	for _, f := range []string{"ledger", "units"} {
		lo, hi := Wilson(1, 2)
		want = append(want, FamilySummary{Family: f, Correct: 1, Total: 2, Lo: lo, Hi: hi})
	}
	if !reflect.DeepEqual(s.Families, want) {
		t.Errorf("by family %+v, want %+v", s.Families, want)
	}
	if len(r.families.of) != 1 {
		t.Errorf("%d requests are remembered, one is open", len(r.families.of))
	}
}
