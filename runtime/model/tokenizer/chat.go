package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// The marks of ChatML.
const (
	imStart = "<|im_start|>"
	imEnd   = "<|im_end|>"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

// EncodeChat writes a conversation as ChatML, ready for the assistant to
// answer: each message as <|im_start|>role\ncontent<|im_end|>\n, then
// <|im_start|>assistant\n. In an assistant's message marks that are text to
// the model, such as <think>, become their tokens, since the model wrote them
// so; everything else in a message is encoded as Encode does.
func (t *Tokenizer) EncodeChat(msgs []Message) ([]int32, error) {
	start, ok1 := t.added[imStart]
	end, ok2 := t.added[imEnd]
	if !t.chat || !ok1 || !ok2 {
		return nil, errors.New("the model's chat template is not ChatML: use a Qwen3 chat model, or send a plain prompt")
	}
	if len(msgs) == 0 {
		return nil, errors.New("messages is empty: a conversation needs at least one message")
	}
	var out []int32
	for i, m := range msgs {
		out = append(out, start)
		switch m.Role {
		case "system", "user":
			out = t.encode(out, m.Role+"\n"+m.Content)
		case "assistant":
			out = t.encodeMarked(out, m.Role+"\n"+m.Content)
		default:
			return nil, fmt.Errorf("messages[%d].role is %q: use system, user or assistant", i, m.Role)
		}
		out = append(out, end)
		out = t.encode(out, "\n")
	}
	out = append(out, start)
	return t.encode(out, "assistant\n"), nil
}

// encodeMarked encodes text with the visible added tokens recognised, the
// leftmost first and the longest where two begin together.
func (t *Tokenizer) encodeMarked(out []int32, text string) []int32 {
	found := make([]int, len(t.visible)) // where each mark is next; len(text) if nowhere
	for i := range found {
		found[i] = -1
	}
	for from := 0; ; {
		at, mark := len(text), ""
		for i, v := range t.visible {
			if found[i] < from {
				found[i] = len(text)
				if n := strings.Index(text[from:], v); n >= 0 {
					found[i] = from + n
				}
			}
			if found[i] < at || found[i] == at && at < len(text) && len(v) > len(mark) {
				at, mark = found[i], v
			}
		}
		out = t.encode(out, text[from:at])
		if mark == "" {
			return out
		}
		out = append(out, t.added[mark])
		from = at + len(mark)
	}
}
