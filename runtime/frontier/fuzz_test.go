package frontier_test

import (
	"encoding/json"
	"io"
	"testing"

	"tokenrouter/runtime/frontier"
)

// FuzzRuns makes everything of runs that a file may say: whatever they are, they are
// refused or come to a table, a chart and a drawing.
func FuzzRuns(f *testing.F) {
	good, err := json.Marshal(world{n: 6, seed: 1}.sweep()[:4])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`[{"series":"small_only","problems":[{"task":"a","checked":true,"tokens":[0,0],"steps":[0,0],"fed":[0,0]}]},{"series":"large_only","problems":[{"task":"a","checked":true,"right":true,"tokens":[-1,9223372036854775807],"steps":[-5,1],"fed":[1,1],"entropy":-1e308}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var runs []frontier.Run
		if json.Unmarshal(data, &runs) != nil || len(runs) > 20 {
			return
		}
		for _, cost := range frontier.Costs() {
			s, err := frontier.NewSet(runs, params, cost)
			if err != nil {
				continue
			}
			tab := frontier.NewTable(s, frontier.Options{Resamples: 2, Against: []string{"random"}})
			if tab.Text() == "" {
				t.Error("no text")
			}
			for _, axis := range frontier.Axes() {
				p := frontier.NewPlot(tab, axis)
				if err := p.WriteSVG(io.Discard); err != nil || p.Chart(80, 20) == "" {
					t.Errorf("no drawing, %v", err)
				}
			}
			if _, err := json.Marshal(frontier.NewReport(tab)); err != nil {
				t.Error(err)
			}
			if _, err := frontier.Choose(tab, tab, 0.5); err != nil {
				t.Error(err)
			}
		}
	})
}
