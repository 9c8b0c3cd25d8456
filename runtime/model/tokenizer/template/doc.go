// Package template renders chat templates, the Jinja programs that checkpoints
// carry. A template comes from a file that somebody else wrote, so it is
// hostile until shown otherwise.
//
// Lexer and parser are those of github.com/nikolalohinski/gonja; the evaluator
// is this package's own, because gonja's cannot be bounded: its range is a
// goroutine on a channel, strings double as often as a loop says, macros call
// themselves until the stack ends the process, and any method of a Go value can
// be called.
//
// Invariant: Render ends. Each node that is evaluated and each byte that is
// made or looked at is paid for from a budget in proportion to the messages;
// nesting is bounded; there is no access to files, time or anything else
// outside the variables. Equal variables give equal text.
//
// The dialect is that of transformers' apply_chat_template: trim_blocks and
// lstrip_blocks on, break and continue, raise_exception, namespace, tojson with
// the separators of Python; values are immutable but for namespaces. Tools are
// left out. What is not known (a tag, a filter, a test) is refused by Parse,
// by name, an unknown method when it is called.
//
// Read template.go first, then exec.go and eval.go.
package template
