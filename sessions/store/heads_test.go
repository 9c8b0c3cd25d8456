package store

import (
	"slices"
	"testing"

	"tokenrouter/sessions/format"
)

// Heads that a router brought while the session ran are in its manifest at the end.
func TestHeads(t *testing.T) {
	s := newSession(t, Options{})
	heads := []Head{{Name: "mine", Kind: "mlp", Hash: "ab", Weights: "f32", Meaning: "large", Threshold: 0.3, Share: 0.1, Data: "story"}}
	s.SetHeads(heads)
	heads[0].Name = "changed"
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(s.Path()+"/"+manifestName, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	heads[0].Name = "mine"
	if !slices.Equal(m.Heads, heads) || m.Closed == nil {
		t.Errorf("heads %+v", m.Heads)
	}
}
