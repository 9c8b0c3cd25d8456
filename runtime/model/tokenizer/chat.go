package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tokenrouter/runtime/model/tokenizer/template"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

// ChatOptions are what a chat template may be told beside the messages.
type ChatOptions struct {
	NoPrompt bool      // leave out the beginning of the assistant's answer
	Thinking *bool     // enable_thinking; nil leaves the template its default
	Date     time.Time // today, for templates that ask; zero: their own default, so that equal messages give equal prompts
}

// Template is the checkpoint's chat template, "" where it has none.
func (t *Tokenizer) Template() string { return t.source }

// SetTemplate replaces the chat template; newer checkpoints keep it in a file
// chat_template.jinja beside the tokenizer. It is to be called before the
// tokenizer is shared. A template that cannot be used is an error here and of
// every EncodeChat, until another one is set.
func (t *Tokenizer) SetTemplate(source string) error {
	t.source, t.chat, t.chatErr = source, nil, nil
	if source != "" {
		t.chat, t.chatErr = template.Parse(source)
	}
	return t.chatErr
}

// EncodeChat writes a conversation in the form of the checkpoint's chat
// template, ready for the assistant to answer. There is exactly one BOS where
// the template or the tokenizer asks for one (case H4).
//
// What a user or the system says is text: only the template writes special
// tokens (case A14). In an assistant's message marks that are text to the
// model, such as <think>, become their tokens, since the model wrote them so.
//
// Errors are those of the messages, and those of the template with its line.
func (t *Tokenizer) EncodeChat(msgs []Message) ([]int32, error) {
	return t.EncodeChatWith(msgs, ChatOptions{})
}

// EncodeChatWith is EncodeChat with options.
func (t *Tokenizer) EncodeChatWith(msgs []Message, o ChatOptions) ([]int32, error) {
	switch {
	case t.chatErr != nil:
		return nil, t.chatErr
	case t.chat == nil:
		return nil, errors.New("the checkpoint has no chat template: use a chat model, or send a plain prompt")
	case len(msgs) == 0:
		return nil, errors.New("messages is empty: a conversation needs at least one message")
	}
	for i, m := range msgs {
		if m.Role != "system" && m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("messages[%d].role is %q: use system, user or assistant", i, m.Role)
		}
	}
	guard, err := t.guard(msgs)
	if err != nil {
		return nil, err
	}
	vars := template.Vars{NoPrompt: o.NoPrompt, Thinking: o.Thinking, Date: o.Date}
	if t.bos >= 0 {
		vars.BOS = string(t.Bytes(t.bos))
	}
	if t.eos >= 0 {
		vars.EOS = string(t.Bytes(t.eos))
	}
	for _, m := range msgs {
		vars.Messages = append(vars.Messages, template.Message{Role: m.Role, Content: t.shield(m.Content, guard, m.Role == "assistant")})
	}
	text, err := t.chat.Render(vars)
	if err != nil {
		return nil, err
	}
	return t.oneBOS(t.encodeRendered(text, guard)), nil
}

// encodeRendered encodes what a template gave: added tokens, and text between
// them that the guard is taken out of.
func (t *Tokenizer) encodeRendered(text, guard string) []int32 {
	var out []int32
	for text != "" {
		from, to, id := t.finder.next(text)
		out = t.encode(out, strings.ReplaceAll(text[:from], guard, ""))
		if id >= 0 {
			out = append(out, id)
		}
		text = text[to:]
	}
	return out
}

// oneBOS sees to it that a sequence begins with one BOS where it should, and
// never with two.
func (t *Tokenizer) oneBOS(ids []int32) []int32 {
	if t.bos < 0 {
		return ids
	}
	for len(ids) > 1 && ids[0] == t.bos && ids[1] == t.bos {
		ids = ids[1:]
	}
	if t.addBOS && (len(ids) == 0 || ids[0] != t.bos) {
		return slices.Insert(ids, 0, t.bos)
	}
	return ids
}

// guard picks a character for private use that neither a message nor the
// template contains.
func (t *Tokenizer) guard(msgs []Message) (string, error) {
	used := map[rune]bool{}
	private := func(r rune) bool { return r >= 0xe000 && r <= 0xf8ff || r >= 0xf0000 }
	note := func(s string) {
		for _, r := range s {
			if private(r) {
				used[r] = true
			}
		}
	}
	note(t.source)
	for text := range t.added {
		note(text)
	}
	for _, m := range msgs {
		note(m.Content)
	}
	for r := rune(0xe000); r <= utf8.MaxRune; r++ {
		if private(r) && !used[r] {
			return string(r), nil
		}
	}
	return "", errors.New("the messages contain every character for private use: one must be left")
}

// shield makes sure that no added token in the rendered text begins or ends in
// content: the guard stands after each character that an added token begins
// with and before each that one ends with. A mark's inner edge, like the bar of
// <|x|>, counts too, so that brackets of the template around a content make
// none. Where marked, visible added tokens are left whole.
func (t *Tokenizer) shield(content, guard string, marked bool) string {
	edges := t.finder.firsts + t.finder.lasts
	var b strings.Builder
	for {
		at := strings.IndexAny(content, edges)
		if at < 0 {
			if b.Len() == 0 {
				return content
			}
			b.WriteString(content)
			return b.String()
		}
		b.WriteString(content[:at])
		content = content[at:]
		n, id := 0, int32(-1)
		if marked {
			n, id = t.finder.prefix(content)
		}
		if id >= 0 && !t.special[id] {
			b.WriteString(content[:n])
		} else {
			var r rune
			r, n = utf8.DecodeRuneInString(content)
			if strings.ContainsRune(t.finder.lasts, r) {
				b.WriteString(guard)
			}
			b.WriteString(content[:n])
			if strings.ContainsRune(t.finder.firsts, r) {
				b.WriteString(guard)
			}
		}
		content = content[n:]
	}
}
