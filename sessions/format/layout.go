package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Version is the format that this program writes; it reads all from version 1
// on. Version 2 added kinds of events, commands and payloads, and KV blocks to
// the rows of a batch, version 3 the policy lock-step, version 4 TRUNCATE, tokens
// that are held back, scores of rows and the family of a request.
const Version = 4

// Sizes in bytes. A frame is sealed as soon as FrameTarget raw bytes are
// waiting; MaxRecord and MaxRaw are what a reader accepts.
const (
	HeaderSize      = 16
	FrameHeaderSize = 44
	FrameTarget     = 256 << 10
	MaxRecord       = 16 << 20
	MaxRaw          = MaxRecord + FrameTarget
	maxPayload      = MaxRaw + MaxRaw/64 + 1024 // zstd never grows its input by more
)

// The line ending in the magic shows a transfer in text mode.
const magic = "TRTAPE\r\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header returns the first HeaderSize bytes of a tape: magic, version, CRC-32C
// of both. Every later version keeps this layout.
func Header() []byte { return headerOf(Version) }

func headerOf(version uint32) []byte {
	b := append(make([]byte, 0, HeaderSize), magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// VersionError says that a file was written in a format this program does not
// read.
type VersionError struct {
	What string // tape, manifest
	Have int
	Want int // newest version that this program reads
}

func (e *VersionError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("the %s has format version %d and this tokenrouter reads up to %d: use a tokenrouter that reads format %d",
			e.What, e.Have, e.Want, e.Have)
	}
	return fmt.Sprintf("the %s has format version %d, which never existed: the file is damaged", e.What, e.Have)
}

// checkHeader judges a complete header and gives its version.
func checkHeader(b []byte) (version int, err error) {
	if string(b[:len(magic)]) != magic {
		return 0, fmt.Errorf("the file is no tape: it does not begin with %q", magic)
	}
	if crc32.Checksum(b[:12], castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return 0, fmt.Errorf("the tape's header is damaged: its checksum is wrong")
	}
	v := binary.LittleEndian.Uint32(b[8:])
	version = int(min(v, math.MaxInt32))
	if v < 1 || v > Version {
		return version, &VersionError{What: "tape", Have: version, Want: Version}
	}
	return version, nil
}

// frameHeader stands before each frame's payload. It has a checksum of its own,
// so that a reader knows what a frame held even where the payload is gone.
type frameHeader struct {
	payload  uint32 // compressed bytes that follow
	raw      uint32 // bytes after decompression
	records  uint32
	crc      uint32 // CRC-32C of the payload
	firstSeq uint64
	lastSeq  uint64
	lastAt   int64 // ns, of the last record
}

func (h *frameHeader) append(dst []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, h.payload)
	dst = binary.LittleEndian.AppendUint32(dst, h.raw)
	dst = binary.LittleEndian.AppendUint32(dst, h.records)
	dst = binary.LittleEndian.AppendUint32(dst, h.crc)
	dst = binary.LittleEndian.AppendUint64(dst, h.firstSeq)
	dst = binary.LittleEndian.AppendUint64(dst, h.lastSeq)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.lastAt))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// parse reads FrameHeaderSize bytes. Its error is the reason in words.
func (h *frameHeader) parse(b []byte) error {
	if crc32.Checksum(b[:40], castagnoli) != binary.LittleEndian.Uint32(b[40:]) {
		return fmt.Errorf("the checksum of its header is wrong")
	}
	*h = frameHeader{
		payload:  binary.LittleEndian.Uint32(b),
		raw:      binary.LittleEndian.Uint32(b[4:]),
		records:  binary.LittleEndian.Uint32(b[8:]),
		crc:      binary.LittleEndian.Uint32(b[12:]),
		firstSeq: binary.LittleEndian.Uint64(b[16:]),
		lastSeq:  binary.LittleEndian.Uint64(b[24:]),
		lastAt:   int64(binary.LittleEndian.Uint64(b[32:])),
	}
	switch {
	case h.payload == 0 || h.payload > maxPayload || h.raw == 0 || h.raw > MaxRaw:
		return fmt.Errorf("its header claims %d bytes for %d, more than a frame may have", h.payload, h.raw)
	case h.records == 0 || h.records > h.raw/minRecord:
		return fmt.Errorf("its header claims %d records in %d bytes", h.records, h.raw)
	case h.firstSeq == 0 || h.lastSeq > math.MaxInt64 || h.firstSeq > h.lastSeq || h.span() < uint64(h.records):
		return fmt.Errorf("its header claims %d records from number %d to %d", h.records, h.firstSeq, h.lastSeq)
	}
	return nil
}

// span is the number of records that the frame would hold without gaps.
func (h *frameHeader) span() uint64 { return h.lastSeq - h.firstSeq + 1 }

// minRecord is the least a record takes: length, seq, at, core, kind.
const minRecord = 5
