package format

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// Unknown is a host payload whose name this program does not know; only lenient
// reading yields it. It is stored again byte for byte.
type Unknown struct {
	Label string
	JSON  []byte
}

// Name implements tape.Host.
func (u *Unknown) Name() string { return u.Label }

// Options of reading. The zero value is strict: a payload with an unknown name
// or an unknown field is an error. Lenient keeps unknown payloads as *Unknown,
// ignores unknown fields and leaves out records of an unknown kind.
type Options struct {
	Lenient bool
}

// Records yields the records of the good part of a scanned tape, in order. An
// error ends the sequence.
func Records(r io.ReaderAt, s Summary, o Options) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		z, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(MaxRaw))
		if err != nil {
			yield(tape.Record{}, fmt.Errorf("tape decompressor: %w", err))
			return
		}
		defer z.Close()
		var buf, raw []byte
		for off := int64(HeaderSize); off < s.Good; {
			h, b, cut, err := frameAt(r, s.Good, off, buf)
			if err == nil && cut != nil {
				cut.Offset, cut.Bytes = off, s.Good-off
				err = cut
			}
			if err == nil {
				buf = b
				raw, err = z.DecodeAll(b, raw[:0])
				if err == nil && len(raw) != int(h.raw) {
					err = fmt.Errorf("%d bytes instead of %d", len(raw), h.raw)
				}
				if err != nil {
					err = fmt.Errorf("the frame at offset %d cannot be decompressed: %w", off, err)
				}
			}
			if err != nil {
				yield(tape.Record{}, err)
				return
			}
			d := decoder{src: raw, seq: h.firstSeq - 1, last: h.lastSeq, left: h.records, opts: o}
			for d.more() {
				rec, skip, err := d.next()
				if err != nil {
					yield(tape.Record{}, fmt.Errorf("the frame at offset %d is damaged: %w", off, err))
					return
				}
				if !skip && !yield(rec, nil) {
					return
				}
			}
			off += FrameHeaderSize + int64(h.payload)
		}
	}
}

// decoder reads the records of one frame.
type decoder struct {
	src  []byte
	seq  uint64
	last uint64 // number of the last record
	at   int64
	left uint32
	opts Options
}

func (d *decoder) more() bool { return d.left > 0 || len(d.src) > 0 }

var errShort = errors.New("it ends too early")

func (d *decoder) next() (tape.Record, bool, error) {
	if d.left == 0 {
		return tape.Record{}, false, fmt.Errorf("%d bytes lie behind its last record", len(d.src))
	}
	d.left--
	b, rest, err := chunk(d.src)
	if err != nil {
		return tape.Record{}, false, fmt.Errorf("after record %d: %w", d.seq, err)
	}
	d.src = rest
	skipped, n := binary.Uvarint(b)
	if n <= 0 || skipped >= d.last-d.seq || d.left == 0 && d.seq+skipped+1 != d.last {
		return tape.Record{}, false, fmt.Errorf("after record %d: bad record number", d.seq)
	}
	b = b[n:]
	d.seq += skipped + 1
	r := tape.Record{Seq: d.seq}
	skip, err := d.record(&r, b)
	if err != nil {
		return r, false, fmt.Errorf("record %d: %w", d.seq, err)
	}
	return r, skip, nil
}

func (d *decoder) record(r *tape.Record, b []byte) (skip bool, err error) {
	dt, n := binary.Varint(b)
	if n <= 0 {
		return false, errShort
	}
	b = b[n:]
	if d.at += dt; d.at < 0 { // or too far for the clock
		return false, errors.New("its time lies outside the session")
	}
	r.At = d.at
	core, n := binary.Varint(b)
	if n <= 0 || core < math.MinInt16 || core > math.MaxInt16 || len(b) == n {
		return false, errors.New("bad core")
	}
	r.Core, r.Kind, b = event.Peer(core), tape.Kind(b[n]), b[n+1:]
	switch r.Kind {
	case tape.KindEvent:
		ev, n, err := event.DecodeEvent(b)
		r.Event = &ev
		return false, whole(b, n, err)
	case tape.KindCommand:
		c, n, err := event.DecodeCommand(b)
		r.Command = &c
		return false, whole(b, n, err)
	case tape.KindLoad:
		r.Load = new(tape.Load)
		return false, decodeLoad(b, r.Load)
	case tape.KindHost:
		r.Host, err = decodeHost(b, d.opts)
		return false, err
	}
	if d.opts.Lenient {
		return true, nil
	}
	return false, fmt.Errorf("kind %d is not known to this tokenrouter: use a newer one", r.Kind)
}

func whole(b []byte, n int, err error) error {
	if err == nil && n != len(b) {
		return fmt.Errorf("%d bytes lie behind its end", len(b)-n)
	}
	return err
}

func decodeLoad(b []byte, l *tape.Load) error {
	for _, f := range loadFields(l) {
		v, n := binary.Varint(b)
		if n <= 0 || int64(int(v)) != v {
			return errShort
		}
		*f, b = int(v), b[n:]
	}
	return whole(b, 0, nil)
}

func decodeHost(b []byte, o Options) (tape.Host, error) {
	name, js, err := chunk(b)
	if err != nil {
		return nil, err
	}
	h := tape.NewHost(string(name))
	if h == nil {
		if o.Lenient {
			return &Unknown{Label: string(name), JSON: append([]byte(nil), js...)}, nil
		}
		return nil, fmt.Errorf("the payload %q is not known to this tokenrouter: use a newer one", name)
	}
	dec := json.NewDecoder(strings.NewReader(string(js)))
	if !o.Lenient {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(h); err != nil {
		return nil, fmt.Errorf("the payload %q: %w", name, err)
	}
	if dec.InputOffset() != int64(len(js)) {
		return nil, fmt.Errorf("the payload %q: bytes lie behind its end", name)
	}
	return h, nil
}

// chunk takes a length-prefixed part from the front of b.
func chunk(b []byte) (part, rest []byte, err error) {
	l, n := binary.Uvarint(b)
	if n <= 0 || l > uint64(len(b)-n) {
		return nil, nil, errShort
	}
	return b[n : n+int(l)], b[n+int(l):], nil
}
