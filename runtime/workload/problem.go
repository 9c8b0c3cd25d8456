package workload

import (
	"fmt"
	"slices"
	"strconv"
)

// EvaluationSeed gives the problems that models are judged by, and nothing else:
// they are trained on seeds below 300, and routers are tuned on any other.
const EvaluationSeed uint64 = 999001

// Size bounds the number of equations in a problem, both ends included.
type Size struct{ Min, Max int }

// The two sizes in use.
var (
	Light = Size{Min: 3, Max: 6}  // what the embedded models are trained on
	Heavy = Size{Min: 8, Max: 12} // longer chains of thought
)

const (
	maxEquations = 64  // keeps a question far below any context length
	maxNumber    = 999 // largest amount in a problem
)

// Problem is a word problem with its chain of thought.
type Problem struct {
	ID        string // number of the problem in its stream, from 0
	Question  string
	Thought   string // one line for each sentence of the question, the last gives the answer
	Answer    string // of a story a number from 0 to 999
	Equations int    // or other steps of the thought, where a family has no equations
	Form      string // as of [Task]
	Family    string // as [NewFamily] calls it; empty from [NewGenerator]
}

// Generator is an endless [Source] of problems: of one kind, or of several by
// turns.
type Generator struct {
	streams []stream // by turns
	n       int
}

// stream is the problems of one kind.
type stream struct {
	family string
	rand   splitMix
	tell   func(r *splitMix) Problem
}

// NewGenerator returns the stream of problems of one seed and size.
func NewGenerator(seed uint64, size Size) (*Generator, error) {
	if size.Min < 1 || size.Max < size.Min || size.Max > maxEquations {
		return nil, fmt.Errorf("problems of %d to %d equations cannot be made: give 1 <= min <= max <= %d", size.Min, size.Max, maxEquations)
	}
	return &Generator{streams: []stream{storyStream(seed, size)}}, nil
}

func storyStream(seed uint64, size Size) stream {
	return stream{rand: splitMix{seed}, tell: size.story}
}

// Next implements [Source]; it never ends.
func (g *Generator) Next() (Task, bool) {
	p := g.Problem()
	return Task{ID: p.ID, Question: p.Question, Answer: p.Answer, HasAnswer: true, Form: p.Form, Family: p.Family}, true
}

var (
	names = [...]string{"Mia", "Leo", "Ana", "Tom", "Eva", "Sam", "Zoe", "Max"}
	items = [...]string{"coins", "cards", "shells", "beads", "stamps", "apples"}
)

// Problem returns the next problem of the stream.
func (g *Generator) Problem() Problem {
	s := &g.streams[g.n%len(g.streams)]
	p := s.tell(&s.rand)
	p.ID, p.Family = strconv.Itoa(g.n), s.family
	g.n++
	return p
}

func (size Size) story(r *splitMix) Problem {
	s, item := begin(r)
	s.want = r.between(size.Min, size.Max)
	for s.done < s.want {
		s.step(r, s.someoneElse(r))
	}
	return s.problem(item)
}

// begin tells the first sentence.
func begin(r *splitMix) (s story, item string) {
	s = story{owner: names[r.below(len(names))]}
	item = items[r.below(len(items))]
	s.total = r.between(10, 99)
	s.ask("%s has %d %s.", s.owner, s.total, item)
	s.think("Start with %d.\n", s.total)
	return s, item
}

// telling is a problem being told, of any family.
type telling struct {
	question, thought []byte
	done              int    // equations or other steps
	form              string // of the answer
}

func (t *telling) ask(format string, args ...any) {
	t.question = fmt.Appendf(t.question, format, args...)
}

func (t *telling) think(format string, args ...any) {
	t.thought = fmt.Appendf(t.thought, format, args...)
}

// problem is what was told so far, with an answer.
func (t *telling) problem(answer string) Problem {
	return Problem{
		Question: string(t.question),
		Thought:  fmt.Sprintf("%sThe answer is %s.\n", t.thought, answer),
		Answer:   answer, Equations: t.done, Form: t.form,
	}
}

// story is a problem about what one person has.
type story struct {
	telling
	owner string
	total int // what the owner has now
	want  int // equations
}

// problem is the story so far with the question behind it.
func (s *story) problem(item string) Problem {
	t := telling{question: slices.Clone(s.question), thought: s.thought, done: s.done} // the story may go on
	t.ask(" How many %s does %s have now?", item, s.owner)
	return t.problem(strconv.Itoa(s.total))
}

// someoneElse is not the owner.
func (s *story) someoneElse(r *splitMix) string {
	for {
		if other := names[r.below(len(names))]; other != s.owner {
			return other
		}
	}
}

// step tries one sentence. It may add none, when the numbers drawn do not
// fit; the draws are spent all the same.
func (s *story) step(r *splitMix, other string) {
	switch kind := r.below(10); {
	case kind < 3:
		s.gain(r, other)
	case kind < 6:
		s.lose(r, other)
	case kind < 8:
		s.gainProduct(r)
	case kind < 9:
		s.loseProduct(r)
	case r.below(2) == 0:
		s.double()
	default:
		s.halve(other)
	}
}

func (s *story) gain(r *splitMix, other string) {
	a := r.between(11, 99)
	sum := s.total + a
	if sum > maxNumber {
		return
	}
	switch r.below(3) {
	case 0:
		s.ask(" %s finds %d more.", s.owner, a)
		s.think("Finds %d more: %d+%d=%d.\n", a, s.total, a, sum)
	case 1:
		s.ask(" %s gives %s %d.", other, s.owner, a)
		s.think("%s gives %d: %d+%d=%d.\n", other, a, s.total, a, sum)
	default:
		s.ask(" %s buys %d more.", s.owner, a)
		s.think("Buys %d more: %d+%d=%d.\n", a, s.total, a, sum)
	}
	s.becomes(sum, 1)
}

func (s *story) lose(r *splitMix, other string) {
	if s.total < 12 {
		return
	}
	a := r.between(11, min(99, s.total))
	rest := s.total - a
	switch r.below(3) {
	case 0:
		s.ask(" %s loses %d.", s.owner, a)
		s.think("Loses %d: %d-%d=%d.\n", a, s.total, a, rest)
	case 1:
		s.ask(" %s gives %d to %s.", s.owner, a, other)
		s.think("Gives %d to %s: %d-%d=%d.\n", a, other, s.total, a, rest)
	default:
		s.ask(" %s sells %d.", s.owner, a)
		s.think("Sells %d: %d-%d=%d.\n", a, s.total, a, rest)
	}
	s.becomes(rest, 1)
}

func (s *story) gainProduct(r *splitMix) {
	if s.want-s.done < 2 {
		return
	}
	k, b := r.between(3, 9), r.between(12, 29)
	sum := s.total + k*b
	if sum > maxNumber {
		return
	}
	if r.below(2) == 0 {
		s.ask(" %s opens %d boxes of %d.", s.owner, k, b)
		s.think("Opens %d boxes of %d: ", k, b)
	} else {
		s.ask(" %d friends give %s %d each.", k, s.owner, b)
		s.think("%d friends give %d each: ", k, b)
	}
	s.think("%d*%d=%d, %d+%d=%d.\n", k, b, k*b, s.total, k*b, sum)
	s.becomes(sum, 2)
}

func (s *story) loseProduct(r *splitMix) {
	if s.want-s.done < 2 {
		return
	}
	k, b := r.between(3, 9), r.between(12, 29)
	rest := s.total - k*b
	if rest < 0 {
		return
	}
	s.ask(" %s fills %d bags with %d each and sells them.", s.owner, k, b)
	s.think("Fills %d bags with %d each: %d*%d=%d, %d-%d=%d.\n", k, b, k, b, k*b, s.total, k*b, rest)
	s.becomes(rest, 2)
}

func (s *story) double() {
	if s.total*2 > maxNumber || s.total == 0 {
		return
	}
	s.ask(" %s doubles the pile.", s.owner)
	s.think("Doubles: %d*2=%d.\n", s.total, s.total*2)
	s.becomes(s.total*2, 1)
}

func (s *story) halve(other string) {
	if s.total%2 != 0 || s.total < 20 {
		return
	}
	s.ask(" %s gives half to %s.", s.owner, other)
	s.think("Gives half: %d/2=%d.\n", s.total, s.total/2)
	s.becomes(s.total/2, 1)
}

func (s *story) becomes(total, equations int) {
	s.total = total
	s.done += equations
}
