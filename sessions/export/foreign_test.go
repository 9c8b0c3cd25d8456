package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"iter"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// foreign yields the records of a tape with some of them replaced.
type foreign []tape.Record

func (f foreign) Records() iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		for _, r := range f {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// mutate changes one record as somebody might have written it: any bytes that
// still read as an event or a command, any core, any time.
func mutate(r *tape.Record, where uint16, with byte) bool {
	change := func(b []byte) []byte {
		b[int(where)%len(b)] ^= with
		return b
	}
	switch {
	case where%7 == 0:
		r.Core = event.Peer(int8(with))
		return true
	case where%7 == 1:
		r.At = int64(binary.LittleEndian.Uint64(bytes.Repeat([]byte{with}, 8)) >> 1) // no reader gives a negative time
		return true
	case r.Event != nil:
		ev, _, err := event.DecodeEvent(change(event.AppendEvent(nil, r.Event)))
		r.Event = &ev
		return err == nil
	case r.Command != nil:
		cmd, _, err := event.DecodeCommand(change(event.AppendCommand(nil, r.Command)))
		r.Command = &cmd
		return err == nil
	case r.Load != nil:
		r.Load = &tape.Load{Ready: int(int8(with)), KVUsed: -int(where), B: int(with) << 40}
		return true
	}
	return false
}

// A tape with right checksums and odd records, as another program may have
// written it, is exported without a panic, and what comes out is JSON.
func FuzzForeignTape(f *testing.F) {
	recs, _, err := tapetest.Run(tapetest.Config{Requests: 12, Models: 3, Seed: 4, Cancel: 0.2})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte("\x01\x00\x02\x00\x80\x30\x01\x05\x00\xff\x99\x00\x07\x00\x40"))
	f.Fuzz(func(t *testing.T, edits []byte) {
		tampered := append(foreign(nil), recs...)
		for ; len(edits) >= 5; edits = edits[5:] {
			i := int(binary.LittleEndian.Uint16(edits)) % len(recs)
			r := tampered[i]
			if mutate(&r, binary.LittleEndian.Uint16(edits[2:]), edits[4]) {
				tampered[i] = r
			}
		}
		s := &Session{Source: tampered, Name: "foreign", Vocab: [][]byte{{0xff}}, Roles: []string{"small"}}
		var rows, trace bytes.Buffer
		if _, err := s.JSONL(&rows); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(rows.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("no JSON: %s", line)
			}
		}
		if _, err := s.Perfetto(&trace); err != nil || !json.Valid(trace.Bytes()) {
			t.Fatalf("%v: no JSON: %.300s", err, trace.Bytes())
		}
	})
}
