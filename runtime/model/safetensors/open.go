package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
)

// Limits on what a header may say.
const (
	MaxHeader = 100 << 20 // bytes, as in the reference implementation
	MaxDims   = 8
	maxEntry  = 4 << 10 // bytes of one tensor's entry
	maxMeta   = 1 << 20 // bytes of __metadata__
)

// Info describes one tensor.
type Info struct {
	Name       string
	DType      string // "F32", "F16", "BF16" are readable here
	Shape      []int
	Begin, End int64 // byte range in the file's data section
}

// Len is the number of values.
func (t *Info) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is an open safetensors file. It is safe for concurrent use when its
// reader is.
type File struct {
	r       io.ReaderAt
	data    int64 // offset of the data section
	tensors map[string]*Info
	Meta    map[string]string // the header's __metadata__, nil if absent
}

// Error says where a file is damaged and why.
type Error struct {
	Offset int64 // bytes from the start of the file
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("safetensors: at byte %d: %s; fetch the file again", e.Offset, e.Reason)
}

func bad(off int64, format string, args ...any) error {
	return &Error{Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// dtypeSize is the size in bytes of a value of each type of the format.
var dtypeSize = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1,
	"I16": 2, "U16": 2, "F16": 2, "BF16": 2,
	"I32": 4, "U32": 4, "F32": 4,
	"I64": 8, "U64": 8, "F64": 8,
}

// Open reads and checks the header of a file of the given size in bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	if size < 8 {
		return nil, bad(max(size, 0), "the file ends inside the header length")
	}
	var prefix [8]byte
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeader {
		return nil, bad(0, "the header claims %d bytes, more than the limit of %d", n, MaxHeader)
	}
	if int64(n) > size-8 {
		return nil, bad(0, "the header claims %d bytes, but only %d follow", n, size-8)
	}
	head := make([]byte, n)
	if err := readFull(r, head, 8); err != nil {
		return nil, err
	}
	f := &File{r: r, data: 8 + int64(n), tensors: map[string]*Info{}}
	if err := f.parse(head); err != nil {
		return nil, err
	}
	if err := f.checkLayout(size); err != nil {
		return nil, err
	}
	return f, nil
}

func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return bad(off+int64(n), "the file ends here")
	}
	return fmt.Errorf("safetensors: reading at byte %d: %w", off+int64(n), err)
}

// parse fills f.tensors from the JSON header, refusing duplicate names.
func (f *File) parse(head []byte) error {
	dec := json.NewDecoder(bytes.NewReader(head))
	at := func() int64 { return 8 + dec.InputOffset() }
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return bad(8, "the header is not a JSON object")
	}
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return bad(at(), "the header is not valid JSON: a tensor name should stand here")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return bad(at(), "the header is not valid JSON after %.80q: %v", name, err)
		}
		if name == "__metadata__" {
			if f.Meta != nil {
				return bad(at(), "__metadata__ appears twice")
			}
			if len(raw) > maxMeta {
				return bad(at(), "__metadata__ has %d bytes, more than the limit of %d", len(raw), maxMeta)
			}
			f.Meta = map[string]string{}
			if err := json.Unmarshal(raw, &f.Meta); err != nil {
				return bad(at(), "__metadata__ is not an object of strings: %v", err)
			}
			continue
		}
		if len(raw) > maxEntry {
			return bad(at(), "the entry of tensor %.80q has %d bytes, more than the limit of %d", name, len(raw), maxEntry)
		}
		var e struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets []uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return bad(at(), "the entry of tensor %.80q is damaged: %v", name, err)
		}
		if f.tensors[name] != nil {
			return bad(at(), "tensor %.80q appears twice", name)
		}
		info, reason := newInfo(name, e.DType, e.Shape, e.Offsets)
		if reason != "" {
			return bad(at(), "tensor %.80q: %s", name, reason)
		}
		f.tensors[name] = info
	}
	if _, err := dec.Token(); err != nil {
		return bad(at(), "the header is not valid JSON: its end is missing")
	}
	if rest := bytes.TrimLeft(head[dec.InputOffset():], " \t\r\n\x00"); len(rest) > 0 {
		return bad(8+int64(len(head)-len(rest)), "the header goes on after its JSON object")
	}
	return nil
}

// newInfo checks one entry in itself: known type, sane shape, a byte range of
// exactly the shape's size.
func newInfo(name, dtype string, shape []int64, off []uint64) (*Info, string) {
	size, ok := dtypeSize[dtype]
	switch {
	case !ok:
		return nil, fmt.Sprintf("unknown dtype %.20q", dtype)
	case len(shape) > MaxDims:
		return nil, fmt.Sprintf("%d dimensions, more than the limit of %d", len(shape), MaxDims)
	case len(off) != 2:
		return nil, fmt.Sprintf("data_offsets needs a begin and an end, it has %d numbers", len(off))
	case off[0] > off[1] || off[1] > math.MaxInt64:
		return nil, fmt.Sprintf("data_offsets %d..%d are not a byte range", off[0], off[1])
	}
	t := &Info{Name: name, DType: dtype, Begin: int64(off[0]), End: int64(off[1])}
	bytes := size
	for _, d := range shape {
		if d < 0 || d > math.MaxInt32 {
			return nil, fmt.Sprintf("dimension %d is out of range", d)
		}
		if d > 0 && bytes > math.MaxInt64/d {
			return nil, fmt.Sprintf("the product of the dimensions %v overflows", shape)
		}
		bytes *= d
		t.Shape = append(t.Shape, int(d))
	}
	if bytes != t.End-t.Begin {
		return nil, fmt.Sprintf("shape %v of %s needs %d bytes, data_offsets hold %d", shape, dtype, bytes, t.End-t.Begin)
	}
	return t, ""
}

// checkLayout checks the entries against each other and the file: together
// they fill the data section once, without overlap or hole.
func (f *File) checkLayout(size int64) error {
	all := make([]*Info, 0, len(f.tensors))
	for _, t := range f.tensors {
		all = append(all, t)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.Begin != b.Begin {
			return a.Begin < b.Begin
		}
		if a.End != b.End {
			return a.End < b.End
		}
		return a.Name < b.Name
	})
	room := size - f.data
	var pos int64
	for _, t := range all {
		switch {
		case t.End > room:
			return bad(size, "tensor %.80q ends at byte %d of the data, but the file holds only %d", t.Name, t.End, room)
		case t.Begin < pos:
			return bad(f.data+t.Begin, "tensor %.80q overlaps the one before it", t.Name)
		case t.Begin > pos:
			return bad(f.data+pos, "%d bytes belong to no tensor", t.Begin-pos)
		}
		pos = t.End
	}
	if pos != room {
		return bad(f.data+pos, "%d bytes belong to no tensor", room-pos)
	}
	return nil
}

// Names lists the tensors in the order of their names.
func (f *File) Names() []string {
	names := make([]string, 0, len(f.tensors))
	for n := range f.tensors {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Lookup finds a tensor's description.
func (f *File) Lookup(name string) (Info, bool) {
	t, ok := f.tensors[name]
	if !ok {
		return Info{}, false
	}
	return *t, true
}
