package collect_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/algos/head/collect"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/pair"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/workload"
)

func load(t *testing.T) *pair.Pair {
	t.Helper()
	small, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	large, err := tiny.Load("tiny-3.7m")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pair.New(small, large, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func problems(t *testing.T, p *pair.Pair, n int) (out []collect.Problem) {
	t.Helper()
	g, err := workload.NewGenerator(4242, workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	tok := p.Model(pair.Small).Tokenizer
	for range n {
		task, _ := g.Next()
		ids, err := tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: task.Question}})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, collect.Problem{Prompt: ids, MaxTokens: 160, Right: func(o []int32) bool {
			_, right, _ := task.Judge(tok.Decode(o))
			return right
		}})
	}
	return out
}

// alone is what one model writes behind a text.
func alone(t *testing.T, p *pair.Pair, text []int32, most int, large bool) []int32 {
	t.Helper()
	var out []int32
	err := p.Route(t.Context(), []pair.Task{{Prompt: text, MaxTokens: most}}, 1, pair.Want{},
		func(int, *pair.Step) (bool, error) { return large, nil },
		func(_ int, a *pair.Answer) error { out = a.Tokens; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every row and label is what it is said to be: the text is written anew by the
// rule of its kind, and each mismatch is rolled out from the bare text, both ways.
func TestRows(t *testing.T) {
	p := load(t)
	all := problems(t, p, 3)
	for _, c := range []struct {
		label dataset.Label
		text  collect.Text
	}{
		{dataset.Outcome, collect.Text{Kind: collect.TextRepair}},
		{dataset.Outcome, collect.Text{Kind: collect.TextEntropy, Threshold: 0.3}},
		{dataset.Outcome, collect.Text{Kind: collect.TextLarge}},
		{dataset.Mismatch, collect.Text{Kind: collect.TextLarge}},
	} {
		rows, err := collect.Run(t.Context(), p, all, collect.Options{Label: c.label, Texts: []collect.Text{c.text}, TopLogits: 3, Embedding: true, At: 2})
		if err != nil {
			t.Fatal(err)
		}
		for n, q := range all {
			from, _ := slices.BinarySearch(rows.Problem, int32(n))
			to, _ := slices.BinarySearch(rows.Problem, int32(n+1))
			text := slices.Clone(q.Prompt)
			for i := from; i < to; i++ {
				if int(rows.Pos[i]) != len(text) {
					t.Fatalf("%v, problem %d: row %d is of position %d, not %d", c, n, i-from, rows.Pos[i], len(text))
				}
				want := uint8(0)
				if rows.Token[i] != rows.Other[i] {
					want = 1
					if c.label == dataset.Outcome {
						want = outcome(t, p, &q, text, rows.Token[i])
					}
				}
				if rows.Labels[i] != want || rows.Differ[i] == 1 != (rows.Token[i] != rows.Other[i]) {
					t.Errorf("%v, problem %d, position %d: labelled %d, want %d", c, n, len(text), rows.Labels[i], want)
				}
				large := map[string]bool{
					collect.TextLarge: true, collect.TextRepair: want == 1, collect.TextEntropy: float64(rows.Measure(i)[0]) >= c.text.Threshold,
				}[c.text.Kind]
				if large {
					text = append(text, rows.Other[i])
				} else {
					text = append(text, rows.Token[i])
				}
			}
		}
		if c.label == dataset.Outcome && dataset.Positives(rows.Labels) == 0 {
			t.Errorf("%v: no row is labelled 1", c)
		}
	}
}

// outcome is the label of a mismatch by two rollouts.
func outcome(t *testing.T, p *pair.Pair, q *collect.Problem, text []int32, token int32) uint8 {
	t.Helper()
	most := q.MaxTokens - (len(text) - len(q.Prompt))
	written := text[len(q.Prompt):]
	right := func(more []int32) bool { return q.Right(append(slices.Clone(written), more...)) }
	kept := []int32{token}
	if !p.Ends(token) && most > 1 {
		kept = append(kept, alone(t, p, append(slices.Clone(text), token), most-1, true)...)
	}
	if !right(kept) && right(alone(t, p, text, most, true)) {
		return 1
	}
	return 0
}

// Rows hold what the small model knew: hidden state and logits of the position, the
// embedding of its token.
func TestFeatures(t *testing.T) {
	p := load(t)
	all := problems(t, p, 1)
	rows, err := collect.Run(t.Context(), p, all, collect.Options{Label: dataset.Mismatch, Texts: []collect.Text{{Kind: collect.TextLarge}}, TopLogits: 5, Embedding: true, At: 1})
	if err != nil {
		t.Fatal(err)
	}
	text := pair.NewText(all[0].Prompt)
	for i := range rows.Len() {
		if err := p.Next(pair.Small, []*pair.Text{text}, pair.Want{Hidden: true, Logits: true}, func(_ int, s *pair.Step) error {
			e, _ := p.Model(pair.Small).Embedding(s.Token, nil)
			g := s.Signals
			if !slices.Equal(rows.State(i), s.Hidden) || !slices.Equal(rows.Embedding(i), e) || !slices.Equal(rows.Top(i), pair.Largest(nil, s.Logits, 5)) ||
				!slices.Equal(rows.Measure(i), []float32{g.Entropy, g.Top1, g.Top2, g.LogSumExp}) || rows.Token[i] != s.Token {
				t.Fatalf("row %d is of something else", i)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		text.Tokens = append(text.Tokens, rows.Other[i])
	}
	if rows.Len() < 20 || rows.Hashes["large"] != p.Model(pair.Large).Hash() || rows.Text != "large" {
		t.Errorf("%d rows, %+v", rows.Len(), rows.Meta)
	}
}

// Rows do not depend on how many problems are under way.
func TestBatchingDoesNotShow(t *testing.T) {
	p := load(t)
	all := problems(t, p, 5)
	var want *dataset.Rows
	for _, at := range []int{1, 2, 64} {
		o := collect.Options{Label: dataset.Outcome, TopLogits: 2, At: at, Texts: []collect.Text{{Kind: collect.TextLarge}, {Kind: collect.TextEntropy, Threshold: 0.2}}}
		got, err := collect.Run(t.Context(), p, all, o)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%d at a time give other rows", at)
		}
	}
}

// A query's label is the outcome of either model alone, its features those of the
// last position of the prompt.
func TestQuery(t *testing.T) {
	p := load(t)
	all := problems(t, p, 8)
	rows, err := collect.Run(t.Context(), p, all, collect.Options{Label: dataset.Query, TopLogits: 4, At: 3})
	if err != nil {
		t.Fatal(err)
	}
	if rows.Len() != len(all) {
		t.Fatalf("%d rows", rows.Len())
	}
	for i, q := range all {
		small, large := alone(t, p, q.Prompt, 160, false), alone(t, p, q.Prompt, 160, true)
		want := uint8(0)
		if q.Right(large) && !q.Right(small) {
			want = 1
		}
		if rows.Labels[i] != want || rows.Token[i] != small[0] || rows.Other[i] != large[0] || int(rows.Pos[i]) != len(q.Prompt) {
			t.Errorf("problem %d: labelled %d, want %d", i, rows.Labels[i], want)
		}
	}
	if n := dataset.Positives(rows.Labels); n == 0 || n == len(all) {
		t.Errorf("%d of %d are labelled 1", n, len(all))
	}
}

// An interruption gives the context's error; wrong options name the cure.
func TestRefused(t *testing.T) {
	p := load(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	o := collect.Options{Label: dataset.Outcome, TopLogits: 1, Texts: []collect.Text{{Kind: collect.TextLarge}}}
	if _, err := collect.Run(ctx, p, problems(t, p, 2), o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for name, spoil := range map[string]func(o *collect.Options){
		"label":   func(o *collect.Options) { o.Label = "other" },
		"no text": func(o *collect.Options) { o.Texts = nil },
		"text":    func(o *collect.Options) { o.Texts[0].Kind = "other" },
		"repair":  func(o *collect.Options) { o.Label, o.Texts[0].Kind = dataset.Mismatch, collect.TextRepair },
		"logits":  func(o *collect.Options) { o.TopLogits = 0 },
		"many":    func(o *collect.Options) { o.TopLogits = 1 << 20 },
	} {
		bad := o
		bad.Texts = slices.Clone(o.Texts)
		spoil(&bad)
		if _, err := collect.Run(t.Context(), p, problems(t, p, 1), bad); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
