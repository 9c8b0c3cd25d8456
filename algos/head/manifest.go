package head

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Manifest is what is told about a head: NAME.json beside NAME.safetensors.
type Manifest struct {
	Name string `json:"name"`
	Spec Spec   `json:"spec"`
	// Meaning says who should write where the score is high: "large" (R2R, Co-LLM)
	// or "small" (CITER). Routers apply their own comparison.
	Meaning string `json:"meaning"`
	// Role is the subserver whose rows the head reads, small unless it says
	// otherwise.
	Role string `json:"role,omitempty"`
	// Models are the hashes of the models it was made with, by role, as
	// model.Model.Hash gives them. Empty for weights that others made: then only
	// widths can be compared, and whoever uses the head is warned.
	Models map[string]string `json:"models"`

	// Label is what it learnt to tell, as head collect calls it. A head of "query" is
	// asked once an answer, at its first token.
	Label string `json:"label,omitempty"`
	Data  string `json:"data,omitempty"`  // what it was trained on: workload, requests, labels
	Seeds []Seed `json:"seeds,omitempty"` // by which problems and initial weights are told apart
	// HeldOut is the share of those problems that it was not trained on, which ones is
	// told by the seed of training.
	HeldOut float64 `json:"held_out,omitempty"`
	Note    string  `json:"note,omitempty"`

	Threshold float64 `json:"threshold,omitempty"` // of the router, as it was calibrated or published
	Share     float64 `json:"share,omitempty"`     // of the large model's tokens that it was calibrated for

	// Hash is that of the weights, see Head.Hash. Save sets it, and a file that has
	// others is refused. Empty where the manifest was written by hand.
	Hash string `json:"hash,omitempty"`
}

// Seed is a seed and what it was for: problems, training, threshold.
type Seed struct {
	For  string `json:"for"`
	Seed uint64 `json:"seed"`
}

// Limits on a manifest.
const (
	maxManifest = 64 << 10 // bytes
	maxText     = 4 << 10  // of data and note
	maxModels   = 16
	maxSeeds    = 64
)

// ParseManifest reads a manifest. Unknown fields are refused: one that is misspelt
// would be lost in silence.
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	if len(b) > maxManifest {
		return m, fmt.Errorf("a manifest of %d bytes; at most %d are read", len(b), maxManifest)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Manifest{}, errors.New("something stands behind the manifest's object")
	}
	if m.Models == nil {
		return Manifest{}, errors.New(`models is missing: name the hash of the model whose rows the head reads, "models": {"small": "..."}, or write "models": {} where it is not known; then only widths are compared`)
	}
	return m, m.Check()
}

// Check says what is wrong with a manifest.
func (m *Manifest) Check() error {
	if err := checkName(m.Name); err != nil {
		return err
	}
	if err := m.Spec.Check(); err != nil {
		return err
	}
	switch {
	case m.Meaning != "large" && m.Meaning != "small":
		return fmt.Errorf("the meaning %.40q; a high score means that the large or that the small model should write", m.Meaning)
	case len(m.Models) > maxModels:
		return fmt.Errorf("%d models; a head belongs to at most %d", len(m.Models), maxModels)
	case len(m.Data) > maxText || len(m.Note) > maxText:
		return fmt.Errorf("data and note have at most %d bytes each", maxText)
	case len(m.Seeds) > maxSeeds:
		return fmt.Errorf("%d seeds; at most %d are kept", len(m.Seeds), maxSeeds)
	case len(m.Role) > 40 || !printable(m.Role):
		return fmt.Errorf("%.40q is no role", m.Role)
	case len(m.Label) > 40 || !printable(m.Label):
		return fmt.Errorf("%.40q is no label", m.Label)
	case !(m.Threshold >= 0 && m.Threshold <= 1):
		return fmt.Errorf("the threshold %v; it is compared with scores, which lie between 0 and 1", m.Threshold)
	case !(m.Share >= 0 && m.Share <= 1) || !(m.HeldOut >= 0 && m.HeldOut <= 1):
		return fmt.Errorf("the share %v, held out %v; both lie between 0 and 1", m.Share, m.HeldOut)
	case m.Hash != "" && !isHash(m.Hash):
		return fmt.Errorf("%.80q is no hash of weights: 64 digits of hexadecimal", m.Hash)
	}
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		if hash := m.Models[role]; role == "" || len(role) > 40 || !printable(role) || !isHash(hash) {
			return fmt.Errorf(`%.40q of model %.40q is no hash of a model: 64 digits of hexadecimal, the SHA-256 of its weights as the manifest of a session has it; where it is not known, leave the model out`, hash, role)
		}
	}
	for _, s := range m.Seeds {
		if s.For == "" || len(s.For) > 40 || !printable(s.For) {
			return fmt.Errorf("%.40q is nothing that a seed is for", s.For)
		}
	}
	return nil
}

// Reads is the role whose rows the head reads.
func (m *Manifest) Reads() string {
	if m.Role == "" {
		return "small"
	}
	return m.Role
}

// checkName refuses names that are no file's in the heads' folder, or that a
// router could not write.
func checkName(name string) error {
	ok := len(name) >= 1 && len(name) <= 64 && name[0] != '.'
	for _, c := range name {
		ok = ok && (c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	if !ok {
		return fmt.Errorf("%.80q is no name of a head: letters, digits, _, - and . make one, at most 64", name)
	}
	return nil
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// finite says whether all of v are numbers.
func finite(v []float32) bool {
	for _, x := range v {
		if !(x >= -math.MaxFloat32 && x <= math.MaxFloat32) {
			return false
		}
	}
	return true
}
