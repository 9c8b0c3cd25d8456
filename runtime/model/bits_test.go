package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
)

// levels are those of this machine, the fastest first.
func levels() []cpu.Level {
	var all []cpu.Level
	for l := cpu.Best(); l >= cpu.Go; l-- {
		all = append(all, l)
	}
	return all
}

// The contract of the package in every format of weights: what a row gives is
// the same bits for any batch, any mates, any chunks of the prompt and any
// number of cores, and on every level of assembly.
func TestBits(t *testing.T) {
	for _, format := range []string{"q8_0", "q4_0", "bf16", "f16", "f32"} {
		t.Run(format, func(t *testing.T) {
			m, err := model.Open(write(t, shape("qwen3"), format), model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			r := rand.New(rand.NewPCG(8, 8))
			var texts [][]int32
			for i := range 17 {
				texts = append(texts, randomIDs(r, m, 12+i*2))
			}
			var first [][]given
			for _, level := range levels() {
				t.Run(level.String(), func(t *testing.T) {
					defer cpu.Force(level)()
					texts := texts
					if level == cpu.Go {
						texts = texts[:3] // it is slow
					}
					var want [][]given
					for _, ids := range texts {
						want = append(want, alone(t, m, ids))
					}
					if first == nil {
						first = want
					} else if level != cpu.Go {
						for i := range want {
							for k := range want[i] {
								if !sameBits(want[i][k].logits, first[i][k].logits) {
									t.Fatalf("text %d, position %d: other logits than on the fastest level", i, k)
								}
							}
						}
					}
					for _, n := range []int{1, 2} {
						t.Run(fmt.Sprint("cores=", n), func(t *testing.T) {
							cores := team.New(n)
							defer cores.Close()
							ws := model.Workspace{Seat: cores.Seat()}
							batches(t, m, &ws, texts, want)
							chunks(t, m, &ws, texts, want)
						})
					}
				})
			}
		})
	}
}

// batches decodes 1 to 17 rows together, each at another position.
func batches(t *testing.T, m *model.Model, ws *model.Workspace, texts [][]int32, want [][]given) {
	for n := 1; n <= len(texts); n++ {
		kv := m.NewPool(4 * n)
		rows := make([]model.Row, n)
		for i := range rows {
			at := len(texts[i]) - 4
			rows[i] = all(model.Row{Blocks: table(4*i, at+4), Tokens: texts[i][:at]})
		}
		for range 4 {
			feed(t, m, ws, kv, rows...)
			for i := range rows {
				end := rows[i].Start + len(rows[i].Tokens)
				if err := want[i][end-1].compare(ws, i, &rows[i]); err != nil {
					t.Fatalf("batch of %d, position %d: %v", n, end-1, err)
				}
				rows[i].Start, rows[i].Tokens = end, texts[i][end:end+1]
			}
		}
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// chunks feeds the longest text in pieces of one size, beside a row that
// decodes.
func chunks(t *testing.T, m *model.Model, ws *model.Workspace, texts [][]int32, want [][]given) {
	long, mate := len(texts)-1, texts[0]
	ids := texts[long]
	for _, size := range []int{1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, len(ids)} {
		kv := m.NewPool(8)
		for at := 0; at < len(ids); at += size {
			end := min(at+size, len(ids))
			rows := []model.Row{all(model.Row{Blocks: table(0, len(ids)), Start: at, Tokens: ids[at:end]})}
			who := []int{long}
			if step := at / size; step < len(mate) {
				rows = append(rows, all(model.Row{Blocks: []int32{7}, Start: step, Tokens: mate[step : step+1]}))
				who = append(who, 0)
			}
			feed(t, m, ws, kv, rows...)
			for i := range rows {
				last := rows[i].Start + len(rows[i].Tokens) - 1
				if err := want[who[i]][last].compare(ws, i, &rows[i]); err != nil {
					t.Fatalf("pieces of %d, position %d: %v", size, last, err)
				}
			}
		}
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	}
}
