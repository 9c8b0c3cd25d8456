package collect

import (
	"context"

	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/pair"
)

// query collects one row a problem: what the small model knows when it has read the
// prompt, and whether the large model alone gets right what it does not.
func query(ctx context.Context, p *pair.Pair, problems []Problem, o *Options) (*dataset.Rows, error) {
	tasks := make([]pair.Task, len(problems))
	for i, q := range problems {
		tasks[i] = pair.Task{Prompt: q.Prompt, MaxTokens: q.MaxTokens}
	}
	right := [2][]bool{make([]bool, len(tasks)), make([]bool, len(tasks))}
	rows, done := make([]*dataset.Rows, len(tasks)), 0
	var top []float32
	for side, alone := range right {
		large := side == int(pair.Large)
		err := p.Route(ctx, tasks, o.At, pair.Want{Hidden: true, Logits: true}, func(i int, s *pair.Step) (bool, error) {
			if rows[i] == nil {
				rows[i] = emptyRows(p, o)
				top = appendRow(rows[i], p, top, i, len(tasks[i].Prompt), s)
			}
			return large, nil
		}, func(i int, a *pair.Answer) error {
			alone[i] = problems[i].Right(a.Tokens)
			if large {
				rows[i].Other = append(rows[i].Other, a.Tokens[0])
				if done++; o.Progress != nil {
					o.Progress(done, done)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := emptyRows(p, o)
	for i, r := range rows {
		r.Labels, r.Differ = []uint8{0}, []uint8{0}
		if right[pair.Large][i] && !right[pair.Small][i] {
			r.Labels[0] = 1
		}
		if r.Token[0] != r.Other[0] {
			r.Differ[0] = 1
		}
		out.Append(r)
	}
	return out, nil
}
