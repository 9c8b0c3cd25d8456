package workload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// Law is how a number of tokens is drawn: log-normal, which is what measured
// lengths of prompts and answers look like (many short ones, a long tail),
// rounded and held between Min and Max.
type Law struct {
	Median   float64
	Sigma    float64 // of the logarithm
	Min, Max int
}

func (l *Law) check(what string) error {
	if !(l.Median > 0) || !(l.Sigma >= 0 && l.Sigma <= 5) || l.Min < 1 || l.Max < l.Min || l.Max > maxTraceTokens {
		return fmt.Errorf("%s %+v is no law of lengths: it takes a median above 0, sigma from 0 to 5 and 1 <= min <= max <= %d", what, *l, maxTraceTokens)
	}
	return nil
}

// draw uses the draws n and n+1 of the key.
func (l *Law) draw(key rng.Key, n int) int {
	x := l.Median * math.Exp(l.Sigma*normal(unit(key.Uint64(n)), unit(key.Uint64(n+1))))
	return int(math.Round(min(max(x, float64(l.Min)), float64(l.Max))))
}

// Shape is how long the requests of a workload without text are.
type Shape struct {
	Input  Law // prompt, or first prompt of a conversation
	Output Law // new tokens

	// With More a request has next turns: the prompt so far, the answer, and
	// more new input, for as long as that makes a prompt of at most Context.
	More    Law
	Context int // 0: no next turns
}

// Longest is the most positions that a request of this shape needs.
func (s *Shape) Longest() int { return max(s.Input.Max, s.Context) + s.Output.Max }

func (s *Shape) check() error {
	err := errors.Join(s.Input.check("input"), s.Output.check("output"))
	if s.Context == 0 {
		return err
	}
	if s.Context < s.Input.Max || s.Context > maxTraceTokens {
		err = errors.Join(err, fmt.Errorf("conversations up to %d tokens begin with up to %d and end at %d", s.Context, s.Input.Max, maxTraceTokens))
	}
	return errors.Join(err, s.More.check("more"))
}

// Drawn is an endless [Follower] of requests whose tokens are drawn and mean
// nothing: for clusters where no model computes. Task n and each turn of it is a
// function of the seed, n and the answers before, and of no other task.
type Drawn struct {
	seed  uint64
	vocab int
	shape Shape
	n     uint64
}

// NewDrawn returns requests of the given shape over a vocabulary of so many
// tokens.
func NewDrawn(seed uint64, vocab int, shape Shape) (*Drawn, error) {
	if err := errors.Join(checkVocab(vocab), shape.check()); err != nil {
		return nil, err
	}
	return &Drawn{seed: seed, vocab: vocab, shape: shape}, nil
}

func checkVocab(vocab int) error {
	if vocab < 1 || vocab > math.MaxInt32 {
		return fmt.Errorf("tokens of a vocabulary of %d cannot be drawn", vocab)
	}
	return nil
}

// The draws of a turn's lengths: two for each law.
const (
	drawInput  = 0
	drawOutput = 2
)

// Next implements [Source]; it never ends.
func (d *Drawn) Next() (Task, bool) {
	n := d.n
	d.n++
	key := d.lengths(n, 0)
	task := d.task(n, 0, nil, d.shape.Input.draw(key, drawInput), key)
	return task, true
}

// Follow implements [Follower].
func (d *Drawn) Follow(t Task, output []event.Token) (Task, bool) {
	n, err := strconv.ParseUint(t.Conversation, 10, 64)
	if err != nil || d.shape.Context == 0 {
		return Task{}, false
	}
	turn := t.Turn + 1
	key := d.lengths(n, turn)
	more := d.shape.More.draw(key, drawInput)
	if len(t.Prompt)+len(output)+more > d.shape.Context {
		return Task{}, false
	}
	before := make([]event.Token, 0, len(t.Prompt)+len(output)+more)
	return d.task(n, turn, append(append(before, t.Prompt...), output...), more, key), true
}

func (d *Drawn) lengths(n uint64, turn int) rng.Key {
	return rng.Key{Seed: d.seed, Req: n, Pos: turn, Purpose: rng.Length}
}

func (d *Drawn) task(n uint64, turn int, before []event.Token, more int, key rng.Key) Task {
	t := Task{
		ID:        strconv.FormatUint(n, 10),
		Prompt:    drawTokens(before, more, d.seed, n, turn, d.vocab),
		MaxTokens: d.shape.Output.draw(key, drawOutput),
	}
	t.Question = drawnQuestion(len(t.Prompt), t.MaxTokens)
	if d.shape.Context > 0 {
		t.Conversation, t.Turn = t.ID, turn
		t.ID = fmt.Sprintf("%d.%d", n, turn)
	}
	return t
}

func drawnQuestion(prompt, output int) string {
	return fmt.Sprintf("(%d drawn tokens; %d to write)", prompt, output)
}

// drawTokens appends so many tokens, uniform over the vocabulary: prompts of
// different tasks then share no beginning that a cache could use.
func drawTokens(to []event.Token, more int, seed, n uint64, turn, vocab int) []event.Token {
	key := rng.Key{Seed: seed, Req: n, Pos: turn, Purpose: rng.Prompt}
	for i := range more {
		token, _ := bits.Mul64(key.Uint64(i), uint64(vocab))
		to = append(to, event.Token(token))
	}
	return to
}

// TraceTasks is a [Source] of the requests of a [Trace] with lengths: drawn tokens,
// as many in and out as each arrival of the file says.
type TraceTasks struct {
	seed  uint64
	vocab int
	rows  []traceRow
	n     int
}

// NewTraceTasks returns the requests that belong to the arrivals of a trace.
func NewTraceTasks(t *Trace, seed uint64, vocab int) (*TraceTasks, error) {
	if err := checkVocab(vocab); err != nil {
		return nil, err
	}
	if !t.lengths {
		return nil, fmt.Errorf("%s says nothing of lengths; give it columns %s and %s, or another workload", t.name, traceColumns[columnPrompt][0], traceColumns[columnOutput][0])
	}
	return &TraceTasks{seed: seed, vocab: vocab, rows: t.rows}, nil
}

// Longest is the most positions that a request of the trace needs.
func (t *TraceTasks) Longest() int {
	most := 0
	for i := range t.rows {
		most = max(most, int(t.rows[i].prompt+t.rows[i].output))
	}
	return most
}

// Next implements [Source].
func (t *TraceTasks) Next() (Task, bool) {
	if t.n == len(t.rows) {
		return Task{}, false
	}
	row, n := t.rows[t.n], t.n
	t.n++
	prompt := drawTokens(make([]event.Token, 0, row.prompt), int(row.prompt), t.seed, uint64(n), 0, t.vocab)
	return Task{
		ID: strconv.Itoa(n), Question: drawnQuestion(len(prompt), int(row.output)),
		Prompt: prompt, MaxTokens: int(row.output),
	}, true
}
