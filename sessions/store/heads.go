package store

import "slices"

// Head is a trained head that a router of the session could ask for its score.
type Head struct {
	Name      string  `json:"name"`
	Kind      string  `json:"kind"`              // linear, mlp, citer, r2r
	Hash      string  `json:"hash"`              // of its weights
	Weights   string  `json:"weights,omitempty"` // format they were held in
	Meaning   string  `json:"meaning"`           // who should write where the score is high: large, small
	Threshold float64 `json:"threshold,omitempty"`
	Share     float64 `json:"share,omitempty"` // of the large model's tokens that the threshold was calibrated for
	Data      string  `json:"data,omitempty"`  // what it was trained on
}

// SetHeads says which heads the session has used; a router that is loaded while it
// runs may bring others. It is called before Close.
func (s *Session) SetHeads(h []Head) { s.manifest.Heads = slices.Clone(h) }
