package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"tokenrouter/runtime/model/tensor"
)

// cursor walks over a file. Its methods fail where the file ends.
type cursor struct {
	b   []byte
	pos int
}

// subject is what a damage is in. It becomes text only when there is one.
type subject struct {
	format string // with one verb for the name, or none
	name   string
}

func (s subject) String() string {
	if !strings.Contains(s.format, "%") {
		return s.format
	}
	return fmt.Sprintf(s.format, s.name)
}

// bad is a damage at an offset.
func bad(off int, format string, args ...any) error {
	return &Error{Offset: int64(off), Reason: fmt.Sprintf(format, args...) + "; fetch the file again"}
}

// unsupported is something sound that is not read here; the text names a cure.
func unsupported(off int, format string, args ...any) error {
	return &Error{Offset: int64(off), Reason: fmt.Sprintf(format, args...)}
}

func (c *cursor) left() uint64 { return uint64(len(c.b) - c.pos) }

func (c *cursor) take(n int, what subject) ([]byte, error) {
	if uint64(n) > c.left() {
		return nil, bad(len(c.b), "the file ends inside %s", what)
	}
	p := c.b[c.pos : c.pos+n]
	c.pos += n
	return p, nil
}

func (c *cursor) u32(what subject) (uint32, error) {
	p, err := c.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(p), nil
}

func (c *cursor) u64(what subject) (uint64, error) {
	p, err := c.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(p), nil
}

// str reads a string of at most limit bytes as a view.
func (c *cursor) str(limit uint64, what subject) ([]byte, error) {
	at := c.pos
	n, err := c.u64(what)
	switch {
	case err != nil:
		return nil, err
	case n > limit:
		return nil, bad(at, "%s claims %d bytes, more than the limit of %d", what, n, limit)
	case n > c.left():
		return nil, bad(at, "%s claims %d bytes, but only %d follow", what, n, c.left())
	}
	return c.take(int(n), what)
}

// count reads a number of things. Nothing is allocated by it.
func (c *cursor) count(limit uint64, things subject) (int, error) {
	at := c.pos
	n, err := c.u64(things)
	switch {
	case err != nil:
		return 0, err
	case n > limit:
		return 0, bad(at, "%s: the file claims %d, more than the limit of %d", things, n, limit)
	}
	return int(n), nil
}

// Parse checks a file's bytes, of which it keeps views: they must not change
// while the File is in use.
func Parse(b []byte) (*File, error) {
	f := &File{Alignment: DefaultAlignment, raw: b, meta: map[string]value{}, byName: map[string]int{}}
	c := &cursor{b: b}
	magic, err := c.take(4, subject{format: "the magic number"})
	switch {
	case err != nil:
		return nil, err
	case tensor.Pointer(b):
		return nil, unsupported(0, tensor.Fetch)
	case string(magic) != "GGUF":
		return nil, unsupported(0, "the file begins with %q and not with GGUF: it is no GGUF file", magic)
	}
	if err := f.version(c); err != nil {
		return nil, err
	}
	tensors, err := c.count(MaxTensors, subject{format: "the number of tensors"})
	if err != nil {
		return nil, err
	}
	keys, err := c.count(MaxKeys, subject{format: "the number of metadata keys"})
	if err != nil {
		return nil, err
	}
	if err := f.parseMeta(c, keys); err != nil {
		return nil, err
	}
	if err := f.setAlignment(); err != nil {
		return nil, err
	}
	if n, ok := f.Uint("split.count"); ok && n > 1 {
		return nil, unsupported(f.meta["split.count"].key, "the file is one of %d parts of a split model, which is not supported: join them with llama-gguf-split --merge", n)
	}
	places, err := f.parseTensors(c, tensors)
	if err != nil {
		return nil, err
	}
	if err := f.place(c.pos, places); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) version(c *cursor) error {
	v, err := c.u32(subject{format: "the version"})
	switch {
	case err != nil:
		return err
	case v == 2 || v == 3:
		f.Version = int(v)
		return nil
	case v == 1:
		return unsupported(4, "version 1 of GGUF is not supported: convert the model again with a llama.cpp of today")
	case v&0xffff == 0 && v != 0:
		return unsupported(4, "the file is big-endian, which is not supported: convert it with gguf_convert_endian.py of llama.cpp")
	}
	return unsupported(4, "version %d of GGUF is not known here, only 2 and 3: use a newer program or an older file", v)
}

// place is where a tensor's entry stands and where its bytes are said to be.
type place struct {
	entry  int    // offset of the entry in the table
	offset uint64 // in the data section
	size   uint64
}

// parseTensors reads the table of tensors; Data are set by place.
func (f *File) parseTensors(c *cursor, n int) ([]place, error) {
	// An entry takes 24 bytes at least, so no more is set aside than the file has.
	most := min(n, len(c.b)/24)
	places := make([]place, 0, most)
	f.tensors = make([]tensor.Tensor, 0, most)
	for range n {
		t, p, err := parseTensor(c)
		if err != nil {
			return nil, err
		}
		if _, ok := f.byName[t.Name]; ok {
			return nil, bad(p.entry, "tensor %.80q appears twice", t.Name)
		}
		f.byName[t.Name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
		places = append(places, p)
	}
	return places, nil
}

// parseTensor reads one entry of the table and checks it in itself.
func parseTensor(c *cursor) (t tensor.Tensor, p place, err error) {
	p.entry = c.pos
	name, err := c.str(MaxNameBytes, subject{format: "a tensor's name"})
	if err != nil {
		return t, p, err
	}
	t.Name = string(name)
	what := subject{"the entry of tensor %.80q", t.Name}
	at := c.pos
	dims, err := c.u32(what)
	switch {
	case err != nil:
		return t, p, err
	case dims > MaxDims:
		return t, p, bad(at, "tensor %.80q has %d dimensions, more than the limit of %d", t.Name, dims, MaxDims)
	}
	values := uint64(1)
	t.Shape = make([]int, dims)
	for i := range t.Shape {
		at := c.pos
		d, err := c.u64(what)
		switch {
		case err != nil:
			return t, p, err
		case d == 0 || d > math.MaxInt32:
			return t, p, bad(at, "tensor %.80q: dimension %d is out of range", t.Name, d)
		case values > math.MaxInt64/8/d: // 8 is the largest number of bytes a value takes
			return t, p, bad(at, "tensor %.80q: the product of the dimensions overflows", t.Name)
		}
		values *= d
		t.Shape[len(t.Shape)-1-i] = int(d) // the file has the row's length first
	}
	at = c.pos
	kind, err := c.u32(what)
	if err != nil {
		return t, p, err
	}
	t.Type = tensor.Type(kind)
	if kind >= 1000 || !t.Type.Named() {
		return t, p, unsupported(at, "tensor %.80q is of type %d, which is not known here: convert the model to one of %v", t.Name, kind, tensor.Readable())
	}
	if t.Cols()%t.Type.Block() != 0 {
		return t, p, bad(at, "tensor %.80q: a row of %d values is no whole number of blocks of %s (%d values)", t.Name, t.Cols(), t.Type, t.Type.Block())
	}
	p.size = values / uint64(t.Type.Block()) * uint64(t.Type.BlockBytes())
	p.offset, err = c.u64(what)
	return t, p, err
}

// place gives the tensors their bytes and checks that these lie inside the
// file, at multiples of the alignment, and do not overlap. end is the end of
// the table.
func (f *File) place(end int, places []place) error {
	if len(places) == 0 {
		return nil
	}
	size := uint64(len(f.raw))
	mask := uint64(f.Alignment) - 1
	start := (uint64(end) + mask) &^ mask
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch p, q := &places[a], &places[b]; {
		case p.offset < q.offset:
			return -1
		case p.offset > q.offset:
			return 1
		}
		return a - b
	})
	var used uint64 // end of the tensor before, in the data section
	before := ""
	for _, i := range order {
		p, t := &places[i], &f.tensors[i]
		switch {
		case p.offset&mask != 0:
			return bad(p.entry, "tensor %.80q begins at byte %d of the data, which is no multiple of the alignment of %d", t.Name, p.offset, f.Alignment)
		case p.offset < used:
			return bad(p.entry, "tensor %.80q overlaps tensor %.80q", t.Name, before)
		case start > size, p.offset > size-start, p.size > size-start-p.offset:
			return bad(len(f.raw), "the file ends here, but tensor %.80q needs %d bytes from byte %d of the data, which begin at byte %d", t.Name, p.size, p.offset, start)
		}
		from := start + p.offset
		t.Data = f.raw[from : from+p.size : from+p.size]
		used, before = p.offset+p.size, t.Name
	}
	return nil
}
