//go:build soak

package emulated

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/workload"
)

var update = flag.Bool("update", false, "write law.csv anew")

// measured are the models behind the law: small, middle, large.
var measured = []string{"tiny-37k", "tiny-842k", "tiny-3.7m"}

// The law as it is embedded is what the embedded family says today.
func TestMeasure(t *testing.T) {
	said := make([][]event.Output, len(measured))
	text := writers(t, said)
	got := encode(said, text)
	if *update {
		if err := os.WriteFile("law.csv", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := parseTables(lawText)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseTables(string(got))
	if err != nil {
		t.Fatal(err)
	}
	// Another machine may add its products in another order.
	const near = 1e-3
	for m := range want {
		if d := math.Abs(want[m].tie - have[m].tie); d > near {
			t.Errorf("model %d goes with the small one by %v, measured %v", m, have[m].tie, want[m].tie)
		}
		for i := range want[m].rows {
			w, h := &want[m].rows[i], &have[m].rows[i]
			if d := math.Abs(float64(w.entropy - h.entropy)); d > near {
				t.Errorf("model %d, row %d: entropy %v, measured %v", m, i, h.entropy, w.entropy)
			}
		}
	}
}

// writers lets the large model answer the first 300 problems of "run --seed 1",
// greedily, and asks every model about every position of its texts. It returns
// the number of positions.
func writers(t *testing.T, said [][]event.Output) int {
	const problems, group, limit = 300, 30, 160
	var models []*model.Model
	for _, name := range measured {
		m, err := tiny.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	source, err := workload.NewGenerator(rng.Key{Seed: 1, Purpose: rng.Workload}.Uint64(0), workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	last := len(models) - 1
	positions := 0
	for range problems / group {
		rows := make([]event.Row, group)
		for i := range rows {
			task, _ := source.Next()
			ids, err := models[last].Tokenizer.EncodeChat([]tokenizer.Message{{Role: "user", Content: task.Question}})
			if err != nil {
				t.Fatal(err)
			}
			blocks := make([]event.Block, (len(ids)+limit)/model.BlockLen+1)
			for k := range blocks {
				blocks[k] = event.Block(i*64 + k)
			}
			rows[i] = event.Row{Req: event.ReqID(i + 1), Tokens: ids, Sample: true, Prefill: true, Blocks: blocks}
		}
		var runs []*native.Runner
		for m := range models {
			runs = append(runs, native.New(models[m], m))
		}
		for range limit {
			var out []event.Output
			for m, r := range runs {
				if out, err = r.Run(t.Context(), &event.Batch{Rows: rows}, nil); err != nil {
					t.Fatal(err)
				}
				said[m] = append(said[m], out...)
			}
			positions += len(rows)
			var next []event.Row
			for i, row := range rows {
				if slices.Contains(models[last].EOS(), out[i].Token) {
					continue
				}
				start := row.Start + len(row.Tokens)
				row.Blocks = row.Blocks[start/model.BlockLen-row.Start/model.BlockLen:]
				row.Start, row.Tokens, row.Prefill = start, []event.Token{out[i].Token}, false
				next = append(next, row)
			}
			if rows = next; len(rows) == 0 {
				break
			}
		}
	}
	return positions
}

func encode(said [][]event.Output, positions int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What the embedded models say about each of %d positions: the answers that the large\n", positions)
	fmt.Fprintf(&b, "# model writes, greedily, to the first 300 problems of run --seed 1. A line per model: name and\n")
	fmt.Fprintf(&b, "# rank correlation with the entropy of the small one at the same position. Then quantiles by\n")
	fmt.Fprintf(&b, "# entropy, %d of the lower nine tenths and %d of the rest: entropy, logsumexp, and the\n", lowRows, highRows)
	fmt.Fprintf(&b, "# log-probabilities of the five most likely tokens. Made by\n")
	fmt.Fprintf(&b, "#   go test -tags soak -run TestMeasure ./runtime/runner/emulated -update\n")
	for m, name := range measured {
		out := slices.Clone(said[m])
		fmt.Fprintf(&b, "model,%s,%.3f\n", name, spearman(said[0], said[m]))
		slices.SortStableFunc(out, func(a, b event.Output) int { return cmp.Compare(a.Entropy, b.Entropy) })
		for i := range lowRows + highRows {
			o := &out[int(quantile(i)*float64(len(out)))]
			fmt.Fprintf(&b, "%.5g,%.5g", o.Entropy, o.LogSumExp)
			for _, p := range o.TopK {
				fmt.Fprintf(&b, ",%.5g", p.Logprob)
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// quantile is the middle of what row i stands for.
func quantile(i int) float64 {
	if i < lowRows {
		return highFrom * (float64(i) + 0.5) / lowRows
	}
	return highFrom + (1-highFrom)*(float64(i-lowRows)+0.5)/highRows
}

// spearman is the rank correlation of two models' entropies.
func spearman(a, b []event.Output) float64 {
	ra, rb := ranks(a), ranks(b)
	n := float64(len(a))
	sum := 0.0
	for i := range ra {
		d := ra[i] - rb[i]
		sum += d * d
	}
	return 1 - 6*sum/(n*(n*n-1))
}

func ranks(out []event.Output) []float64 {
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(out[i].Entropy, out[j].Entropy) })
	r := make([]float64, len(out))
	for rank, i := range order {
		r[i] = float64(rank)
	}
	return r
}
