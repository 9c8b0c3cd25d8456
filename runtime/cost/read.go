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
	"unicode"
)

// Bounds of what a file may say: its length in bytes, the positions of a pool
// (the books of one take memory), and devices.
const (
	maxFile    = 1 << 20
	maxKV      = 100_000_000
	maxDevices = 1024
)

// Read reads a profile from JSON and checks it. Unknown fields are refused:
// a misspelt coefficient would silently be zero. The file name is for errors.
func Read(r io.Reader, file string) (Profile, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it is longer than %d bytes, as no profile is; name a file of one", maxFile)
	}
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

// Write writes the profile in the form that Read reads.
func (p *Profile) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

func (p *Profile) check() error {
	if strings.TrimSpace(p.Name) == "" {
		return errors.New(`"name" is missing; screens and records show it`)
	}
	if len(p.Rows) == 0 {
		return errors.New(`"roles" is empty; give base_ms for small and large`)
	}
	if !within(p.LatencyMs, maxMillis) {
		return fmt.Errorf("latency_ms is %v; it must lie in 0 to %v", p.LatencyMs, maxMillis)
	}
	if err := errors.Join(printable("name", p.Name), printable("source", p.Source)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range p.Rows {
		r := &p.Rows[i]
		switch {
		case !slices.Contains(rolesOf[3], r.Role):
			return fmt.Errorf("role %q is unknown; roles are %s", r.Role, strings.Join(rolesOf[3], ", "))
		case seen[r.Role]:
			return fmt.Errorf("role %s has two rows", r.Role)
		}
		seen[r.Role] = true
		if err := r.check(); err != nil {
			return fmt.Errorf("role %s: %w", r.Role, err)
		}
	}
	return nil
}

// most bounds counts of tokens and sums over a batch.
const most = 1e15

func (r *Row) check() error {
	set, err := featuresOf(r.Features)
	if err != nil {
		return err
	}
	for _, ms := range []struct {
		field string
		x     float64
	}{{"base_ms", r.Base}, {"overhead_ms", r.Overhead}, {"overhead_per_row_ms", r.OverheadPerRow}} {
		if !within(ms.x, maxMillis) {
			return fmt.Errorf("%s of %s is %v; it must lie in 0 to %v", ms.field, r.Role, ms.x, maxMillis)
		}
	}
	for f := range features {
		x := *r.coef(f)
		if x != 0 && !slices.Contains(set, f) {
			return fmt.Errorf("%s belongs to the feature set %s and the row is %s; name its set in \"features\"", f.key(), setsWith(f), r.Set())
		}
		if !within(x, maxMillis) {
			return fmt.Errorf("%s of %s is %v; it must lie in 0 to %v", f.key(), r.Role, x, maxMillis)
		}
	}
	switch {
	case !r.takesTime():
		return fmt.Errorf("base_ms of %s is missing or 0; a step takes time", r.Role)
	case r.HingeTokens != 0 && r.Features != hinge:
		return fmt.Errorf("hinge_tokens belongs to the feature set %s and the row is %s", hinge, r.Set())
	case !within(r.HingeTokens, most):
		return fmt.Errorf("hinge_tokens is %v; give tokens, 0 or more", r.HingeTokens)
	case r.KVTokens < 0 || r.KVTokens > maxKV:
		return fmt.Errorf("kv_tokens is %d; give 1 to %d tokens, or leave it out", r.KVTokens, maxKV)
	case r.TP < 0 || r.TP > maxDevices:
		return fmt.Errorf("tp is %d; give 1 to %d devices, or leave it out", r.TP, maxDevices)
	}
	if err := errors.Join(printable("model", r.Model), r.checkBox(set), r.Stalls.check("stalls"), r.OverheadStalls.check("overhead_stalls")); err != nil {
		return err
	}
	return r.Quality.check()
}

// takesTime says whether every batch does: it has a prefill token or a decode row,
// which stands behind a context.
func (r *Row) takesTime() bool {
	decode := r.PerDecodeRow > 0 || r.PerDecodeCtx > 0
	prefill := r.PerPrefillToken > 0 || r.PerPrefillPair > 0 || r.PerPrefillSq > 0
	return r.Base > 0 || r.PerToken > 0 || r.PerCtx > 0 || r.PerCtxSq > 0 || (decode && prefill)
}

func (r *Row) checkBox(set []feature) error {
	if r.Box == nil {
		return nil
	}
	for f := range features {
		side := *r.Box.side(f)
		switch {
		case side == nil:
		case !slices.Contains(set, f):
			return fmt.Errorf("%s of the box belongs to the feature set %s and the row is %s", f.name(), setsWith(f), r.Set())
		case !within(side[0], most) || !within(side[1], most) || side[0] > side[1]:
			return fmt.Errorf("%s of the box is %v; give the least and the largest value", f.name(), *side)
		}
	}
	return nil
}

func (q *Quality) check() error {
	if q == nil {
		return nil
	}
	for _, e := range []struct {
		field string
		of    Errors
	}{{"all", q.All}, {"prefill", q.Prefill}, {"decode", q.Decode}} {
		if e.of.N < 0 || !within(e.of.MAPE, most) || !within(math.Abs(e.of.Bias), most) {
			return fmt.Errorf("%s of the fit is %+v; errors are shares", e.field, e.of)
		}
	}
	for _, field := range q.Zeroed {
		if err := printable("zeroed of the fit", field); err != nil {
			return err
		}
	}
	switch {
	case q.Batches < 0:
		return fmt.Errorf("batches of the fit is %d", q.Batches)
	case !within(q.Stretch, most):
		return fmt.Errorf("stretch of the fit is %v; give what all batches took over what the fit says", q.Stretch)
	}
	return nil
}

// printable refuses texts that a terminal takes for commands, or that break a
// line of a table.
func printable(field, text string) error {
	for _, r := range text {
		if !unicode.IsGraphic(r) {
			return fmt.Errorf("%s %q has a character that cannot be printed; leave it out", field, text)
		}
	}
	return nil
}

// within says that x is no less than 0 and at most top; NaN is not.
func within(x, top float64) bool { return x >= 0 && x <= top }
