package event

import "math"

// held says whether a message tells of tokens that are held back.
func (m *PeerReq) held() bool {
	return m != nil && (m.Hold != 0 || m.Emitted != 0 || len(m.Writers) > 0 || m.Cut)
}

func putPeerReq(b []byte, m *PeerReq, held bool) []byte {
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
	b = putString(b, m.Err)
	if !held {
		return b
	}
	b = putInt(b, int64(m.Hold))
	b = putInt(b, int64(m.Emitted))
	b = putUint(b, uint64(len(m.Writers)))
	for _, w := range m.Writers {
		b = putInt(b, int64(w))
	}
	return putBool(b, m.Cut)
}

func (r *reader) peerReq(held bool) *PeerReq {
	if !r.bool() {
		return nil
	}
	m := &PeerReq{
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
	if held {
		m.Hold, m.Emitted, m.Writers, m.Cut = r.int(), r.int(), list(r, 1, (*reader).peer), r.bool()
	}
	return m
}
