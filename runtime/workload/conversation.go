package workload

import (
	"fmt"
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// Conversations is an endless [Follower] of stories to which each turn adds a
// sentence and asks again: turn k+1 is the whole story of turn k, one fact more,
// and the question at its end. So prompts grow over a common beginning, and each
// turn is a problem like those of a [Generator], with an answer of its own that
// does not rest on what was answered before.
//
// Conversation n is a function of the seed and n.
type Conversations struct {
	seed uint64
	size Size
	n    uint64
}

// NewConversations returns conversations whose first turn has size.Min equations,
// or one more where a sentence has two, and whose last has size.Max.
func NewConversations(seed uint64, size Size) (*Conversations, error) {
	if size.Max < size.Min+2 {
		return nil, fmt.Errorf("a conversation from %d to %d equations has no room for a second turn; give at least two more", size.Min, size.Max)
	}
	if _, err := NewGenerator(seed, size); err != nil {
		return nil, err
	}
	return &Conversations{seed: seed, size: size}, nil
}

// Next implements [Source]; it never ends.
func (c *Conversations) Next() (Task, bool) {
	n := c.n
	c.n++
	return c.turn(n, 0)
}

// Follow implements [Follower]. What was answered does not matter.
func (c *Conversations) Follow(t Task, _ []event.Token) (Task, bool) {
	n, err := strconv.ParseUint(t.Conversation, 10, 64)
	if err != nil {
		return Task{}, false
	}
	return c.turn(n, t.Turn+1)
}

func (c *Conversations) turn(n uint64, turn int) (Task, bool) {
	turns := c.tell(n)
	if turn >= len(turns) {
		return Task{}, false
	}
	p := &turns[turn]
	return Task{
		ID: fmt.Sprintf("%d.%d", n, turn), Question: p.Question, Answer: p.Answer, HasAnswer: true,
		Conversation: strconv.FormatUint(n, 10), Turn: turn,
	}, true
}

// tell tells story n and gives it as it stands after each sentence from the one
// that completes the first turn on.
func (c *Conversations) tell(n uint64) []Problem {
	r := &splitMix{rng.Key{Seed: c.seed, Req: n, Purpose: rng.Workload}.Uint64(0)}
	s, item := begin(r)
	s.want = c.size.Max
	var turns []Problem
	for s.done < s.want {
		before := s.done
		s.step(r, s.someoneElse(r))
		if s.done > before && s.done >= c.size.Min {
			turns = append(turns, s.problem(item))
		}
	}
	return turns
}
