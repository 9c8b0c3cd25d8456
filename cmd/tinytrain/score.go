package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"tokenrouter/kernels"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/workload"
)

type scoreCmd struct {
	Model    string   `arg:"" help:"An embedded model, or the folder of a checkpoint."`
	Families []string `help:"Families of problems; all if none is named."`
	Problems int      `default:"300" help:"Problems of each family."`
	Seed     uint64   `default:"999001" help:"Seed of the problems; the default is for evaluation alone."`
	Tokens   int      `default:"160" help:"The longest answer."`
	Show     int      `help:"Print so many wrong answers of each family, with what was asked for."`
}

// Run is kong's entry.
func (c *scoreCmd) Run(ctx context.Context) error {
	if c.Problems < 1 || c.Tokens < 1 {
		return fmt.Errorf("--problems and --tokens are at least 1")
	}
	m, err := c.load()
	if err != nil {
		return err
	}
	enc, err := newEncoder(m.Tokenizer)
	if err != nil {
		return err
	}
	if len(c.Families) == 0 {
		c.Families = workload.Families()
	}
	sum := 0.0
	for _, f := range c.Families {
		g, err := workload.NewFamily(f, c.Seed)
		if err != nil {
			return err
		}
		problems := make([]workload.Problem, c.Problems)
		for i := range problems {
			problems[i] = g.Problem()
		}
		right, tokens, err := c.right(ctx, m, enc, problems)
		if err != nil {
			return err
		}
		share := float64(right) / float64(c.Problems)
		sum += share
		fmt.Printf("%-10s %4d of %d right, %5.1f %%, %.1f tokens each\n", f, right, c.Problems, 100*share, float64(tokens)/float64(c.Problems))
	}
	fmt.Printf("%-10s %5.1f %%\n", "mean", 100*sum/float64(len(c.Families)))
	return nil
}

func (c *scoreCmd) load() (*model.Model, error) {
	if slices.Contains(tiny.Names(), c.Model) {
		return tiny.Load(c.Model)
	}
	return model.Load(os.DirFS(c.Model), c.Model)
}

// together is the number of answers written at a time.
const together = 16

// right counts the right ones of greedy answers, and their tokens.
func (c *scoreCmd) right(ctx context.Context, m *model.Model, enc *encoder, problems []workload.Problem) (right, tokens int, err error) {
	shown := 0
	for len(problems) > 0 {
		n := min(together, len(problems))
		answers, err := c.write(ctx, m, enc, problems[:n])
		if err != nil {
			return 0, 0, err
		}
		for i, ids := range answers {
			text, p := m.Tokenizer.Decode(ids), problems[i]
			answer, ok := workload.Extract(text)
			tokens += len(ids)
			switch {
			case ok && workload.Correct(answer, p.Answer):
				right++
			case shown < c.Show:
				shown++
				fmt.Printf("\n%s\nwritten: %s\nwanted: %s%s\n", p.Question, text, p.Thought, p.Answer)
			}
		}
		problems = problems[n:]
	}
	return right, tokens, nil
}

// write answers problems greedily, all in one batch.
func (c *scoreCmd) write(ctx context.Context, m *model.Model, enc *encoder, problems []workload.Problem) ([][]int32, error) {
	var ws model.Workspace
	rows, written := make([]model.Row, len(problems)), make([][]int32, len(problems))
	var going []int // problems whose answers are not complete
	at := int32(0)
	for i, p := range problems {
		ids, err := enc.prompt(p.Question)
		if err != nil {
			return nil, err
		}
		rows[i] = model.Row{Tokens: ids, Logits: true}
		for range (len(ids) + c.Tokens + model.BlockLen - 1) / model.BlockLen {
			rows[i].Blocks = append(rows[i].Blocks, at)
			at++
		}
		going = append(going, i)
	}
	kv := m.NewPool(int(at))
	for len(going) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		step := make([]model.Row, len(going))
		for k, i := range going {
			step[k] = rows[i]
		}
		if err := m.Forward(&ws, kv, step); err != nil {
			return nil, err
		}
		left := going[:0]
		for k, i := range going {
			id, err := kernels.Argmax(ws.Logits(k))
			if err != nil {
				return nil, err
			}
			written[i] = append(written[i], id)
			rows[i].Start += len(rows[i].Tokens)
			rows[i].Tokens = written[i][len(written[i])-1:]
			if !slices.Contains(m.EOS(), id) && len(written[i]) < c.Tokens {
				left = append(left, i)
			}
		}
		going = left
	}
	return written, nil
}
