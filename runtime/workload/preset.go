package workload

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the presets that are no family. The first three exist twice: as word
// problems that embedded models can answer, and as a [Shape] of drawn tokens with
// the lengths of the workloads they are named after, arXiv 2610.12242.
const (
	PresetLight     = "light"
	PresetHeavy     = "heavy"
	PresetMultiTurn = "multi-turn"
	PresetMixture   = "mixture" // all families by turns
)

// Presets lists the names that [NewPreset] knows.
func Presets() []string { return append(append(Shapes(), PresetMixture), Families()...) }

// Shapes lists the names that [ShapeOf] knows.
func Shapes() []string { return []string{PresetLight, PresetHeavy, PresetMultiTurn} }

// NewPreset returns the endless stream of problems of a preset: stories of 3 to 6
// equations, of 8 to 12, conversations that add facts to a story from 3 to 6
// equations, one family, or all of them by turns.
func NewPreset(name string, seed uint64) (Source, error) {
	switch name {
	case PresetLight:
		return NewGenerator(seed, Light)
	case PresetHeavy:
		return NewGenerator(seed, Heavy)
	case PresetMultiTurn:
		return NewConversations(seed, Light)
	case PresetMixture:
		return NewMixture(seed), nil
	}
	if slices.Contains(Families(), name) {
		return NewFamily(name, seed)
	}
	return nil, fmt.Errorf("no workload %q; there are %s", name, strings.Join(Presets(), ", "))
}

// ShapeOf returns the lengths of a preset for drawn tokens. The published bounds
// are kept: about 100 tokens in and up to 2,048 out; up to 8,192 out; about 8,192
// in, growing by turns, and up to 1,024 out. What lies between is chosen: medians
// of three eighths of the bound with a sigma that lets one answer in twenty reach
// it.
func ShapeOf(name string) (Shape, error) {
	question := Law{Median: 90, Sigma: 0.45, Min: 16, Max: 512}
	switch name {
	case PresetLight:
		return Shape{Input: question, Output: upTo(2048)}, nil
	case PresetHeavy:
		return Shape{Input: question, Output: upTo(8192)}, nil
	case PresetMultiTurn:
		return Shape{
			Input:   Law{Median: 1024, Sigma: 0.5, Min: 64, Max: 4096},
			More:    Law{Median: 512, Sigma: 0.5, Min: 16, Max: 2048},
			Output:  upTo(1024),
			Context: 8192,
		}, nil
	}
	forms := strings.Join(Shapes(), ", ")
	if slices.Contains(Presets(), name) {
		return Shape{}, fmt.Errorf("workload %q is problems for models and says nothing of lengths; for drawn tokens there are %s", name, forms)
	}
	return Shape{}, fmt.Errorf("no workload %q; for drawn tokens there are %s", name, forms)
}

// upTo is the law of answers that end at most: z = 1.645 of a normal law, beyond
// which lies one in twenty, is where the bound cuts.
func upTo(most int) Law {
	return Law{Median: 0.375 * float64(most), Sigma: 0.6, Min: 16, Max: most}
}
