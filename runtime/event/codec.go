package event

import (
	"fmt"
	"slices"
)

// The binary form is what sessions store. It is written by hand, without
// reflection, and stays readable for ever: kinds and statuses keep their
// numbers, new ones get new numbers, and a reader refuses what it does not know.
//
//	uint    unsigned varint            int     zigzag varint
//	float   4 bytes, little endian     bool    one byte, 0 or 1
//	T...    uint count, then that many string  uint length, then bytes
//	T?      bool, then T if true       byte    one byte
//
//	event    = byte kind, int at, then by kind
//	  1 arrive     uint req, arrival?
//	  2 dispatch   -
//	  3 step-done  step?
//	  4 peer-in    peerreq?, byte verdict, int... ids, string fault
//	  5 active     int n
//	  6 wake       uint gen
//	  7 stop       uint req, int pos
//	  8 cancel     uint req
//	  9 set-policy policy?
//	 10 busy       int from, int n, int until
//	 11 cancel     uint req, int pos (8 where pos is 0)
//	 12 step-done  step?, whose rows end with int at, int hold, int stop,
//	               float? score (3 where no row has any of them)
//	 13 peer-in    peerreq?, with what it holds back, then as 4, then int stop
//	               (4 where there is nothing of that)
//	arrival  = int... prompt, int max, int... eos, sampling
//	sampling = float temperature, int topk, float topp, uint seed
//	step     = uint batch, row..., int exec, int route, string err
//	row      = uint req, output, int dest, byte action, int budget,
//	           string state, string fields, string fault, string router
//	output   = int token, float entropy, norm, top1, top2, logsumexp,
//	           (int token, float logprob)...
//	policy   = byte kind, int... b, int w, then for kind
//	  2 table      (int...)... table
//	  3 look-ahead forecast?
//	forecast = (int base, int perrow)... step, (int...)... share, int latency
//	peerreq  = uint id, int from, uint hop, int loc, int... suffix, int... seen,
//	           byte status, int budget, int promptlen, int maxlen, int... eos,
//	           sampling, string state, string fields, string router, string err;
//	           with what it holds back: then int hold, int emitted,
//	           int... writers, bool cut
//	command  = byte kind, then by kind (see AppendCommand in codec_command.go)
//
// Fields that a kind does not use are not stored. Empty and missing lists are
// the same thing and are read back as nil.

// The stored kinds of a Cancel with a position, of a step of a router that holds
// back, truncates or scores, of a message that tells of tokens held back, and of
// either where a stop string ends the answer. The first sessions knew none of that.
const (
	cancelAt Kind = 11
	stepHeld Kind = 12
	peerHeld Kind = 13
)

// AppendEvent appends the binary form of ev to dst.
func AppendEvent(dst []byte, ev *Event) []byte {
	kind := ev.Kind
	switch {
	case kind == Cancel && ev.Pos != 0:
		kind = cancelAt
	case kind == StepDone && ev.Step.held():
		kind = stepHeld
	case kind == PeerIn && (ev.Peer.held() || ev.Verdict.Stop != 0):
		kind = peerHeld
	}
	b := append(dst, byte(kind))
	b = putInt(b, ev.At)
	switch kind {
	case Arrive:
		b = putUint(b, uint64(ev.Req))
		b = putArrival(b, ev.Arrival)
	case StepDone, stepHeld:
		b = putStep(b, ev.Step, kind == stepHeld)
	case PeerIn, peerHeld:
		b = putPeerReq(b, ev.Peer, kind == peerHeld)
		b = append(b, byte(ev.Verdict.Kind))
		b = putTokens(b, ev.Verdict.Ids)
		if b = putString(b, ev.Verdict.Fault); kind == peerHeld {
			b = putInt(b, int64(ev.Verdict.Stop))
		}
	case Active:
		b = putInt(b, int64(ev.N))
	case Wake:
		b = putUint(b, ev.Gen)
	case Stop:
		b = putUint(b, uint64(ev.Req))
		b = putInt(b, int64(ev.Pos))
	case Cancel:
		b = putUint(b, uint64(ev.Req))
	case cancelAt:
		b = putUint(b, uint64(ev.Req))
		b = putInt(b, int64(ev.Pos))
	case SetPolicy:
		b = putPolicy(b, ev.Policy)
	case Busy:
		b = putInt(b, int64(ev.From))
		b = putInt(b, int64(ev.N))
		b = putInt(b, ev.Until)
	}
	return b
}

// DecodeEvent reads one event from the front of src and says how many bytes it
// took. It shares no memory with src. Data that ends too early gives an error
// that wraps io.ErrUnexpectedEOF.
func DecodeEvent(src []byte) (ev Event, n int, err error) {
	r := &reader{b: src}
	ev.Kind = Kind(r.byte())
	ev.At = r.int64()
	switch ev.Kind {
	case Arrive:
		ev.Req = ReqID(r.uint())
		ev.Arrival = r.arrival()
	case Dispatch:
	case StepDone, stepHeld:
		ev.Step = r.step(ev.Kind == stepHeld)
		ev.Kind = StepDone
	case PeerIn, peerHeld:
		held := ev.Kind == peerHeld
		ev.Peer = r.peerReq(held)
		ev.Kind = PeerIn
		ev.Verdict.Kind = VerdictKind(r.code(byte(Append), "verdict"))
		ev.Verdict.Ids = r.tokens()
		if ev.Verdict.Fault = r.string(); held {
			ev.Verdict.Stop = r.int()
		}
	case Active:
		ev.N = r.int()
	case Wake:
		ev.Gen = r.uint()
	case Stop:
		ev.Req = ReqID(r.uint())
		ev.Pos = r.int()
	case Cancel:
		ev.Req = ReqID(r.uint())
	case cancelAt:
		ev.Kind = Cancel
		ev.Req = ReqID(r.uint())
		ev.Pos = r.int()
	case SetPolicy:
		ev.Policy = r.policy()
	case Busy:
		ev.From = r.peer()
		ev.N = r.int()
		ev.Until = r.int64()
	default:
		r.fail("there is no event of kind %d", ev.Kind)
	}
	if r.err != nil {
		return Event{}, 0, fmt.Errorf("cannot read an event: %w", r.err)
	}
	return ev, r.off, nil
}

// code reads one byte of at most limit.
func (r *reader) code(limit byte, what string) byte {
	v := r.byte()
	if v > limit {
		r.fail("there is no %s %d", what, v)
		return 0
	}
	return v
}

func putArrival(b []byte, a *Arrival) []byte {
	b = putBool(b, a != nil)
	if a == nil {
		return b
	}
	b = putTokens(b, a.Prompt)
	b = putInt(b, int64(a.MaxTokens))
	b = putTokens(b, a.EOS)
	return putSampling(b, a.Sampling)
}

func (r *reader) arrival() *Arrival {
	if !r.bool() {
		return nil
	}
	return &Arrival{Prompt: r.tokens(), MaxTokens: r.int(), EOS: r.tokens(), Sampling: r.sampling()}
}

func putSampling(b []byte, s Sampling) []byte {
	b = putFloat(b, s.Temperature)
	b = putInt(b, int64(s.TopK))
	b = putFloat(b, s.TopP)
	return putUint(b, s.Seed)
}

func (r *reader) sampling() Sampling {
	return Sampling{Temperature: r.float(), TopK: r.int(), TopP: r.float(), Seed: r.uint()}
}

// held says whether a row holds back, truncates, stops or was scored.
func (s *StepResult) held() bool {
	return s != nil && slices.ContainsFunc(s.Rows, func(r RowResult) bool {
		return r.Action > Drop || r.At != 0 || r.Hold != 0 || r.Stop != 0 || r.Scored
	})
}

func putStep(b []byte, s *StepResult, held bool) []byte {
	b = putBool(b, s != nil)
	if s == nil {
		return b
	}
	b = putUint(b, s.Batch)
	b = putUint(b, uint64(len(s.Rows)))
	for i := range s.Rows {
		b = putRow(b, &s.Rows[i], held)
	}
	b = putInt(b, s.ExecNs)
	b = putInt(b, s.RouteNs)
	return putString(b, s.Err)
}

func (r *reader) step(held bool) *StepResult {
	if !r.bool() {
		return nil
	}
	return &StepResult{
		Batch:   r.uint(),
		Rows:    list(r, minRow, func(r *reader) RowResult { return r.rowResult(held) }),
		ExecNs:  r.int64(),
		RouteNs: r.int64(),
		Err:     r.string(),
	}
}

// The fewest bytes of a stored row result, of a token with its probability and
// of a batch row: what length checks may count on.
const (
	minRow   = 30
	minProb  = 5
	minBatch = 18
)

func putRow(b []byte, row *RowResult, held bool) []byte {
	b = putUint(b, uint64(row.Req))
	b = putOutput(b, &row.Output)
	b = putInt(b, int64(row.Dest))
	b = append(b, byte(row.Action))
	b = putInt(b, int64(row.Budget))
	b = putString(b, row.State)
	b = putString(b, row.Fields)
	b = putString(b, row.Fault)
	b = putString(b, row.Router)
	if !held {
		return b
	}
	b = putInt(b, int64(row.At))
	b = putInt(b, int64(row.Hold))
	b = putInt(b, int64(row.Stop))
	if b = putBool(b, row.Scored); row.Scored {
		b = putFloat(b, row.Score)
	}
	return b
}

func (r *reader) rowResult(held bool) RowResult {
	last := Drop
	if held {
		last = Truncate
	}
	row := RowResult{
		Req:    ReqID(r.uint()),
		Output: r.output(),
		Dest:   r.peer(),
		Action: Action(r.code(byte(last), "action")),
		Budget: r.int(),
		State:  r.bytes(),
		Fields: r.bytes(),
		Fault:  r.string(),
		Router: r.string(),
	}
	if held {
		row.At, row.Hold, row.Stop, row.Scored = r.int(), r.int(), r.int(), r.bool()
		if row.Scored {
			row.Score = r.float()
		}
	}
	return row
}

func putOutput(b []byte, o *Output) []byte {
	b = putInt(b, int64(o.Token))
	b = putFloat(b, o.Entropy)
	b = putFloat(b, o.EntropyNorm)
	b = putFloat(b, o.Top1)
	b = putFloat(b, o.Top2)
	b = putFloat(b, o.LogSumExp)
	b = putUint(b, uint64(len(o.TopK)))
	for _, t := range o.TopK {
		b = putInt(b, int64(t.Token))
		b = putFloat(b, t.Logprob)
	}
	return b
}

func (r *reader) output() Output {
	return Output{
		Token:       r.token(),
		Entropy:     r.float(),
		EntropyNorm: r.float(),
		Top1:        r.float(),
		Top2:        r.float(),
		LogSumExp:   r.float(),
		TopK: list(r, minProb, func(r *reader) TokenProb {
			return TokenProb{Token: r.token(), Logprob: r.float()}
		}),
	}
}

func putPolicy(b []byte, p *Policy) []byte {
	b = putBool(b, p != nil)
	if p == nil {
		return b
	}
	b = append(b, byte(p.Kind))
	b = putInts(b, p.B)
	b = putInt(b, p.W)
	switch p.Kind {
	case Table:
		b = putVectors(b, p.Table)
	case LookAhead:
		b = putForecast(b, p.Forecast)
	}
	return b
}

func (r *reader) policy() *Policy {
	if !r.bool() {
		return nil
	}
	p := &Policy{Kind: PolicyKind(r.code(byte(policyKinds-1), "policy")), B: r.ints(), W: r.int64()}
	switch p.Kind {
	case Table:
		p.Table = r.vectors()
	case LookAhead:
		p.Forecast = r.forecast()
	}
	return p
}

func putVectors(b []byte, v [][]int) []byte {
	b = putUint(b, uint64(len(v)))
	for _, x := range v {
		b = putInts(b, x)
	}
	return b
}

func (r *reader) vectors() [][]int { return list(r, 1, (*reader).ints) }

func putForecast(b []byte, f *Forecast) []byte {
	b = putBool(b, f != nil)
	if f == nil {
		return b
	}
	b = putUint(b, uint64(len(f.Step)))
	for _, s := range f.Step {
		b = putInt(b, s.Base)
		b = putInt(b, s.PerRow)
	}
	b = putVectors(b, f.Share)
	return putInt(b, f.Latency)
}

func (r *reader) forecast() *Forecast {
	if !r.bool() {
		return nil
	}
	return &Forecast{
		Step: list(r, 2, func(r *reader) StepTime {
			return StepTime{Base: r.int64(), PerRow: r.int64()}
		}),
		Share:   r.vectors(),
		Latency: r.int64(),
	}
}
