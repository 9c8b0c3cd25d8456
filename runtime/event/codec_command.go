package event

import (
	"fmt"
	"slices"
)

// AppendCommand appends the binary form of cmd to dst:
//
//	command = byte kind, then by kind
//	  1 admit        uint req, int n
//	  2 reject       uint req, string text
//	  3 run-batch    batch?
//	  4 send-peer    uint req, int to, peerreq?
//	  5 tell-active  int n
//	  6 emit         uint req, int pos, int token
//	  7 finish       uint req, byte reason, int n, string text
//	  8 free         uint req
//	  9 wake-at      int at, uint gen
//	 10 note         byte note, uint req, int n, string text
//	 11 tell-busy    int n, int at
//	 12 preempt      uint req, int n
//	 13 run-batch    batch?, whose rows end with int cached, int... blocks
//	 14 emit         uint req, int pos, int token, int wrote
//	 15 send-peer    uint req, int to, peerreq?, with what it holds back
//	batch   = uint id, byte rule, int ready, int b, row...
//	row     = uint req, int start, int... tokens, bool sample, bool prefill,
//	          int recomputed, int waited, int promptlen, sampling
//
// A batch is written as 3 where no row says where its KV is, an emit as 6 where
// who emits the token wrote it, and a message as 4 where it tells nothing of
// tokens held back.
func AppendCommand(dst []byte, cmd *Command) []byte {
	kind := byte(cmd.Kind)
	placed := cmd.Kind == RunBatch && cmd.Batch.placed()
	switch {
	case placed:
		kind = runPlaced
	case cmd.Kind == Emit && cmd.Wrote != 0:
		kind = emitWrote
	case cmd.Kind == SendPeer && cmd.Peer.held():
		kind = sendHeld
	}
	b := append(dst, kind)
	switch cmd.Kind {
	case Admit:
		b = putUint(b, uint64(cmd.Req))
		b = putInt(b, int64(cmd.N))
	case Reject:
		b = putUint(b, uint64(cmd.Req))
		b = putString(b, cmd.Text)
	case RunBatch:
		b = putBatch(b, cmd.Batch, placed)
	case SendPeer:
		b = putUint(b, uint64(cmd.Req))
		b = putInt(b, int64(cmd.To))
		b = putPeerReq(b, cmd.Peer, kind == sendHeld)
	case TellActive:
		b = putInt(b, int64(cmd.N))
	case Emit:
		b = putUint(b, uint64(cmd.Req))
		b = putInt(b, int64(cmd.Pos))
		b = putInt(b, int64(cmd.Token))
		if kind == emitWrote {
			b = putInt(b, int64(cmd.Wrote))
		}
	case Finish:
		b = putUint(b, uint64(cmd.Req))
		b = append(b, byte(cmd.Reason))
		b = putInt(b, int64(cmd.N))
		b = putString(b, cmd.Text)
	case Free:
		b = putUint(b, uint64(cmd.Req))
	case WakeAt:
		b = putInt(b, cmd.At)
		b = putUint(b, cmd.Gen)
	case Note:
		b = append(b, byte(cmd.Note))
		b = putUint(b, uint64(cmd.Req))
		b = putInt(b, int64(cmd.N))
		b = putString(b, cmd.Text)
	case TellBusy:
		b = putInt(b, int64(cmd.N))
		b = putInt(b, cmd.At)
	case Preempt:
		b = putUint(b, uint64(cmd.Req))
		b = putInt(b, int64(cmd.N))
	}
	return b
}

// The stored kinds of a batch whose rows name their KV blocks, of an emit that
// names the writer and of a message that tells of tokens held back; those of the
// first sessions did not.
const (
	runPlaced = 13
	emitWrote = 14
	sendHeld  = 15
)

func (batch *Batch) placed() bool {
	return batch != nil && slices.ContainsFunc(batch.Rows, func(r Row) bool { return r.Cached != 0 || len(r.Blocks) > 0 })
}

// DecodeCommand reads one command from the front of src and says how many bytes
// it took. It shares no memory with src. Data that ends too early gives an error
// that wraps io.ErrUnexpectedEOF.
func DecodeCommand(src []byte) (cmd Command, n int, err error) {
	r := &reader{b: src}
	cmd.Kind = CmdKind(r.byte())
	switch cmd.Kind {
	case Admit:
		cmd.Req = ReqID(r.uint())
		cmd.N = r.int()
	case Reject:
		cmd.Req = ReqID(r.uint())
		cmd.Text = r.string()
	case RunBatch:
		cmd.Batch = r.batch(false)
	case runPlaced:
		cmd.Kind = RunBatch
		cmd.Batch = r.batch(true)
	case SendPeer, sendHeld:
		cmd.Req = ReqID(r.uint())
		cmd.To = r.peer()
		cmd.Peer = r.peerReq(cmd.Kind == sendHeld)
		cmd.Kind = SendPeer
	case TellActive:
		cmd.N = r.int()
	case Emit, emitWrote:
		cmd.Req = ReqID(r.uint())
		cmd.Pos = r.int()
		cmd.Token = r.token()
		if cmd.Kind == emitWrote {
			cmd.Wrote = r.peer()
		}
		cmd.Kind = Emit
	case Finish:
		cmd.Req = ReqID(r.uint())
		cmd.Reason = Reason(r.code(byte(ReasonError), "reason"))
		cmd.N = r.int()
		cmd.Text = r.string()
	case Free:
		cmd.Req = ReqID(r.uint())
	case WakeAt:
		cmd.At = r.int64()
		cmd.Gen = r.uint()
	case Note:
		cmd.Note = NoteKind(r.code(byte(noteKinds-1), "note"))
		cmd.Req = ReqID(r.uint())
		cmd.N = r.int()
		cmd.Text = r.string()
	case TellBusy:
		cmd.N = r.int()
		cmd.At = r.int64()
	case Preempt:
		cmd.Req = ReqID(r.uint())
		cmd.N = r.int()
	default:
		r.fail("there is no command of kind %d", cmd.Kind)
	}
	if r.err != nil {
		return Command{}, 0, fmt.Errorf("cannot read a command: %w", r.err)
	}
	return cmd, r.off, nil
}

func putBatch(b []byte, batch *Batch, placed bool) []byte {
	b = putBool(b, batch != nil)
	if batch == nil {
		return b
	}
	b = putUint(b, batch.ID)
	b = append(b, byte(batch.Rule))
	b = putInt(b, int64(batch.Ready))
	b = putInt(b, int64(batch.B))
	b = putUint(b, uint64(len(batch.Rows)))
	for i := range batch.Rows {
		row := &batch.Rows[i]
		b = putUint(b, uint64(row.Req))
		b = putInt(b, int64(row.Start))
		b = putTokens(b, row.Tokens)
		b = putBool(b, row.Sample)
		b = putBool(b, row.Prefill)
		b = putInt(b, int64(row.Recomputed))
		b = putInt(b, row.WaitedNs)
		b = putInt(b, int64(row.PromptLen))
		b = putSampling(b, row.Sampling)
		if placed {
			b = putInt(b, int64(row.Cached))
			b = putTokens(b, row.Blocks)
		}
	}
	return b
}

func (r *reader) batch(placed bool) *Batch {
	if !r.bool() {
		return nil
	}
	return &Batch{
		ID:    r.uint(),
		Rule:  Rule(r.code(byte(ruleKinds-1), "rule")),
		Ready: r.int(),
		B:     r.int(),
		Rows: list(r, minBatch, func(r *reader) Row {
			row := Row{
				Req:        ReqID(r.uint()),
				Start:      r.int(),
				Tokens:     r.tokens(),
				Sample:     r.bool(),
				Prefill:    r.bool(),
				Recomputed: r.int(),
				WaitedNs:   r.int64(),
				PromptLen:  r.int(),
				Sampling:   r.sampling(),
			}
			if placed {
				row.Cached = r.int()
				row.Blocks = r.tokens()
			}
			return row
		}),
	}
}
