package workload_test

import (
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/workload"
)

// The prompts of every preset fit the embedded models with the answers that they
// were trained to give, and those of a conversation share all tokens of the
// story.
func TestPromptsFitEmbeddedModels(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	encode := func(messages ...tokenizer.Message) []event.Token {
		ids, err := m.Tokenizer.EncodeChat(messages)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	user := func(q string) tokenizer.Message { return tokenizer.Message{Role: "user", Content: q} }
	// A conversation ends with a problem of the size of light.
	for name, size := range map[string]workload.Size{"light and multi-turn": workload.Light, "heavy": workload.Heavy} {
		g, err := workload.NewGenerator(20, size)
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for range 2000 {
			p := g.Problem()
			most = max(most, len(encode(user(p.Question), tokenizer.Message{
				Role: "assistant", Content: "<think>\n" + p.Thought + "</think>\n\n" + p.Answer,
			})))
		}
		if most > m.Config.MaxPos {
			t.Errorf("%s: %d tokens do not fit %d positions", name, most, m.Config.MaxPos)
		}
		t.Logf("%s: prompt and answer take up to %d of %d positions", name, most, m.Config.MaxPos)
	}
	c, err := workload.NewConversations(20, workload.Light)
	if err != nil {
		t.Fatal(err)
	}
	ask := len(encode(user("How many coins does Mia have now?")))
	for range 400 {
		task, _ := c.Next()
		for next, more := c.Follow(task, nil); more; next, more = c.Follow(task, nil) {
			before := encode(user(task.Question))
			if shared := common(before, encode(user(next.Question))); shared < len(before)-ask {
				t.Fatalf("turns share %d of %d tokens:\n%s\n%s", shared, len(before), task.Question, next.Question)
			}
			task = next
		}
	}
}

func common(a, b []event.Token) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// The embedded tokenizer has few words, so the families are worded from them:
// prompts stay near 80 tokens, and answers below the 160 that a run allows unless
// told otherwise.
func TestFamiliesAreShort(t *testing.T) {
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range workload.Families() {
		g, err := workload.NewFamily(name, 20)
		if err != nil {
			t.Fatal(err)
		}
		mostIn, mostOut := 0, 0
		for range 800 {
			p := g.Problem()
			user := tokenizer.Message{Role: "user", Content: p.Question}
			in, err := m.Tokenizer.EncodeChat([]tokenizer.Message{user})
			if err != nil {
				t.Fatal(err)
			}
			all, err := m.Tokenizer.EncodeChat([]tokenizer.Message{user, {
				Role: "assistant", Content: "<think>\n" + p.Thought + "</think>\n\n" + p.Answer,
			}})
			if err != nil {
				t.Fatal(err)
			}
			mostIn, mostOut = max(mostIn, len(in)), max(mostOut, len(all)-len(in))
		}
		if mostIn > 90 || mostOut > 145 || mostIn+mostOut > 220 {
			t.Errorf("%s: prompts take up to %d tokens and answers up to %d", name, mostIn, mostOut)
		}
		t.Logf("%s: prompts up to %d tokens, answers up to %d", name, mostIn, mostOut)
	}
}
