package train

import "testing"

// BenchmarkStep measures steps of 2,048 tokens in sequences of 150, of which
// 90 count, as they are in the embedded family's training.
func BenchmarkStep(b *testing.B) {
	for _, n := range named {
		b.Run(n.name, func(b *testing.B) {
			tr, err := New(Default(n.shape))
			if err != nil {
				b.Fatal(err)
			}
			r := random{state: 3}
			next := func() Example {
				e := noise(&r, 150, n.shape.Vocab)
				for i := range e.Learn {
					e.Learn[i] = i > 60
				}
				return e
			}
			tokens := 0
			b.ReportAllocs()
			for b.Loop() {
				res, err := tr.Step(next)
				if err != nil {
					b.Fatal(err)
				}
				tokens += res.Tokens
			}
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
