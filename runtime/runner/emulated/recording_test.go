package emulated

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

const eos event.Token = 99

// story makes records of steps: each line is a model, a batch and its rows as
// request, position and token; the last token may be eos.
type story struct {
	recs []tape.Record
	id   uint64
}

func (s *story) add(core event.Peer, ev *event.Event, c *event.Command) {
	r := tape.Record{Seq: uint64(len(s.recs) + 1), Core: core, Event: ev, Command: c, Kind: tape.KindEvent}
	if c != nil {
		r.Kind = tape.KindCommand
	}
	s.recs = append(s.recs, r)
}

func (s *story) arrive(id event.ReqID) {
	s.add(0, &event.Event{Kind: event.Arrive, Req: id, Arrival: &event.Arrival{Prompt: []event.Token{1, 2}, EOS: []event.Token{eos}}}, nil)
}

// step has a row of request id for each token, from position pos on, and before
// them a part of a prefill that says nothing.
func (s *story) step(core event.Peer, id event.ReqID, pos int, tokens ...event.Token) {
	s.id++
	b := &event.Batch{ID: s.id, Rows: []event.Row{{Req: 50, Tokens: []event.Token{4}}}}
	step := &event.StepResult{Batch: s.id}
	for i, tok := range tokens {
		row := decode(id, pos+i, event.Sampling{})
		b.Rows = append(b.Rows, row)
		step.Rows = append(step.Rows, event.RowResult{Req: id, Output: said1(core, pos+i, tok)})
	}
	s.add(core, nil, &event.Command{Kind: event.RunBatch, Batch: b})
	s.add(core, &event.Event{Kind: event.StepDone, Step: step}, nil)
}

func said1(core event.Peer, pos int, tok event.Token) event.Output {
	return event.Output{
		Token: tok, Entropy: float32(pos), EntropyNorm: float32(pos) / 100, Top1: 0.75, Top2: 0.125, LogSumExp: float32(core),
		TopK: []event.TokenProb{{Token: tok, Logprob: -0.25}, {Token: tok + 1, Logprob: -2}},
	}
}

func (s *story) finish(id event.ReqID, n int) {
	s.add(0, nil, &event.Command{Kind: event.Finish, Req: id, N: n, Reason: event.ReasonStop})
}

func (s *story) all() iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range s.recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// short is a session of two models: request 1 is written by the small one at 2,
// 3 and by the large one at 4, where it ends; request 2 by the small one.
func short() *story {
	s := &story{}
	s.arrive(1)
	s.step(0, 1, 2, 10, 11)
	s.step(0, 1, 4, 12)
	s.step(1, 1, 4, eos)
	s.finish(1, 5)
	s.arrive(2)
	s.step(0, 2, 2, 20, 21, eos)
	s.finish(2, 5)
	s.step(1, 3, 7, 30)
	return s
}

func record(t *testing.T, s *story) *Recording {
	t.Helper()
	r, err := NewRecording(s.all(), 2, 5, byName)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What was recorded comes back, all of it, and nothing is counted as missing.
func TestRecorded(t *testing.T) {
	r := record(t, short())
	if r.Rows(0) != 6 || r.Rows(1) != 2 || r.LeftOut() != 0 {
		t.Fatalf("%d and %d rows, %d left out", r.Rows(0), r.Rows(1), r.LeftOut())
	}
	for _, c := range []struct {
		model event.Peer
		req   event.ReqID
		pos   int
		want  event.Token
	}{{0, 1, 2, 10}, {0, 1, 3, 11}, {0, 1, 4, 12}, {1, 1, 4, eos}, {0, 2, 2, 20}, {0, 2, 4, eos}, {1, 3, 7, 30}} {
		got := ask(t, r, int(c.model), decode(c.req, c.pos, event.Sampling{}))[0]
		if want := said1(c.model, c.pos, c.want); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if r.Missing() != 0 {
		t.Errorf("%d missing", r.Missing())
	}
}

// What was not recorded is another row of that model, the same one every time,
// and never the end of a text, unless the recorded text ended there.
func TestMissing(t *testing.T) {
	r := record(t, short())
	of := map[int][]event.Token{0: {10, 11, 12, 20, 21}, 1: {30}}
	n := uint64(0)
	for model, known := range of {
		seen := map[event.Token]bool{}
		for pos := 5; pos < 60; pos++ {
			row := decode(4, pos, event.Sampling{})
			a, b := ask(t, r, model, row)[0], ask(t, r, model, decode(9, 1, event.Sampling{}), row)[1]
			n += 3
			if !reflect.DeepEqual(a, b) || !slices.Contains(known, a.Token) || a.TopK[0].Token != a.Token {
				t.Fatalf("model %d at %d: %+v, again %+v", model, pos, a, b)
			}
			seen[a.Token] = true
		}
		if len(seen) != len(known) {
			t.Errorf("model %d: only %v are drawn", model, seen)
		}
	}
	for _, pos := range []int{4, 5, 9} {
		o := ask(t, r, 1, decode(2, pos, event.Sampling{}))[0]
		n++
		if o.Token != eos || o.TopK[0].Token != eos {
			t.Errorf("the text that ended at 4 goes on at %d with %+v", pos, o)
		}
	}
	if o := ask(t, r, 1, decode(2, 3, event.Sampling{}))[0]; o.Token != 30 {
		t.Errorf("the text that ended at 4 says %d at 3", o.Token)
	}
	if n++; r.Missing() != n {
		t.Errorf("%d missing, want %d", r.Missing(), n)
	}
	if o := ask(t, r, 1, decode(3, 7, event.Sampling{}))[0]; o.TopK[0].Token != 30 {
		t.Errorf("what is drawn changed what is kept: %+v", o)
	}
}

func TestRecordingRefused(t *testing.T) {
	broken := short()
	broken.recs = slices.Delete(broken.recs, 1, 2) // the first batch
	strange := short()
	strange.step(2, 1, 9, 1)
	alone := &story{}
	alone.arrive(1)
	alone.step(0, 1, 2, 5)
	ends := &story{}
	ends.arrive(1)
	ends.step(0, 1, 2, eos)
	for want, s := range map[string]*story{
		"not the one that runs there": broken, "of subserver 2": strange, "no row": {},
	} {
		if _, err := NewRecording(s.all(), 2, 1, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, s := range map[string]*story{"no answer of model 1": alone, "the end of a text": ends} {
		model := 1
		if s == ends {
			model = 0
		}
		if _, err := New(record(t, s), model).Run(t.Context(), &event.Batch{Rows: []event.Row{decode(1, 8, event.Sampling{})}}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	cut := func(yield func(tape.Record, error) bool) { yield(tape.Record{}, errors.New("unreadable")) }
	if _, err := NewRecording(cut, 2, 1, nil); err == nil || err.Error() != "unreadable" {
		t.Error(err)
	}
}

func BenchmarkRecording(b *testing.B) {
	s := &story{}
	for id := range event.ReqID(40) {
		for pos := range 80 {
			s.step(1, id+1, pos+2, event.Token(pos))
		}
	}
	r, err := NewRecording(s.all(), 2, 5, byName)
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, r, event.Sampling{})
}
