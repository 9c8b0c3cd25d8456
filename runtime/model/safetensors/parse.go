package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"tokenrouter/runtime/model/tensor"
)

// Limits on what a header may say.
const (
	MaxHeader  = 10 << 20 // bytes; 65,536 tensors need about 8 MiB
	MaxTensors = 1 << 16
	MaxDims    = 8
	maxEntry   = 4 << 10 // bytes of one tensor's entry
	maxMeta    = 1 << 20 // bytes of __metadata__
)

// info is one entry of the header.
type info struct {
	kind       tensor.Type
	shape      []int
	begin, end int64 // byte range in the data section
}

// File is the header of a checked file, with views of its tensors.
type File struct {
	Meta map[string]string // the header's __metadata__, nil if absent

	data    int64 // offset of the data section
	bytes   []byte
	tensors map[string]*info
}

// Error says where a file is damaged, or what in it is not supported, and why.
type Error struct {
	Offset int64 // bytes from the start of the file
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("safetensors: at byte %d: %s", e.Offset, e.Reason)
}

// bad is a damage.
func bad(off int64, format string, args ...any) error {
	return &Error{Offset: off, Reason: fmt.Sprintf(format, args...) + "; fetch the file again"}
}

// unsupported is something sound that is not read here; the text names a cure.
func unsupported(off int64, format string, args ...any) error {
	return &Error{Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// dtypes are the types of the format.
var dtypes = func() map[string]tensor.Type {
	m := map[string]tensor.Type{}
	for _, t := range []tensor.Type{
		tensor.Bool, tensor.U8, tensor.I8, tensor.F8E5M2, tensor.F8E4M3,
		tensor.I16, tensor.U16, tensor.F16, tensor.BF16,
		tensor.I32, tensor.U32, tensor.F32,
		tensor.I64, tensor.U64, tensor.F64,
	} {
		m[t.String()] = t
	}
	return m
}()

// Parse checks a file's bytes, of which it keeps views: they must not change
// while the File is in use.
func Parse(b []byte) (*File, error) {
	size := int64(len(b))
	if tensor.Pointer(b) {
		return nil, unsupported(0, tensor.Fetch)
	}
	if size < 8 {
		return nil, bad(size, "the file ends inside the header length")
	}
	n := binary.LittleEndian.Uint64(b)
	switch {
	case n > MaxHeader:
		return nil, bad(0, "the header claims %d bytes, more than the limit of %d", n, MaxHeader)
	case int64(n) > size-8:
		return nil, bad(0, "the header claims %d bytes, but only %d follow", n, size-8)
	}
	f := &File{data: 8 + int64(n), bytes: b[8+n:], tensors: map[string]*info{}}
	if err := f.parse(b[8 : 8+n]); err != nil {
		return nil, err
	}
	if err := f.checkLayout(size); err != nil {
		return nil, err
	}
	return f, nil
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
		if len(f.tensors) >= MaxTensors {
			return bad(at(), "the header has more tensors than the limit of %d", MaxTensors)
		}
		if f.tensors[name] != nil {
			return bad(at(), "tensor %.80q appears twice", name)
		}
		kind, ok := dtypes[e.DType]
		if !ok {
			return unsupported(at(), "tensor %.80q has dtype %.20q, which is not known here: convert the model to F32, F16 or BF16", name, e.DType)
		}
		t, reason := newInfo(kind, e.Shape, e.Offsets)
		if reason != "" {
			return bad(at(), "tensor %.80q: %s", name, reason)
		}
		f.tensors[name] = t
	}
	if _, err := dec.Token(); err != nil {
		return bad(at(), "the header is not valid JSON: its end is missing")
	}
	if rest := bytes.TrimLeft(head[dec.InputOffset():], " \t\r\n\x00"); len(rest) > 0 {
		return bad(8+int64(len(head)-len(rest)), "the header goes on after its JSON object")
	}
	return nil
}

// newInfo checks one entry of a known type in itself: a sane shape, a byte range
// of exactly the shape's size.
func newInfo(kind tensor.Type, shape []int64, off []uint64) (*info, string) {
	switch {
	case len(shape) > MaxDims:
		return nil, fmt.Sprintf("%d dimensions, more than the limit of %d", len(shape), MaxDims)
	case len(off) != 2:
		return nil, fmt.Sprintf("data_offsets needs a begin and an end, it has %d numbers", len(off))
	case off[0] > off[1] || off[1] > math.MaxInt64:
		return nil, fmt.Sprintf("data_offsets %d..%d are not a byte range", off[0], off[1])
	}
	t := &info{kind: kind, begin: int64(off[0]), end: int64(off[1])}
	bytes := int64(kind.BlockBytes())
	for _, d := range shape {
		if d < 0 || d > math.MaxInt32 {
			return nil, fmt.Sprintf("dimension %d is out of range", d)
		}
		if d > 0 && bytes > math.MaxInt64/d {
			return nil, fmt.Sprintf("the product of the dimensions %v overflows", shape)
		}
		bytes *= d
		t.shape = append(t.shape, int(d))
	}
	if bytes != t.end-t.begin {
		return nil, fmt.Sprintf("shape %v of %s needs %d bytes, data_offsets hold %d", shape, kind, bytes, t.end-t.begin)
	}
	return t, ""
}

// checkLayout checks the entries against each other and the file: together
// they fill the data section once, without overlap or hole.
func (f *File) checkLayout(size int64) error {
	names := f.Names()
	slices.SortStableFunc(names, func(a, b string) int { // of equal ranges, by name
		p, q := f.tensors[a], f.tensors[b]
		return cmp.Or(cmp.Compare(p.begin, q.begin), cmp.Compare(p.end, q.end))
	})
	room := size - f.data
	var pos int64
	for _, name := range names {
		switch t := f.tensors[name]; {
		case t.end > room:
			return bad(size, "tensor %.80q ends at byte %d of the data, but the file holds only %d", name, t.end, room)
		case t.begin < pos:
			return bad(f.data+t.begin, "tensor %.80q overlaps the one before it", name)
		case t.begin > pos:
			return bad(f.data+pos, "%d bytes belong to no tensor", t.begin-pos)
		default:
			pos = t.end
		}
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

// Tensor finds a tensor by its name.
func (f *File) Tensor(name string) (tensor.Tensor, bool) {
	t, ok := f.tensors[name]
	if !ok {
		return tensor.Tensor{}, false
	}
	return tensor.Tensor{Name: name, Type: t.kind, Shape: t.shape, Data: f.bytes[t.begin:t.end:t.end]}, true
}
