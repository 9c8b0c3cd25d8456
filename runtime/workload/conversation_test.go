package workload

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every turn is a sound problem of the size asked for, and the story of the turn
// before with one more sentence.
func TestConversations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size{Min: rapid.IntRange(1, 8).Draw(t, "min")}
		size.Max = size.Min + rapid.IntRange(2, 8).Draw(t, "more")
		c, err := NewConversations(rapid.Uint64().Draw(t, "seed"), size)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			first, ok := c.Next()
			turns := c.tell(uint64(n))
			if !ok || len(turns) < 2 {
				t.Fatalf("conversation %d has %d turns", n, len(turns))
			}
			if e := turns[0].Equations; e < size.Min || e > size.Min+1 {
				t.Fatalf("the first turn has %d equations, want %d or one more", e, size.Min)
			}
			if e := turns[len(turns)-1].Equations; e != size.Max {
				t.Fatalf("the last turn has %d equations, want %d", e, size.Max)
			}
			task := first
			for k, p := range turns {
				checkThought(t, p)
				if task.Question != p.Question || task.Answer != p.Answer || !task.HasAnswer || task.ID != fmt.Sprintf("%d.%d", n, k) || task.Turn != k {
					t.Fatalf("turn %d is %+v, want %+v", k, task, p)
				}
				if k > 0 {
					added, found := strings.CutPrefix(told(p.Question), told(turns[k-1].Question))
					if !found || strings.Count(added, ".") != 1 {
						t.Fatalf("turn %d asks %q after %q", k, p.Question, turns[k-1].Question)
					}
				}
				var more bool
				if task, more = c.Follow(task, nil); more != (k < len(turns)-1) {
					t.Fatalf("turn %d of %d: more is %v", k, len(turns), more)
				}
			}
		}
	})
}

// told is a question without its last sentence, which asks.
func told(question string) string { return question[:strings.LastIndex(question, " How many")] }

func TestNewConversationsRefuses(t *testing.T) {
	for _, size := range []Size{{3, 4}, {0, 5}, {4, 3}, {60, 70}} {
		if _, err := NewConversations(1, size); err == nil {
			t.Errorf("size %+v was accepted", size)
		}
	}
	if _, ok := new(Conversations).Follow(Task{Conversation: "first"}, nil); ok {
		t.Error("a task without a conversation was followed")
	}
}

func TestPresets(t *testing.T) {
	for name, size := range map[string]Size{PresetLight: Light, PresetHeavy: Heavy} {
		s, err := NewPreset(name, otherSeed)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := s.Next()
		if want := generator(t, otherSeed, size).Problem(); got.Question != want.Question {
			t.Errorf("%s begins with %q, want %q", name, got.Question, want.Question)
		}
	}
	if s, err := NewPreset(PresetMultiTurn, 1); err != nil {
		t.Error(err)
	} else if _, ok := s.(Follower); !ok {
		t.Errorf("%s has no next turns", PresetMultiTurn)
	}
	if _, err := NewPreset("", 1); err == nil {
		t.Error("a preset without a name was given")
	}
}
