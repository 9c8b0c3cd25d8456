package template

import (
	"errors"
	"fmt"
	"time"

	"github.com/nikolalohinski/gonja/v2/nodes"
)

// Template is a parsed chat template; it is safe for concurrent use.
type Template struct{ root *nodes.Template }

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Vars are the variables of a rendering.
type Vars struct {
	Messages []Message
	BOS, EOS string    // bos_token and eos_token; "" leaves them empty
	NoPrompt bool      // add_generation_prompt is false
	Thinking *bool     // enable_thinking; nil leaves it undefined
	Date     time.Time // what strftime_now tells; zero leaves it undefined
}

// Parse reads a template. Errors name the line.
func Parse(source string) (*Template, error) {
	root, err := parse(source)
	if err == nil {
		err = check(root)
	}
	if err != nil {
		return nil, fmt.Errorf("the chat template cannot be used: %w", err)
	}
	return &Template{root}, nil
}

// The budget of a rendering: what any template may use, and what it may use
// for each message and each byte of them. Published templates need below 200
// steps a message and below 20 bytes a byte.
const (
	baseSteps    = 1 << 20
	messageSteps = 1 << 12
	baseBytes    = 4 << 20
	eachByte     = 64
	valueSize    = 16 // bytes that an element of a list is paid as
	maxCalls     = 32 // macros that call one another
)

// ErrBudget is returned, with the line, by a rendering that would do too much.
var ErrBudget = errors.New("the template does more work than any known one: it is stopped")

// Render gives the text. Errors are those that the template raises, those in
// it, and ErrBudget; all name the line.
func (t *Template) Render(v Vars) (text string, err error) {
	s := &state{steps: baseSteps + messageSteps*len(v.Messages), bytes: baseBytes}
	for _, m := range v.Messages {
		s.bytes += eachByte * (len(m.Content) + len(m.Role))
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		f, ok := p.(fault)
		if !ok {
			// A fault of this package shall not take the session with it.
			f = fault{fmt.Errorf("internal fault: %v", p)}
		}
		text, err = "", fmt.Errorf("chat template, line %d: %w", s.line, f.error)
	}()
	s.globals(v)
	s.run(t.root.Nodes)
	return s.out.String(), nil
}
