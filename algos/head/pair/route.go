package pair

import (
	"context"
)

// Task is one answer to write.
type Task struct {
	Prompt    []int32
	MaxTokens int
}

// Rule decides on a candidate of the small model for a task, by its number: true
// drops it, and the large model writes the position.
type Rule func(task int, s *Step) (large bool, err error)

// Answer is what came of a task.
type Answer struct {
	Tokens  []int32
	ByLarge []bool // who wrote each
}

// Large is the number of tokens that the large model wrote.
func (a *Answer) Large() (n int) {
	for _, l := range a.ByLarge {
		if l {
			n++
		}
	}
	return n
}

// Route answers tasks greedily, so many at a time: the small model writes but for
// the positions that the rule gives to the large one, each for one token. done is
// called as answers end, which is in no order that means anything. It is the loop of
// R2R, CITER and Co-LLM; a rule that is always or never true is one model alone.
func (p *Pair) Route(ctx context.Context, tasks []Task, at int, want Want, rule Rule, done func(task int, a *Answer) error) error {
	type open struct {
		task  int
		text  *Text
		large []bool
	}
	var active, ask []*open
	var texts []*Text
	next := 0
	defer func() {
		for _, o := range active {
			p.Free(o.text)
		}
	}()
	for {
		for len(active) < max(at, 1) && next < len(tasks) {
			active = append(active, &open{task: next, text: NewText(tasks[next].Prompt)})
			next++
		}
		if len(active) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		texts, ask = texts[:0], ask[:0]
		for _, o := range active {
			texts = append(texts, o.text)
		}
		if err := p.Next(Small, texts, want, func(i int, s *Step) error {
			o := active[i]
			large, err := rule(o.task, s)
			if err != nil {
				return err
			}
			if o.large = append(o.large, large); large {
				ask = append(ask, o)
			} else {
				o.text.Tokens = append(o.text.Tokens, s.Token)
			}
			return nil
		}); err != nil {
			return err
		}
		texts = texts[:0]
		for _, o := range ask {
			texts = append(texts, o.text)
		}
		if err := p.Next(Large, texts, Want{}, func(i int, s *Step) error {
			o := ask[i]
			o.text.Tokens = append(o.text.Tokens, s.Token)
			return nil
		}); err != nil {
			return err
		}
		left := active[:0]
		for _, o := range active {
			out := o.text.Output()
			if !p.Ends(out[len(out)-1]) && len(out) < tasks[o.task].MaxTokens {
				left = append(left, o)
				continue
			}
			p.Free(o.text)
			if err := done(o.task, &Answer{Tokens: out, ByLarge: o.large}); err != nil {
				return err
			}
		}
		clear(active[len(left):])
		active = left
	}
}
