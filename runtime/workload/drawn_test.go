package workload

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

func drawn(t testing.TB, seed uint64, preset string) (*Drawn, Shape) {
	t.Helper()
	shape, err := ShapeOf(preset)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDrawn(seed, 1000, shape)
	if err != nil {
		t.Fatal(err)
	}
	return d, shape
}

// The presets of one turn: about 100 tokens in, outputs up to the bound, which
// one in twenty reaches.
func TestDrawnLengths(t *testing.T) {
	const n = 20_000
	for preset, most := range map[string]int{PresetLight: 2048, PresetHeavy: 8192} {
		d, shape := drawn(t, 3, preset)
		var in float64
		outs := make([]float64, n)
		atBound := 0
		for i := range n {
			task, ok := d.Next()
			if !ok || task.Conversation != "" || task.HasAnswer {
				t.Fatalf("task %+v, %v", task, ok)
			}
			if len(task.Prompt) < shape.Input.Min || len(task.Prompt)+task.MaxTokens > shape.Longest() || task.MaxTokens > most || task.MaxTokens < 16 {
				t.Fatalf("%d tokens in, %d out", len(task.Prompt), task.MaxTokens)
			}
			in += float64(len(task.Prompt)) / n
			outs[i] = float64(task.MaxTokens)
			if task.MaxTokens == most {
				atBound++
			}
		}
		near(t, preset+": mean prompt", in, 100, 0.02)
		slices.Sort(outs)
		near(t, preset+": median output", outs[n/2], 0.375*float64(most), 0.03)
		near(t, preset+": share at the bound", float64(atBound)/n, 0.05, 0.1)
	}
}

// The tokens of prompts are uniform over the vocabulary, and no two prompts
// begin alike.
func TestDrawnTokensAreUniform(t *testing.T) {
	const vocab = 50
	d, err := NewDrawn(9, vocab, Shape{Input: Law{Median: 100, Min: 100, Max: 100}, Output: Law{Median: 1, Min: 1, Max: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var counts [vocab]float64
	begins := map[[8]event.Token]bool{}
	const n = 2000
	for range n {
		task, _ := d.Next()
		begins[[8]event.Token(task.Prompt)] = true
		for _, token := range task.Prompt {
			counts[token]++
		}
	}
	if len(begins) != n {
		t.Errorf("%d of %d prompts begin differently", len(begins), n)
	}
	var x float64
	for _, c := range counts {
		want := float64(n*100) / vocab
		x += (c - want) * (c - want) / want
	}
	if limit := (vocab - 1) + 4*math.Sqrt(2*(vocab-1)); x > limit {
		t.Errorf("chi-square %.1f of %d tokens", x, vocab)
	}
}

// follow plays a whole conversation with the given answers.
func follow(t testing.TB, f Follower, first Task, answer func(Task) []event.Token) []Task {
	t.Helper()
	turns := []Task{first}
	for {
		last := turns[len(turns)-1]
		next, ok := f.Follow(last, answer(last))
		if !ok {
			return turns
		}
		if next.Conversation != first.Conversation || next.Turn != last.Turn+1 || next.ID == last.ID {
			t.Fatalf("turn %+v follows %+v", next, last)
		}
		turns = append(turns, next)
	}
}

// ones answers as long as the task allows.
func ones(task Task) []event.Token { return slices.Repeat([]event.Token{1}, task.MaxTokens) }

// Each turn's prompt is the one before, its answer and something new, up to
// about 8,192 tokens.
func TestDrawnConversationsGrow(t *testing.T) {
	d, shape := drawn(t, 4, PresetMultiTurn)
	const n = 300
	var last, turns float64
	for range n {
		first, _ := d.Next()
		all := follow(t, d, first, ones)
		for k, task := range all {
			if len(task.Prompt) > shape.Context || len(task.Prompt)+task.MaxTokens > shape.Longest() || task.MaxTokens > 1024 {
				t.Fatalf("%d tokens in, %d out", len(task.Prompt), task.MaxTokens)
			}
			if k == 0 {
				continue
			}
			before := append(slices.Clone(all[k-1].Prompt), ones(all[k-1])...)
			if len(task.Prompt) < len(before)+shape.More.Min || !slices.Equal(task.Prompt[:len(before)], before) {
				t.Fatalf("turn %d does not go on from turn %d", k, k-1)
			}
			if slices.Equal(task.Prompt[len(before):][:shape.More.Min], first.Prompt[:shape.More.Min]) {
				t.Fatalf("turn %d says again what the first one said", k)
			}
		}
		last += float64(len(all[len(all)-1].Prompt)) / n
		turns += float64(len(all)) / n
	}
	if last < 7000 || last > 8192 {
		t.Errorf("the last prompt has %.0f tokens on average, want about 8,192", last)
	}
	if turns < 5 || turns > 12 {
		t.Errorf("%.1f turns on average", turns)
	}
}

// A turn is the same whatever other conversations did before, and Follow keeps
// and changes nothing of what it was given.
func TestFollowIsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		shape := Shape{
			Input: Law{Median: 20, Sigma: 1, Min: 1, Max: 50}, More: Law{Median: 9, Sigma: 1, Min: 1, Max: 40},
			Output: Law{Median: 9, Sigma: 1, Min: 1, Max: 40}, Context: 120,
		}
		d, err := NewDrawn(seed, 77, shape)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewConversations(seed, Light)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]Follower{"drawn": d, "stories": c} {
			open := []Task{}
			seen := map[string]Task{}
			for range rapid.IntRange(1, 40).Draw(t, name) {
				if len(open) == 0 || rapid.Bool().Draw(t, "new") {
					task, _ := f.Next()
					open = append(open, task)
					continue
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				output := ones(open[i])
				prompt := slices.Clone(open[i].Prompt)
				next, ok := f.Follow(open[i], output)
				again, ok2 := f.Follow(open[i], output)
				if ok != ok2 || !reflect.DeepEqual(next, again) {
					t.Fatalf("%s: %+v was followed by %+v, then by %+v", name, open[i], next, again)
				}
				if !slices.Equal(prompt, open[i].Prompt) {
					t.Fatalf("%s: Follow changed the prompt", name)
				}
				before := slices.Clone(next.Prompt)
				clear(output)
				if !slices.Equal(before, next.Prompt) {
					t.Fatalf("%s: Follow keeps the output", name)
				}
				if open = slices.Delete(open, i, i+1); ok {
					if _, twice := seen[next.ID]; twice {
						t.Fatalf("%s: id %s came twice", name, next.ID)
					}
					seen[next.ID] = next
					open = append(open, next)
				}
			}
		}
	})
}

func TestFollowRefusesStrangers(t *testing.T) {
	d, _ := drawn(t, 1, PresetMultiTurn)
	light, _ := drawn(t, 1, PresetLight)
	first, _ := light.Next()
	if next, ok := light.Follow(first, nil); ok {
		t.Errorf("a workload of one turn goes on with %+v", next)
	}
	for _, task := range []Task{{}, {Conversation: "x"}, {Conversation: "-1"}} {
		if next, ok := d.Follow(task, nil); ok {
			t.Errorf("%+v was followed by %+v", task, next)
		}
	}
}

func TestNewDrawnRefuses(t *testing.T) {
	good := Law{Median: 5, Sigma: 1, Min: 1, Max: 9}
	for name, c := range map[string]struct {
		vocab int
		shape Shape
	}{
		"no vocabulary": {0, Shape{Input: good, Output: good}},
		"no law":        {5, Shape{Input: good}},
		"min 0":         {5, Shape{Input: good, Output: Law{Median: 5, Max: 9}}},
		"max below min": {5, Shape{Input: good, Output: Law{Median: 5, Min: 5, Max: 4}}},
		"NaN":           {5, Shape{Input: Law{Median: math.NaN(), Min: 1, Max: 9}, Output: good}},
		"short context": {5, Shape{Input: good, Output: good, More: good, Context: 8}},
		"no more":       {5, Shape{Input: good, Output: good, Context: 80}},
	} {
		if _, err := NewDrawn(1, c.vocab, c.shape); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := ShapeOf("medium"); err == nil || err.Error() != `no workload "medium"; for drawn tokens there are light, heavy, multi-turn` {
		t.Errorf("error %v", err)
	}
}

func BenchmarkDrawn(b *testing.B) {
	for _, preset := range Shapes() {
		b.Run(preset, func(b *testing.B) {
			d, _ := drawn(b, 1, preset)
			tokens := 0
			b.ReportAllocs()
			for b.Loop() {
				task, _ := d.Next()
				tokens += len(task.Prompt)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
		})
	}
}

func ExampleParseArrivals() {
	a, err := ParseArrivals("uniform:4", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _ := a.Next()
	second, _ := a.Next()
	fmt.Println(first, second)
	// Output: 250ms 500ms
}
