package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// The roles of a profile's rows, in the order of models.
const (
	Small  = "small"
	Middle = "middle"
	Large  = "large"
)

// rolesOf lists the roles of a run by its number of models.
var rolesOf = map[int][]string{
	1: {Small},
	2: {Small, Large},
	3: {Small, Middle, Large},
}

// maxMillis bounds every step-time figure: an hour, far inside the range of
// time.Duration for any batch.
const maxMillis = 3.6e6

// Row is the affine step time of one role, in milliseconds:
// base + per_decode_row x decode rows + per_prefill_token x prefill tokens.
type Row struct {
	Role            string  `json:"role"`
	Base            float64 `json:"base_ms"`
	PerDecodeRow    float64 `json:"per_decode_row_ms,omitempty"`
	PerPrefillToken float64 `json:"per_prefill_token_ms,omitempty"`
}

// Profile is a named set of step times. Its JSON form is that of the fields.
type Profile struct {
	Name   string `json:"name"`
	Source string `json:"source,omitempty"` // where the figures come from
	Rows   []Row  `json:"roles"`            // small first
}

// For returns the profile of a run with the given number of models (1 to 3,
// small first): one row per model, so that Step may be asked by model index.
func (p Profile) For(models int) (Profile, error) {
	roles, ok := rolesOf[models]
	if !ok {
		return Profile{}, fmt.Errorf("cost profile %q has step times for 1 to 3 models, not for %d", p.Name, models)
	}
	rows := make([]Row, 0, len(roles))
	for _, role := range roles {
		i := slices.IndexFunc(p.Rows, func(r Row) bool { return r.Role == role })
		if i < 0 {
			return Profile{}, fmt.Errorf("cost profile %q has no step time for the %s of %d models; add a row with that role", p.Name, role, models)
		}
		rows = append(rows, p.Rows[i])
	}
	p.Rows = rows
	return p, nil
}

// Step returns how long one step takes on the model with that index among
// Rows (see [Profile.For]). An index outside Rows is a programming error and
// panics.
func (p Profile) Step(model int, b *Batch) time.Duration {
	r := &p.Rows[model]
	ms := r.Base + r.PerDecodeRow*float64(b.Decode) + r.PerPrefillToken*float64(b.Prefill)
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

// Read reads a profile from JSON and checks it. Unknown fields are refused:
// a misspelt coefficient would silently be zero. The file name is for errors.
func Read(r io.Reader, file string) (Profile, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Profile{}, fmt.Errorf("cost profile %s: %w", file, err)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	var p Profile
	if err := in.Decode(&p); err != nil {
		return Profile{}, fmt.Errorf("cost profile %s: %w", file, err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return Profile{}, fmt.Errorf("cost profile %s: there is more text after the profile; keep one in a file", file)
	}
	if err := p.check(); err != nil {
		return Profile{}, fmt.Errorf("cost profile %s: %w", file, err)
	}
	return p, nil
}

func (p Profile) check() error {
	if strings.TrimSpace(p.Name) == "" {
		return errors.New(`"name" is missing; screens and records show it`)
	}
	if len(p.Rows) == 0 {
		return errors.New(`"roles" is empty; give base_ms for small and large`)
	}
	seen := map[string]bool{}
	for _, r := range p.Rows {
		switch {
		case !slices.Contains(rolesOf[3], r.Role):
			return fmt.Errorf("role %q is unknown; roles are %s", r.Role, strings.Join(rolesOf[3], ", "))
		case seen[r.Role]:
			return fmt.Errorf("role %s has two rows", r.Role)
		}
		seen[r.Role] = true
		for _, f := range []struct {
			field string
			ms    float64
		}{{"base_ms", r.Base}, {"per_decode_row_ms", r.PerDecodeRow}, {"per_prefill_token_ms", r.PerPrefillToken}} {
			if !(f.ms >= 0 && f.ms <= maxMillis) {
				return fmt.Errorf("%s of %s is %v; it must lie in 0 to %v", f.field, r.Role, f.ms, maxMillis)
			}
		}
		if r.Base == 0 {
			return fmt.Errorf("base_ms of %s is missing or 0; a step takes time", r.Role)
		}
	}
	return nil
}
