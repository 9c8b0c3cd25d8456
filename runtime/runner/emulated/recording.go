package emulated

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/tape"
)

// MaxRows is how many rows of a session a Recording keeps. One takes 88 bytes,
// so all take 185 MB, and up to twice that while they are read.
const MaxRows = 1 << 21

// Recording repeats what the models of a session said, by request, position and
// model, and what its heads said of that. Where a model was never asked (another
// router, another batching policy after a cancel) one of its other rows is drawn, and
// counted; a text whose recorded end is reached that way ends there.
type Recording struct {
	seed    uint64
	models  [][]said               // by request and position
	begin   []map[event.ReqID]int  // where a request's rows begin
	eos     []event.Token          // that end texts in this session
	ends    map[event.ReqID]ending // of texts that a model ended
	heads   []string               // with a score; said.head counts them from 1
	scores  map[pool][]float32     // by request and position
	leftOut uint64
	missing atomic.Uint64
}

// said is one row.
type said struct {
	req                                  event.ReqID
	pos                                  int32
	token                                event.Token
	entropy, norm, top1, top2, logsumexp float32
	score                                float32 // of head
	head                                 int16   // 0: none that is known
	listed                               int16
	top                                  [topN]event.TokenProb
}

// ending is where a text ended, and by which token.
type ending struct {
	pos   int
	token event.Token
}

// NewRecording reads the records of a session of a number of models. Seed is for
// what has to be drawn, head for whose scores are recorded; nil keeps no scores.
func NewRecording(records iter.Seq2[tape.Record, error], models int, seed uint64, head HeadOf) (*Recording, error) {
	r := &Recording{
		seed: seed, models: make([][]said, models), begin: make([]map[event.ReqID]int, models),
		ends: map[event.ReqID]ending{}, scores: map[pool][]float32{},
	}
	read := reader{Recording: r, headOf: head, running: make([]*event.Batch, models), length: map[event.ReqID]int{}}
	for rec, err := range records {
		if err == nil {
			err = read.record(&rec)
		}
		if err != nil {
			return nil, err
		}
	}
	if read.rows == 0 {
		return nil, errors.New("the session has no row of a model that could be repeated")
	}
	for m := range r.models {
		r.sort(m)
		r.pool(m)
	}
	for id, n := range read.length {
		r.end(id, n-1)
	}
	return r, nil
}

// reader pairs the batches of a session with what came of them.
type reader struct {
	*Recording
	headOf  HeadOf
	running []*event.Batch
	length  map[event.ReqID]int // of texts that ended with a stop
	rows    int
}

func (r *reader) record(rec *tape.Record) error {
	known := rec.Core >= 0 && int(rec.Core) < len(r.models)
	switch {
	case rec.Event == nil && rec.Command == nil:
	case !known:
		return fmt.Errorf("record %d is of subserver %d, the recording of %d models", rec.Seq, rec.Core, len(r.models))
	case rec.Event != nil:
		switch ev := rec.Event; ev.Kind {
		case event.Arrive:
			for _, id := range ev.Arrival.EOS {
				if !slices.Contains(r.eos, id) {
					r.eos = append(r.eos, id)
				}
			}
		case event.StepDone:
			return r.step(rec)
		}
	case rec.Command.Kind == event.RunBatch:
		r.running[rec.Core] = rec.Command.Batch
	case rec.Command.Kind == event.Finish && rec.Command.Reason == event.ReasonStop:
		r.length[rec.Command.Req] = rec.Command.N
	}
	return nil
}

// step takes the rows of a step that ended. The batch says which positions they
// are for.
func (r *reader) step(rec *tape.Record) error {
	step, b := rec.Event.Step, r.running[rec.Core]
	if step.Err != "" {
		return nil
	}
	if b == nil || b.ID != step.Batch || samples(b) != len(step.Rows) {
		return fmt.Errorf("record %d ends step %d of subserver %d, which is not the one that runs there: the session is not whole", rec.Seq, step.Batch, rec.Core)
	}
	k := 0
	for i := range b.Rows {
		row := &b.Rows[i]
		if !row.Sample {
			continue
		}
		o := &step.Rows[k].Output
		k++
		if r.rows == MaxRows {
			r.leftOut++
			continue
		}
		r.rows++
		s := said{
			req: row.Req, pos: int32(row.Start + len(row.Tokens)), token: o.Token,
			entropy: o.Entropy, norm: o.EntropyNorm, top1: o.Top1, top2: o.Top2, logsumexp: o.LogSumExp,
		}
		s.listed = int16(copy(s.top[:], o.TopK))
		s.score, s.head = r.score(&step.Rows[k-1])
		r.models[rec.Core] = append(r.models[rec.Core], s)
	}
	return nil
}

// sort puts a model's rows in order. Of rows for one position the last counts.
func (r *Recording) sort(model int) {
	rows := r.models[model]
	slices.SortStableFunc(rows, func(a, b said) int {
		return cmp.Or(cmp.Compare(a.req, b.req), cmp.Compare(a.pos, b.pos))
	})
	kept := rows[:0]
	for _, s := range rows {
		if n := len(kept); n > 0 && kept[n-1].req == s.req && kept[n-1].pos == s.pos {
			kept[n-1] = s
			continue
		}
		kept = append(kept, s)
	}
	r.models[model] = kept
	r.begin[model] = map[event.ReqID]int{}
	for i := len(kept) - 1; i >= 0; i-- {
		r.begin[model][kept[i].req] = i
	}
}

// end remembers the token at pos that ended a text, if it was one.
func (r *Recording) end(id event.ReqID, pos int) {
	for m := range r.models {
		if s := r.find(m, id, pos); s != nil && slices.Contains(r.eos, s.token) {
			r.ends[id] = ending{pos, s.token}
		}
	}
}

func (r *Recording) find(model int, id event.ReqID, pos int) *said {
	from, ok := r.begin[model][id]
	if !ok {
		return nil
	}
	rows := r.models[model][from:]
	// Positions rise by at least 1, so the row is at most pos - first behind.
	rows = rows[:max(0, min(len(rows), pos-int(rows[0].pos)+1))]
	i, ok := slices.BinarySearchFunc(rows, pos, func(s said, pos int) int {
		if s.req != id {
			return 1
		}
		return cmp.Compare(int(s.pos), pos)
	})
	if !ok {
		return nil
	}
	return &rows[i]
}

// Rows is how many rows of a model can be repeated. A model without any cannot
// be asked.
func (r *Recording) Rows(model int) int { return len(r.models[model]) }

// LeftOut is how many rows the session has beyond MaxRows.
func (r *Recording) LeftOut() uint64 { return r.leftOut }

// Missing is how many answers so far, or scores of recorded ones, were drawn because
// the session has none for their place.
func (r *Recording) Missing() uint64 { return r.missing.Load() }

// Answer implements Tokens.
func (r *Recording) Answer(model int, b *event.Batch, out []event.Output) ([]event.Output, error) {
	if model < 0 || model >= len(r.models) {
		return out, fmt.Errorf("the recording is of %d models, there is no model %d", len(r.models), model)
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		if !row.Sample {
			continue
		}
		pos := row.Start + len(row.Tokens)
		if s := r.find(model, row.Req, pos); s != nil {
			out = append(out, s.output())
			continue
		}
		o, err := r.draw(model, row.Req, pos)
		if err != nil {
			return out, err
		}
		out = append(out, o)
	}
	return out, nil
}

// output shares the list of tokens with all answers of this row: nobody changes
// what an Output points to.
func (s *said) output() event.Output {
	return event.Output{
		Token: s.token, Entropy: s.entropy, EntropyNorm: s.norm, Top1: s.top1, Top2: s.top2,
		LogSumExp: s.logsumexp, TopK: s.top[:s.listed:s.listed],
	}
}

// drawMissing is the stream of answers to what was never recorded.
const drawMissing = rng.Law + 2

// draw answers for a place that was not recorded.
func (r *Recording) draw(model int, id event.ReqID, pos int) (event.Output, error) {
	rows := r.models[model]
	if len(rows) == 0 {
		return event.Output{}, fmt.Errorf("request %d at position %d: the recording has no answer of model %d at all; repeat it under a router that asks the same models", id, pos, model)
	}
	r.missing.Add(1)
	s := r.instead(model, id, pos)
	if s == nil {
		return event.Output{}, fmt.Errorf("request %d at position %d: all that model %d says in the recording is the end of a text", id, pos, model)
	}
	o := s.output()
	if end, ok := r.ends[id]; ok && pos >= end.pos {
		say(&o, end.token)
	}
	return o, nil
}

// instead is the row that answers for one that was not recorded.
func (r *Recording) instead(model int, id event.ReqID, pos int) *said {
	return r.ordinary(r.models[model], rng.Key{Seed: r.seed, Req: uint64(id), Pos: pos, Model: model, Purpose: drawMissing})
}

// ordinary draws a row that does not end a text, nil if there is none.
func (r *Recording) ordinary(rows []said, key rng.Key) *said {
	const tries = 16
	at := 0
	for n := range tries {
		hi, _ := bits.Mul64(key.Uint64(n), uint64(len(rows)))
		at = int(hi)
		if s := &rows[at]; !slices.Contains(r.eos, s.token) {
			return s
		}
	}
	for range rows { // nearly all of them do
		if at++; at == len(rows) {
			at = 0
		}
		if s := &rows[at]; !slices.Contains(r.eos, s.token) {
			return s
		}
	}
	return nil
}

// say puts a token in the place of the one that was sampled.
func say(o *event.Output, token event.Token) {
	o.TopK = slices.Clone(o.TopK)
	for i := range o.TopK {
		switch o.TopK[i].Token {
		case o.Token:
			o.TopK[i].Token = token
		case token:
			o.TopK[i].Token = o.Token
		}
	}
	o.Token = token
}
