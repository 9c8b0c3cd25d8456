package train

import (
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
)

// An epoch over 24,000 rows of a head as wide as the shipped ones.
func BenchmarkEpoch(b *testing.B) {
	rows := invented(32, 32, 400, 60)
	o := Defaults()
	o.Spec = head.Spec{Kind: "mlp", Features: []string{"hidden", "embedding", "logits:32", "signals"}, Hidden: 32, Widths: []int{64}}
	o.Label, o.Epochs = dataset.Outcome, 1
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(b.Context(), rows, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows.Len()*b.N)/b.Elapsed().Seconds(), "rows/s")
}
