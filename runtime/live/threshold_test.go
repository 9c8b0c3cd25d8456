package live_test

import (
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/tape"
)

// A knob that names a head begins at the threshold of its manifest, on the tape and
// for the rows that are decided; a head without one leaves the file's default, and a
// value that is given beats both.
func TestKnobsBeginAtTheThresholdOfTheirHead(t *testing.T) {
	for _, c := range []struct {
		knob, source string
		set          map[string]float64
		want         float64
		calibrated   bool
	}{
		{knob: "t", source: "head", want: 0.4375, calibrated: true},
		{knob: "t", source: "file", want: 0.875},
		{knob: "t", source: "flag", want: 0.25, calibrated: true, set: map[string]float64{"t": 0.25}},
	} {
		s, heads := headSetup(t, 3)
		h := heads["row"]
		if c.calibrated {
			h = h.WithThreshold(0.4375, 0.1, nil)
		}
		if err := h.Save(filepath.Join(s.dir, "row")); err != nil {
			t.Fatal(err)
		}
		text := `local t = param("t", { default = 0.875, head = "row" })
function route(r)
  if r.model == "large" then return HOME end
  if r.score("row") >= t() then return to("large"), DROP end
  return STAY
end`
		if err := os.WriteFile(filepath.Join(s.dir, "heads.lua"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.params = c.set
		_, recs := run(t, s)
		var last *tape.Knob
		for i := range recs {
			if k, ok := recs[i].Host.(*tape.Knob); ok {
				last = k
			}
		}
		if last == nil || last.New != c.want || last.Source != c.source {
			t.Errorf("calibrated %v, set %v: the tape has %+v, want %v from %s", c.calibrated, c.set, last, c.want, c.source)
			continue
		}
		rows := 0
		for id, list := range routedRows(recs) {
			for _, row := range list {
				if rows++; (row.res.Dest == 1) != (float64(row.res.Score) >= c.want) {
					t.Fatalf("request %d at %d: score %v at the threshold %v goes to %d", id, row.pos, row.res.Score, c.want, row.res.Dest)
				}
			}
		}
		if rows == 0 {
			t.Error("no row was routed")
		}
	}
}
