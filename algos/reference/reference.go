package reference

import (
	"slices"

	"tokenrouter/runtime/event"
)

// Model is one language model. Next gives the candidate for position pos =
// len(tokens) of a request, with the signals of that step.
type Model interface {
	Next(tokens []event.Token, req event.ReqID, pos int) event.Output
}

// Score is a trained head's score of the candidate that model m has just made.
type Score func(m event.Peer, o event.Output) float64

// Run is one request over the models in order, small first.
type Run struct {
	Models    []Model
	Req       event.ReqID
	Prompt    []event.Token
	MaxTokens int // at most this many new tokens
	EOS       []event.Token
	Seed      uint64 // of the session: what a router draws depends on it
}

// Result is what was written: new tokens and who wrote each, in order, and the
// candidates that were not used. Where tokens are cut back, those that had been
// written come first, by position, then the candidate.
type Result struct {
	Tokens  []event.Token
	Writers []event.Peer
	Dropped []Dropped
}

// Dropped is a candidate that was discarded.
type Dropped struct {
	Pos   int
	Token event.Token
	Model event.Peer
}

// Writer collects a Result.
type Writer struct {
	run    Run
	held   []event.Token
	Result Result
}

// Begin starts a request.
func (r Run) Begin() *Writer { return &Writer{run: r, held: slices.Clone(r.Prompt)} }

// Pos is the position of the next token.
func (w *Writer) Pos() int { return len(w.held) }

// Tokens is the prompt and what has been written; it is valid until the next call.
func (w *Writer) Tokens() []event.Token { return w.held }

// Next asks model m for a candidate.
func (w *Writer) Next(m event.Peer) event.Output {
	return w.run.Models[m].Next(w.held, w.run.Req, len(w.held))
}

// Drop discards a candidate of model m.
func (w *Writer) Drop(m event.Peer, o event.Output) {
	w.Result.Dropped = append(w.Result.Dropped, Dropped{Pos: len(w.held), Token: o.Token, Model: m})
}

// Truncate discards a candidate of model m and every token from position pos on,
// which must lie behind the prompt.
func (w *Writer) Truncate(m event.Peer, o event.Output, pos int) {
	for i := pos - len(w.run.Prompt); i < len(w.Result.Tokens); i++ {
		w.Result.Dropped = append(w.Result.Dropped, Dropped{
			Pos: len(w.run.Prompt) + i, Token: w.Result.Tokens[i], Model: w.Result.Writers[i],
		})
	}
	w.Drop(m, o)
	keep := pos - len(w.run.Prompt)
	w.held, w.Result.Tokens, w.Result.Writers = w.held[:pos], w.Result.Tokens[:keep], w.Result.Writers[:keep]
}

// Last says whether committing a candidate would end the answer.
func (w *Writer) Last(o event.Output) bool {
	return len(w.Result.Tokens)+1 >= w.run.MaxTokens || slices.Contains(w.run.EOS, o.Token)
}

// Len is the number of new tokens.
func (w *Writer) Len() int { return len(w.Result.Tokens) }

// Append writes a token in the name of model m that need not be its candidate.
// It says whether the request goes on, as Commit does.
func (w *Writer) Append(m event.Peer, t event.Token) bool {
	return w.Commit(m, event.Output{Token: t})
}

// Commit appends a candidate of model m. It says whether the request goes on:
// not behind an EOS token, nor behind MaxTokens.
func (w *Writer) Commit(m event.Peer, o event.Output) bool {
	w.held = append(w.held, o.Token)
	w.Result.Tokens = append(w.Result.Tokens, o.Token)
	w.Result.Writers = append(w.Result.Writers, m)
	return len(w.Result.Tokens) < w.run.MaxTokens && !slices.Contains(w.run.EOS, o.Token)
}
