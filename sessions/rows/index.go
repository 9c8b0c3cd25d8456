package rows

import (
	"iter"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Source yields the records of a tape in order, as often as asked.
type Source interface {
	Records() iter.Seq2[tape.Record, error]
}

// Memory is a tape held in memory.
type Memory []tape.Record

// Records implements Source.
func (m Memory) Records() iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range m {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// End is where and how a request ended.
type End struct {
	Len    int // prompt and emitted tokens
	Reason event.Reason
}

// Index is what rows need to know of the whole tape: where requests end, which
// task each one answers, which file a router's hash belongs to.
type Index struct {
	Ends    map[event.ReqID]End
	Tasks   map[event.ReqID]string
	Routers map[string]string // hash to base name
	Cores   int               // one more than the highest core on the tape
	LastAt  int64             // ns, latest time of any record
}

// NewIndex reads the tape once.
func NewIndex(src Source) (*Index, error) {
	x := &Index{
		Ends:    map[event.ReqID]End{},
		Tasks:   map[event.ReqID]string{},
		Routers: map[string]string{},
	}
	for r, err := range src.Records() {
		if err != nil {
			return nil, err
		}
		x.add(&r)
	}
	return x, nil
}

func (x *Index) add(r *tape.Record) {
	x.Cores = max(x.Cores, int(r.Core)+1)
	x.LastAt = max(x.LastAt, r.At)
	if c := r.Command; c != nil && c.Kind == event.Finish {
		x.Ends[c.Req] = End{Len: c.N, Reason: c.Reason}
	}
	switch h := r.Host.(type) {
	case *tape.Request:
		x.Tasks[h.Req] = h.Task
	case *tape.Router:
		if h.Hash != "" {
			x.Routers[h.Hash] = h.File
		}
	}
}

// inText says whether a token committed at pos stands in the request's text.
func (x *Index) inText(id event.ReqID, pos int) bool {
	end, ok := x.Ends[id]
	return !ok || pos < end.Len
}

// counted says whether a candidate dropped at pos is a row. Behind the end that
// a request's own text gave it, candidates are leftovers whose number depends
// on timing. A request that was ended from outside may have lost a candidate at
// the position where it ended.
func (x *Index) counted(id event.ReqID, pos int) bool {
	end, ok := x.Ends[id]
	if !ok {
		return true
	}
	if end.Reason == event.ReasonAborted || end.Reason == event.ReasonError {
		return pos <= end.Len
	}
	return pos < end.Len
}
