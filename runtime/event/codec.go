package event

import (
	"fmt"
	"math"
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
//	           sampling, string state, string fields, string router, string err
//	command  = byte kind, then by kind (see AppendCommand in codec_command.go)
//
// Fields that a kind does not use are not stored. Empty and missing lists are
// the same thing and are read back as nil.

// cancelAt is the stored kind of a Cancel with a position.
const cancelAt Kind = 11

// AppendEvent appends the binary form of ev to dst.
func AppendEvent(dst []byte, ev *Event) []byte {
	kind := ev.Kind
	if kind == Cancel && ev.Pos != 0 {
		kind = cancelAt
	}
	b := append(dst, byte(kind))
	b = putInt(b, ev.At)
	switch kind {
	case Arrive:
		b = putUint(b, uint64(ev.Req))
		b = putArrival(b, ev.Arrival)
	case StepDone:
		b = putStep(b, ev.Step)
	case PeerIn:
		b = putPeerReq(b, ev.Peer)
		b = append(b, byte(ev.Verdict.Kind))
		b = putTokens(b, ev.Verdict.Ids)
		b = putString(b, ev.Verdict.Fault)
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
	case StepDone:
		ev.Step = r.step()
	case PeerIn:
		ev.Peer = r.peerReq()
		ev.Verdict.Kind = VerdictKind(r.code(byte(Append), "verdict"))
		ev.Verdict.Ids = r.tokens()
		ev.Verdict.Fault = r.string()
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

func putStep(b []byte, s *StepResult) []byte {
	b = putBool(b, s != nil)
	if s == nil {
		return b
	}
	b = putUint(b, s.Batch)
	b = putUint(b, uint64(len(s.Rows)))
	for i := range s.Rows {
		b = putRow(b, &s.Rows[i])
	}
	b = putInt(b, s.ExecNs)
	b = putInt(b, s.RouteNs)
	return putString(b, s.Err)
}

func (r *reader) step() *StepResult {
	if !r.bool() {
		return nil
	}
	return &StepResult{
		Batch:   r.uint(),
		Rows:    list(r, minRow, (*reader).rowResult),
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

func putRow(b []byte, row *RowResult) []byte {
	b = putUint(b, uint64(row.Req))
	b = putOutput(b, &row.Output)
	b = putInt(b, int64(row.Dest))
	b = append(b, byte(row.Action))
	b = putInt(b, int64(row.Budget))
	b = putString(b, row.State)
	b = putString(b, row.Fields)
	b = putString(b, row.Fault)
	return putString(b, row.Router)
}

func (r *reader) rowResult() RowResult {
	return RowResult{
		Req:    ReqID(r.uint()),
		Output: r.output(),
		Dest:   r.peer(),
		Action: Action(r.code(byte(Drop), "action")),
		Budget: r.int(),
		State:  r.bytes(),
		Fields: r.bytes(),
		Fault:  r.string(),
		Router: r.string(),
	}
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

func putPeerReq(b []byte, m *PeerReq) []byte {
	b = putBool(b, m != nil)
	if m == nil {
		return b
	}
	b = putUint(b, uint64(m.ID))
	b = putInt(b, int64(m.From))
	b = putUint(b, uint64(m.Hop))
	b = putInt(b, int64(m.Loc))
	b = putTokens(b, m.Suffix)
	b = putInts(b, m.Seen)
	b = append(b, byte(m.Status))
	b = putInt(b, int64(m.Budget))
	b = putInt(b, int64(m.Limits.PromptLen))
	b = putInt(b, int64(m.Limits.MaxLen))
	b = putTokens(b, m.Limits.EOS)
	b = putSampling(b, m.Sampling)
	b = putString(b, m.State)
	b = putString(b, m.Fields)
	b = putString(b, m.Router)
	return putString(b, m.Err)
}

func (r *reader) peerReq() *PeerReq {
	if !r.bool() {
		return nil
	}
	return &PeerReq{
		ID:       ReqID(r.uint()),
		From:     r.peer(),
		Hop:      uint32(r.bounded(math.MaxUint32, "the hop")),
		Loc:      r.int(),
		Suffix:   r.tokens(),
		Seen:     r.ints(),
		Status:   Status(r.code(byte(Resend), "status")),
		Budget:   r.int(),
		Limits:   Limits{PromptLen: r.int(), MaxLen: r.int(), EOS: r.tokens()},
		Sampling: r.sampling(),
		State:    r.bytes(),
		Fields:   r.bytes(),
		Router:   r.string(),
		Err:      r.string(),
	}
}
