package format

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Encoder gathers records and seals them into frames. It does no I/O and
// belongs to one goroutine.
type Encoder struct {
	z       *zstd.Encoder
	raw     []byte
	body    []byte
	n       uint32
	first   uint64
	lastSeq uint64
	lastAt  int64
}

// NewEncoder returns an encoder for a new tape.
func NewEncoder() (*Encoder, error) {
	z, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(FrameTarget),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("tape compressor: %w", err)
	}
	return &Encoder{z: z}, nil
}

// Buffered is the number of raw bytes that the next frame holds so far.
func (e *Encoder) Buffered() int { return len(e.raw) }

// Pending is the number of records that the next frame holds so far.
func (e *Encoder) Pending() int { return int(e.n) }

// Append adds a record to the next frame. An error leaves the frame as it was:
// the record is out of order, cannot be written as bytes, or is too large.
func (e *Encoder) Append(r *tape.Record) error {
	if r.Seq <= e.lastSeq {
		return fmt.Errorf("record %d comes after record %d: a tape is numbered in rising order", r.Seq, e.lastSeq)
	}
	if r.At < 0 {
		return fmt.Errorf("record %d cannot be stored: its time lies before the session began", r.Seq)
	}
	prevSeq, prevAt := e.lastSeq, e.lastAt
	if e.n == 0 {
		prevSeq, prevAt = r.Seq-1, 0
	}
	b := e.body[:0]
	b = binary.AppendUvarint(b, r.Seq-prevSeq-1)
	b = binary.AppendVarint(b, r.At-prevAt)
	b = binary.AppendVarint(b, int64(r.Core))
	b = append(b, byte(r.Kind))
	b, err := appendBody(b, r)
	if err != nil {
		return fmt.Errorf("record %d cannot be stored: %w", r.Seq, err)
	}
	e.body = b
	if len(b) > MaxRecord || len(e.raw)+len(b)+binary.MaxVarintLen32 > MaxRaw {
		return fmt.Errorf("record %d cannot be stored: it takes %d bytes, more than a frame may have", r.Seq, len(b))
	}
	e.raw = binary.AppendUvarint(e.raw, uint64(len(b)))
	e.raw = append(e.raw, b...)
	if e.n == 0 {
		e.first = r.Seq
	}
	e.n++
	e.lastSeq, e.lastAt = r.Seq, r.At
	return nil
}

// Seal appends the frame of all records since the last Seal to dst; with none
// it returns dst unchanged.
func (e *Encoder) Seal(dst []byte) []byte {
	if e.n == 0 {
		return dst
	}
	at := len(dst)
	dst = append(dst, make([]byte, FrameHeaderSize)...)
	dst = e.z.EncodeAll(e.raw, dst)
	payload := dst[at+FrameHeaderSize:]
	h := frameHeader{
		payload:  uint32(len(payload)),
		raw:      uint32(len(e.raw)),
		records:  e.n,
		crc:      crc32.Checksum(payload, castagnoli),
		firstSeq: e.first,
		lastSeq:  e.lastSeq,
		lastAt:   e.lastAt,
	}
	h.append(dst[at:at])
	e.raw, e.n = e.raw[:0], 0
	return dst
}

func appendBody(b []byte, r *tape.Record) ([]byte, error) {
	switch {
	case r.Kind == tape.KindEvent && r.Event != nil:
		return event.AppendEvent(b, r.Event), nil
	case r.Kind == tape.KindCommand && r.Command != nil:
		return event.AppendCommand(b, r.Command), nil
	case r.Kind == tape.KindLoad && r.Load != nil:
		for _, v := range loadFields(r.Load) {
			b = binary.AppendVarint(b, int64(*v))
		}
		return b, nil
	case r.Kind == tape.KindHost && r.Host != nil:
		name := r.Host.Name()
		js, err := marshalHost(r.Host)
		if err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		return append(b, js...), nil
	}
	return b, fmt.Errorf("kind %d without its payload", r.Kind)
}

func marshalHost(h tape.Host) ([]byte, error) {
	if u, ok := h.(*Unknown); ok {
		return u.JSON, nil
	}
	return json.Marshal(h)
}

// loadFields lists the fields of a Load in the order in which they are stored.
func loadFields(l *tape.Load) [8]*int {
	return [8]*int{&l.Ready, &l.Running, &l.Pending, &l.Waiting, &l.Active, &l.B, &l.KVUsed, &l.KVTotal}
}
