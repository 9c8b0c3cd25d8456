package workload

import (
	"fmt"
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
	Answer    string // a number from 0 to 999
	Equations int
}

// Generator is an endless [Source] of problems.
type Generator struct {
	rand splitMix
	size Size
	n    int
}

// NewGenerator returns the stream of problems of one seed and size.
func NewGenerator(seed uint64, size Size) (*Generator, error) {
	if size.Min < 1 || size.Max < size.Min || size.Max > maxEquations {
		return nil, fmt.Errorf("problems of %d to %d equations cannot be made: give 1 <= min <= max <= %d", size.Min, size.Max, maxEquations)
	}
	return &Generator{rand: splitMix{seed}, size: size}, nil
}

// Next implements [Source]; it never ends.
func (g *Generator) Next() (Task, bool) {
	p := g.Problem()
	return Task{ID: p.ID, Question: p.Question, Answer: p.Answer, HasAnswer: true}, true
}

var (
	names = [...]string{"Mia", "Leo", "Ana", "Tom", "Eva", "Sam", "Zoe", "Max"}
	items = [...]string{"coins", "cards", "shells", "beads", "stamps", "apples"}
)

// Problem returns the next problem of the stream.
func (g *Generator) Problem() Problem {
	r := &g.rand
	s, item := begin(r)
	s.want = r.between(g.size.Min, g.size.Max)
	for s.done < s.want {
		s.step(r, s.someoneElse(r))
	}
	p := s.problem(item)
	p.ID = strconv.Itoa(g.n)
	g.n++
	return p
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

// story is a problem being told.
type story struct {
	question, thought []byte
	owner             string
	total             int // what the owner has now
	want, done        int // equations
}

func (s *story) ask(format string, args ...any) {
	s.question = fmt.Appendf(s.question, format, args...)
}

func (s *story) think(format string, args ...any) {
	s.thought = fmt.Appendf(s.thought, format, args...)
}

// problem is the story so far with the question behind it.
func (s *story) problem(item string) Problem {
	return Problem{
		Question: fmt.Sprintf("%s How many %s does %s have now?", s.question, item, s.owner),
		Thought:  fmt.Sprintf("%sThe answer is %d.\n", s.thought, s.total),
		Answer:   strconv.Itoa(s.total), Equations: s.done,
	}
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
