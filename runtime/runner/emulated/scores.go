package emulated

import (
	"fmt"
	"math/bits"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
)

// HeadOf names the head whose scores a router's decisions were made with, by the
// hash of the router; "" where that is not known. A record keeps the score of a row,
// not whose it is.
type HeadOf func(router string) string

// pool is a kind of rows with a score: of a model and a head, and whether they end a
// text. Heads are often sure at the end of one, whatever they say before.
type pool struct {
	model int
	head  int16
	ends  bool
}

// score is that of a recorded decision with the number of its head.
func (r *reader) score(row *event.RowResult) (score float32, head int16) {
	if !row.Scored || r.headOf == nil {
		return 0, 0
	}
	name := r.headOf(row.Router)
	if name == "" {
		return 0, 0
	}
	i := slices.Index(r.heads, name)
	if i < 0 {
		i = len(r.heads)
		r.heads = append(r.heads, name)
	}
	return row.Score, int16(i + 1)
}

// pool collects the scores of a model's rows.
func (r *Recording) pool(model int) {
	for i := range r.models[model] {
		if s := &r.models[model][i]; s.head != 0 {
			k := r.kind(model, s.head, s)
			r.scores[k] = append(r.scores[k], s.score)
		}
	}
}

func (r *Recording) kind(model int, head int16, s *said) pool {
	return pool{model, head, slices.Contains(r.eos, s.token)}
}

// Heads are those with a score, in the order they were first asked.
func (r *Recording) Heads() []string { return slices.Clone(r.heads) }

// Scores is how many rows of a model have a score of a head.
func (r *Recording) Scores(model int, head string) int {
	h := r.number(head)
	return len(r.scores[pool{model, h, false}]) + len(r.scores[pool{model, h, true}])
}

// number is how rows name a head, -1 where none has a score of it.
func (r *Recording) number(head string) int16 {
	if i := slices.Index(r.heads, head); i >= 0 {
		return int16(i + 1)
	}
	return -1
}

// drawScore is the stream of scores of what a head was not asked about.
const drawScore = rng.Law + 4

// Score is what a head said of a model's answer for a request and position: of the
// recorded one, or of the row that was drawn in its place. Where the head was not
// asked about that, it is its score of another row of the model which ends a text, or
// does not, like this one.
func (r *Recording) Score(model int, head string, id event.ReqID, pos int) (float64, error) {
	h := r.number(head)
	if h < 0 || model < 0 || model >= len(r.models) {
		return 0, fmt.Errorf("the recording has no score of the head %q at model %d", head, model)
	}
	s := r.find(model, id, pos)
	drawn := s == nil
	if drawn { // and counted, when it was the answer
		if s = r.instead(model, id, pos); s == nil {
			return 0, fmt.Errorf("request %d at position %d: the recording has no answer of model %d for it", id, pos, model)
		}
	}
	if s.head == h {
		return float64(s.score), nil
	}
	k := r.kind(model, h, s)
	if len(r.scores[k]) == 0 {
		k.ends = !k.ends
	}
	scores := r.scores[k]
	if len(scores) == 0 {
		return 0, fmt.Errorf("the recording has no score of the head %q at model %d", head, model)
	}
	if !drawn {
		r.missing.Add(1)
	}
	key := rng.Key{Seed: r.seed, Req: uint64(id), Pos: pos, Model: model, Purpose: drawScore}
	at, _ := bits.Mul64(key.Uint64(int(h)), uint64(len(scores)))
	return float64(scores[at]), nil
}
