package format

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Summary is what a file holds, known without decompressing it.
type Summary struct {
	Version  int
	Frames   int
	Records  uint64
	FirstSeq uint64 // of the first record, 0 if there is none
	LastSeq  uint64
	LastAt   int64  // ns since the session began, of the last record
	Missing  uint64 // record numbers that no good frame holds though later ones do
	Good     int64  // bytes from the start that hold good frames
	Cut      *Cut   // what lies behind them, nil if nothing does
}

// Cut describes the part of a file that cannot be used: the first bad frame and
// all that follows it.
type Cut struct {
	Offset  int64 // of the first bad frame
	Bytes   int64 // from there to the end of the file
	Lost    uint64
	Corrupt bool   // bytes are wrong; otherwise the file just ends too early
	Why     string // in words
}

// Error makes a Cut usable as an error.
func (c *Cut) Error() string {
	lost := ""
	if c.Lost > 0 {
		lost = fmt.Sprintf(", with at least %d records", c.Lost)
	}
	if c.Offset == 0 {
		return fmt.Sprintf("the tape ends within its header, after %d bytes", c.Bytes)
	}
	if c.Corrupt {
		return fmt.Sprintf("the frame at offset %d is corrupt (%s): %d bytes from there on were cut%s", c.Offset, c.Why, c.Bytes, lost)
	}
	return fmt.Sprintf("the last frame was incomplete: %d bytes from offset %d were cut%s", c.Bytes, c.Offset, lost)
}

// Scan checks all frames of a tape of size bytes and stops at the first bad
// one. A damaged tail is no error: it is in Summary.Cut. An error means that r
// is no tape, has a version that is not read here, or cannot be read.
func Scan(r io.ReaderAt, size int64) (Summary, error) {
	s := Summary{Version: Version}
	var head [HeaderSize]byte
	n, err := readAt(r, head[:min(size, HeaderSize)], 0)
	if err != nil {
		return s, err
	}
	if n < HeaderSize {
		if m := min(n, len(magic)); string(head[:m]) != magic[:m] {
			return s, fmt.Errorf("the file is no tape: it does not begin with %q", magic)
		}
		s.Cut = &Cut{Bytes: int64(n), Why: "the file ends within its header"}
		return s, nil
	}
	if s.Version, err = checkHeader(head[:]); err != nil {
		return s, err
	}
	s.Good = HeaderSize
	var buf []byte
	for s.Good < size {
		h, b, cut, err := frameAt(r, size, s.Good, buf)
		if err != nil {
			return s, err
		}
		if cut == nil && h.firstSeq <= s.LastSeq {
			cut = &Cut{Corrupt: true, Why: fmt.Sprintf("it begins with record %d, after record %d", h.firstSeq, s.LastSeq)}
		}
		if cut != nil {
			cut.Offset, cut.Bytes = s.Good, size-s.Good
			if cut.Lost, err = lost(r, size, s.Good, s.LastSeq); err != nil {
				return s, err
			}
			s.Cut = cut
			return s, nil
		}
		buf = b
		s.add(&h)
	}
	return s, nil
}

func (s *Summary) add(h *frameHeader) {
	if s.Frames == 0 {
		s.FirstSeq = h.firstSeq
	} else {
		s.Missing += h.firstSeq - s.LastSeq - 1
	}
	s.Missing += h.span() - uint64(h.records)
	s.Frames++
	s.Records += uint64(h.records)
	s.LastSeq = h.lastSeq
	s.LastAt = h.lastAt
	s.Good += FrameHeaderSize + int64(h.payload)
}

// frameAt reads the frame at off into buf and checks it.
func frameAt(r io.ReaderAt, size, off int64, buf []byte) (frameHeader, []byte, *Cut, error) {
	var h frameHeader
	var head [FrameHeaderSize]byte
	if size-off < FrameHeaderSize {
		return h, buf, &Cut{Why: "the file ends within a frame's header"}, nil
	}
	if _, err := readAt(r, head[:], off); err != nil {
		return h, buf, nil, err
	}
	if err := h.parse(head[:]); err != nil {
		return h, buf, &Cut{Corrupt: true, Why: err.Error()}, nil
	}
	off += FrameHeaderSize
	if size-off < int64(h.payload) {
		return h, buf, &Cut{Why: "the file ends within a frame"}, nil
	}
	if cap(buf) < int(h.payload) {
		buf = make([]byte, h.payload)
	}
	buf = buf[:h.payload]
	if _, err := readAt(r, buf, off); err != nil {
		return h, buf, nil, err
	}
	if crc32.Checksum(buf, castagnoli) != h.crc {
		return h, buf, &Cut{Corrupt: true, Why: "the checksum of its payload is wrong"}, nil
	}
	return h, buf, nil, nil
}

// resyncSpan bounds the search for a good frame header behind a bad one: the
// size of many ordinary frames.
const resyncSpan = 4 << 20

// lost counts records behind last that good frame headers from off on still
// tell of. Frames whose headers are gone too are counted where the numbers of a
// later frame show the gap.
func lost(r io.ReaderAt, size, off int64, last uint64) (uint64, error) {
	end := last
	buf := make([]byte, 64<<10)
	for limit := min(size, off+resyncSpan); off+FrameHeaderSize <= limit; {
		n, err := readAt(r, buf[:min(int64(len(buf)), size-off)], off)
		if err != nil {
			return 0, err
		}
		step := int64(n - FrameHeaderSize + 1)
		for i := 0; i+FrameHeaderSize <= n; i++ {
			var h frameHeader
			if h.parse(buf[i:i+FrameHeaderSize]) == nil && h.firstSeq > end {
				end = h.lastSeq
				step = int64(i) + FrameHeaderSize + int64(h.payload)
				limit = min(size, off+step+resyncSpan)
				break
			}
		}
		off += step
	}
	return end - last, nil
}

func readAt(r io.ReaderAt, b []byte, off int64) (int, error) {
	n, err := r.ReadAt(b, off)
	if n == len(b) || errors.Is(err, io.EOF) && n == len(b) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("the tape cannot be read at offset %d: %w", off+int64(n), err)
}
