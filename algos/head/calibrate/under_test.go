package calibrate

import (
	"testing"

	"tokenrouter/algos/head/pair"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/workload"
)

// A score that is asked for once decides who writes a whole answer; one that is asked
// for at each token decides token by token.
func TestUnder(t *testing.T) {
	small, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	large, err := tiny.Load("tiny-842k")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pair.New(small, large, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	g, err := workload.NewGenerator(4242, workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	tasks := &Tasks{At: 3}
	for range 8 {
		task, _ := g.Next()
		ids, err := small.Tokenizer.EncodeChat([]tokenizer.Message{{Role: "user", Content: task.Question}})
		if err != nil {
			t.Fatal(err)
		}
		tasks.Tasks = append(tasks.Tasks, pair.Task{Prompt: ids, MaxTokens: 20})
	}
	of := func(s *pair.Step) (float64, error) { return float64(s.Signals.Entropy), nil }
	var firsts []float64
	for _, task := range tasks.Tasks {
		if err := p.Next(pair.Small, []*pair.Text{pair.NewText(task.Prompt)}, pair.Want{}, func(_ int, s *pair.Step) error {
			firsts = append(firsts, float64(s.Signals.Entropy))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	threshold := 0.0
	for _, x := range firsts {
		threshold += x / float64(len(firsts))
	}
	mixed := 0
	for _, once := range []bool{true, false} {
		r, err := tasks.Under(t.Context(), p, Score{Name: "entropy", Once: once, Of: of}, threshold)
		if err != nil {
			t.Fatal(err)
		}
		if asked := len(r.Scores); once != (asked == len(firsts)) {
			t.Errorf("once %v: asked %d times about %d answers", once, asked, len(firsts))
		}
		for i, n := range r.Large {
			if n > 0 && n < r.Tokens[i] {
				mixed++
			}
			if want := firsts[i] >= threshold; once && (n == r.Tokens[i]) != want || once && n > 0 && n < r.Tokens[i] {
				t.Errorf("answer %d: %d of %d tokens are the large model's, asked %v at %v", i, n, r.Tokens[i], firsts[i], threshold)
			}
		}
	}
	if mixed == 0 {
		t.Error("no answer had two writers; the test has lost its sense")
	}
}
