package tapetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/runtime/tape"
)

// The same Config gives the same tape, and the cluster is empty at the end.
func TestRunIsDeterministicAndEndsEmpty(t *testing.T) {
	cfg := Config{Requests: 12, Seed: 3, Models: 3, Cancel: 0.3}
	a, out, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, again, err := Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(out, again); diff != "" {
		t.Error(diff)
	}
	if len(out.Emitted) != 12 || out.Drops == 0 || out.HandOffs == 0 || out.Cancelled == 0 {
		t.Errorf("%d requests, %d drops, %d hand-offs, %d cancelled", len(out.Emitted), out.Drops, out.HandOffs, out.Cancelled)
	}
	last := map[int]tape.Load{}
	for i, r := range a {
		if r.Seq != uint64(i+1) {
			t.Fatalf("record %d has number %d", i, r.Seq)
		}
		if r.Load != nil {
			last[int(r.Core)] = *r.Load
		}
	}
	for core, l := range last {
		if l.Ready+l.Running+l.Pending+l.Waiting+l.Active+l.KVUsed != 0 {
			t.Errorf("subserver %d ends with %+v", core, l)
		}
	}
}
