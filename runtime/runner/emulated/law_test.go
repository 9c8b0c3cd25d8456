package emulated

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/runner"
)

var _ runner.Runner = (*Runner)(nil)

// family is the vocabulary of the embedded models.
func family(t testing.TB) Vocab {
	t.Helper()
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	tok := m.Tokenizer
	return Printable(m.Config.Vocab, func(id event.Token) ([]byte, bool) { return tok.Bytes(id), tok.IsSpecial(id) }, m.EOS())
}

func newLaw(t testing.TB, seed uint64, models int) *Law {
	t.Helper()
	l, err := NewLaw(seed, family(t), models)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// decode is a row that asks for position pos.
func decode(id event.ReqID, pos int, s event.Sampling) event.Row {
	return event.Row{Req: id, Start: pos - 1, Tokens: []event.Token{7}, Sample: true, Sampling: s}
}

func ask(t testing.TB, tokens Tokens, model int, rows ...event.Row) []event.Output {
	t.Helper()
	out, err := New(tokens, model).Run(t.Context(), &event.Batch{Rows: rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A row says the same alone and in any company, again and again; parts of a
// prefill say nothing.
func TestRowsAreIndependent(t *testing.T) {
	l := newLaw(t, 3, 3)
	rapid.Check(t, func(rt *rapid.T) {
		s := event.Sampling{Temperature: float32(rapid.IntRange(0, 3).Draw(rt, "T")), TopK: rapid.IntRange(0, 8).Draw(rt, "K"), TopP: 0.95}
		row := rapid.Custom(func(rt *rapid.T) event.Row {
			return decode(event.ReqID(rapid.IntRange(1, 9).Draw(rt, "req")), rapid.IntRange(1, 50).Draw(rt, "pos"), s)
		})
		rows := rapid.SliceOfN(row, 1, 8).Draw(rt, "rows")
		part := rows[0]
		part.Sample = false
		model := rapid.IntRange(0, 2).Draw(rt, "model")
		all := ask(t, l, model, append([]event.Row{part}, rows...)...)
		if len(all) != len(rows) {
			rt.Fatalf("%d answers to %d rows", len(all), len(rows))
		}
		for i, r := range rows {
			if alone := ask(t, l, model, r)[0]; !reflect.DeepEqual(alone, all[i]) {
				rt.Fatalf("alone %+v, in a batch %+v", alone, all[i])
			}
			// Fed in one go with what is before, as after a preemption.
			r.Start, r.Tokens = r.Start-min(r.Start, 3), make([]event.Token, 1+min(r.Start, 3))
			if anew := ask(t, l, model, r)[0]; !reflect.DeepEqual(anew, all[i]) {
				rt.Fatalf("fed anew %+v, before %+v", anew, all[i])
			}
		}
	})
}

// Seed, request, position and model each matter.
func TestKey(t *testing.T) {
	text := func(l *Law, model int, id event.ReqID, from int) (ids []event.Token) {
		for pos := range 40 {
			ids = append(ids, ask(t, l, model, decode(id, from+pos, event.Sampling{}))[0].Token)
		}
		return ids
	}
	base := text(newLaw(t, 1, 2), 0, 1, 1)
	if !slices.Equal(base, text(newLaw(t, 1, 2), 0, 1, 1)) {
		t.Error("the same key says something else")
	}
	for what, other := range map[string][]event.Token{
		"seed":     text(newLaw(t, 2, 2), 0, 1, 1),
		"request":  text(newLaw(t, 1, 2), 0, 2, 1),
		"position": text(newLaw(t, 1, 2), 0, 1, 2),
		"model":    text(newLaw(t, 1, 2), 1, 1, 1),
	} {
		if slices.Equal(base, other) {
			t.Errorf("another %s says the same", what)
		}
	}
}

// Every row fits itself: the list falls, its tokens differ, top1 and top2 are its
// first two, greedy takes the first, entropy is at least what the list proves.
func TestRowsFit(t *testing.T) {
	v := family(t)
	for model := range 3 {
		l := newLaw(t, 9, 3)
		for pos := 1; pos <= 3000; pos++ {
			o := ask(t, l, model, decode(1, pos, event.Sampling{}))[0]
			if len(o.TopK) != 5 || o.Token != o.TopK[0].Token {
				t.Fatalf("greedy says %d of %v", o.Token, o.TopK)
			}
			bound := 0.0
			for k, p := range o.TopK {
				if !slices.Contains(v.Tokens, p.Token) {
					t.Fatalf("token %d is not to be drawn", p.Token)
				}
				if k > 0 && p.Logprob > o.TopK[k-1].Logprob {
					t.Fatalf("%v rises", o.TopK)
				}
				for _, q := range o.TopK[:k] {
					if q.Token == p.Token {
						t.Fatalf("token %d is listed twice", p.Token)
					}
				}
				bound -= float64(p.Logprob) * math.Exp(float64(p.Logprob))
			}
			if float64(o.Entropy) < bound-1e-3 || float64(o.Entropy) > math.Log(float64(v.Rows)) {
				t.Fatalf("entropy %v, the list alone has %v", o.Entropy, bound)
			}
			if near(o.Top1, math.Exp(float64(o.TopK[0].Logprob))) || near(o.Top2, math.Exp(float64(o.TopK[1].Logprob))) ||
				near(o.EntropyNorm, float64(o.Entropy)/math.Log(float64(v.Rows))) || !(o.LogSumExp > 0) {
				t.Fatalf("%+v", o)
			}
		}
	}
}

func near(got float32, want float64) bool { return math.Abs(float64(got)-want) > 1e-5 }

// Quantiles of drawn entropies are those of the measurement, and positions are
// hard for both models as often as measured.
func TestLaw(t *testing.T) {
	const n = 20_000
	l := newLaw(t, 4, 2)
	measured, err := tables()
	if err != nil {
		t.Fatal(err)
	}
	said := make([][]float32, 2)
	both := 0
	for i := range n {
		var hard [2]bool
		for m, table := range []*table{&measured[0], &measured[2]} {
			o := ask(t, l, m, decode(event.ReqID(1+i/100), 1+i%100, event.Sampling{}))[0]
			said[m] = append(said[m], o.Entropy)
			hard[m] = o.Entropy >= table.at(0.9).entropy
		}
		if hard[0] && hard[1] {
			both++
		}
	}
	for m, table := range []*table{&measured[0], &measured[2]} {
		for _, q := range []float64{0.1, 0.5, 0.9, 0.97, 0.99} {
			limit := table.at(q).entropy
			below := 0
			for _, h := range said[m] {
				if h < limit {
					below++
				}
			}
			// Five standard deviations, and half a row of the table.
			if d := math.Abs(float64(below)/n - q); d > 5*math.Sqrt(q*(1-q)/n)+0.004 {
				t.Errorf("model %d: %v of the entropies are below the quantile %v", m, float64(below)/n, q)
			}
		}
	}
	// Both are in their upper tenth if they are tied, or by chance.
	tie := measured[2].tie
	want := 0.1*tie + 0.01*(1-tie)
	if d := math.Abs(float64(both)/n - want); d > 5*math.Sqrt(want/n) {
		t.Errorf("%v of the positions are hard for both, want %v", float64(both)/n, want)
	}
}

// A sampled token has the place in the list that its probability gives it.
func TestSampled(t *testing.T) {
	const n = 30_000
	l := newLaw(t, 6, 2)
	for _, s := range []event.Sampling{{Temperature: 1}, {Temperature: 1, TopK: 3}, {Temperature: 1, TopP: 0.9}, {Temperature: 0.5}} {
		var got, want [topN + 1]float64
		for i := range n {
			o := ask(t, l, 0, decode(1, i+1, s))[0]
			k := slices.IndexFunc(o.TopK, func(p event.TokenProb) bool { return p.Token == o.Token })
			if k < 0 {
				k = topN
			}
			got[k]++
			for i, p := range weights(&o, &s) {
				want[i] += p
			}
		}
		for k := range got {
			if d := math.Abs(got[k] - want[k]); d > 5*math.Sqrt(want[k])+1e-6 {
				t.Errorf("%+v: place %d is taken %v times, want %.1f", s, k, got[k], want[k])
			}
		}
	}
}

// weights is the chance of each listed token, and of all behind them together.
func weights(o *event.Output, s *event.Sampling) []float64 {
	const rows = 424
	w := make([]float64, topN+1)
	rest := 1.0
	for i, p := range o.TopK {
		w[i] = math.Pow(math.Exp(float64(p.Logprob)), 1/float64(s.Temperature))
		rest -= math.Exp(float64(p.Logprob))
	}
	if rest > 0 && s.TopK == 0 {
		w[topN] = (rows - topN) * math.Pow(rest/(rows-topN), 1/float64(s.Temperature))
	}
	if s.TopK > 0 {
		clear(w[s.TopK:])
	}
	sum := 0.0
	for _, x := range w {
		sum += x
	}
	if s.TopP > 0 {
		left := sum * float64(s.TopP)
		for i := range w {
			if left <= 0 {
				w[i] = 0
			} else if i == topN {
				w[i] = min(w[i], left)
			}
			left -= w[i]
		}
		sum = 0
		for _, x := range w {
			sum += x
		}
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// Tokens are uniform, wherever in the list they stand, and none ends a text or
// breaks a character.
func TestTokens(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	v := family(t)
	for _, id := range v.Tokens {
		if b := m.Tokenizer.Bytes(id); !utf8.Valid(b) || len(b) == 0 || m.Tokenizer.IsSpecial(id) || slices.Contains(m.EOS(), id) {
			t.Fatalf("token %d is %q", id, b)
		}
	}
	if len(v.Tokens) < 150 {
		t.Errorf("only %d of %d tokens", len(v.Tokens), v.Rows)
	}
	const n = 40_000
	l := newLaw(t, 8, 2)
	for _, k := range []int{0, 4} {
		counts := map[event.Token]int{}
		for i := range n {
			counts[ask(t, l, 1, decode(2, i+1, event.Sampling{}))[0].TopK[k].Token]++
		}
		chi, want := 0.0, float64(n)/float64(len(v.Tokens))
		for _, id := range v.Tokens {
			d := float64(counts[id]) - want
			chi += d * d / want
		}
		// Mean and five standard deviations of the chi-square law.
		if df := float64(len(v.Tokens) - 1); chi > df+5*math.Sqrt(2*df) {
			t.Errorf("place %d: chi-square %.0f over %d tokens", k, chi, len(v.Tokens))
		}
	}
}

func TestRefused(t *testing.T) {
	v := family(t)
	for _, c := range []struct {
		v      Vocab
		models int
	}{{v, 0}, {Vocab{Rows: 3, Tokens: []event.Token{0, 1, 2}}, 2}, {Vocab{Rows: 9, Tokens: v.Tokens}, 2}} {
		if _, err := NewLaw(1, c.v, c.models); err == nil {
			t.Errorf("%d tokens, %d models: no error", len(c.v.Tokens), c.models)
		}
	}
	r := New(newLaw(t, 1, 2), 2)
	if _, err := r.Run(t.Context(), &event.Batch{Rows: []event.Row{decode(1, 1, event.Sampling{})}}, nil); err == nil {
		t.Error("a model that is not there answers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(newLaw(t, 1, 2), 0).Run(ctx, &event.Batch{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if h, ok := r.Hidden(1, make([]float32, 3)); ok || len(h) != 0 {
		t.Error("there is a hidden state")
	}
	r.Free(1)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkLaw(b *testing.B) {
	for name, s := range map[string]event.Sampling{"greedy": {}, "sampled": {Temperature: 1, TopP: 0.95}} {
		b.Run(name, func(b *testing.B) { benchmark(b, newLaw(b, 1, 2), s) })
	}
}

// benchmark is batches of 16 rows; ns/row is per row.
func benchmark(b *testing.B, tokens Tokens, s event.Sampling) {
	batch := &event.Batch{}
	for i := range 16 {
		batch.Rows = append(batch.Rows, decode(event.ReqID(i+1), 1, s))
	}
	r := New(tokens, 1)
	var out []event.Output
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		for i := range batch.Rows {
			batch.Rows[i].Start = n % 90
		}
		var err error
		if out, err = r.Run(b.Context(), batch, out[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(16*n), "ns/row")
}
