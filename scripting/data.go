package scripting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Plain data (r.state, fields) travels as bytes in one canonical form: equal
// tables give equal bytes, whatever order they were filled in. A value is a tag
// and its content:
//
//	false, true        nothing
//	integer            zigzag varint; whole numbers of magnitude below 2^53
//	float              8 bytes, little endian
//	string             length varint, bytes
//	table              count n, values 1..n; count m, m pairs of key and value
//
// Keys are integers, floats and strings in this order, each rising. The empty
// table at the top is no bytes at all.
const (
	tagFalse byte = iota
	tagTrue
	tagInt
	tagFloat
	tagString
	tagTable
)

// MaxData is the size of the largest r.state or fields, in bytes.
const MaxData = 4 << 10

const (
	maxDepth = 16
	maxGap   = 64 << 10 // nil values that far indices may cost in all tables together
)

var errData = errors.New("not plain data in canonical form")

// encoder appends canonical data; it keeps its scratch space between calls.
type encoder struct {
	buf  []byte
	path []string
	keys []lua.LValue
	gap  int
}

// encode returns the canonical bytes of t in a buffer that the next call
// overwrites. name is what messages call it.
func (e *encoder) encode(name string, t *lua.LTable) ([]byte, error) {
	e.buf, e.path, e.keys, e.gap = e.buf[:0], append(e.path[:0], name), e.keys[:0], 0
	if first, _ := t.Next(lua.LNil); first == lua.LNil {
		return nil, nil
	}
	return e.buf, e.table(t)
}

func (e *encoder) fail(format string, args ...any) error {
	return fmt.Errorf("%s %s", strings.Join(e.path, ""), fmt.Sprintf(format, args...))
}

func (e *encoder) value(v lua.LValue) error {
	switch v := v.(type) {
	case lua.LBool:
		tag := tagFalse
		if v {
			tag = tagTrue
		}
		e.buf = append(e.buf, tag)
	case lua.LNumber:
		e.number(float64(v))
	case lua.LString:
		e.text(string(v))
	case *lua.LTable:
		return e.table(v)
	default:
		return e.fail("is a %s; only numbers, strings, booleans and tables of them travel", v.Type())
	}
	if len(e.buf) > MaxData {
		return e.tooBig()
	}
	return nil
}

func (e *encoder) tooBig() error {
	e.path = e.path[:1]
	return e.fail("takes more than %d bytes", MaxData)
}

func (e *encoder) number(v float64) {
	if i := int64(v); float64(i) == v && i > -1<<53 && i < 1<<53 && (i != 0 || !math.Signbit(v)) {
		e.buf = binary.AppendVarint(append(e.buf, tagInt), i)
		return
	}
	if math.IsNaN(v) {
		v = math.NaN() // one of the many
	}
	e.buf = binary.LittleEndian.AppendUint64(append(e.buf, tagFloat), math.Float64bits(v))
}

func (e *encoder) text(s string) {
	if len(s) > MaxData {
		s = s[:MaxData] // the size check behind it fails
	}
	e.buf = binary.AppendUvarint(append(e.buf, tagString), uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) table(t *lua.LTable) error {
	if len(e.path) > maxDepth {
		e.path = e.path[:1]
		return e.fail("is nested deeper than %d levels, or contains itself", maxDepth)
	}
	n := 0
	for n < MaxData && t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	e.buf = binary.AppendUvarint(append(e.buf, tagTable), uint64(n))
	for i := 1; i <= n; i++ {
		if err := e.child(lua.LNumber(i), t.RawGetInt(i)); err != nil {
			return err
		}
	}
	base, far := len(e.keys), n
	defer func() { e.keys = e.keys[:base] }()
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		switch key := k.(type) {
		case lua.LNumber:
			if key >= 1 && key <= lua.LNumber(n) && key == lua.LNumber(int(key)) {
				continue
			}
			if inArray(key) {
				far = max(far, int(key))
			}
		case lua.LString:
		default:
			return e.fail("has a key that is a %s; keys are strings and numbers", k.Type())
		}
		if len(e.keys)-base >= MaxData {
			return e.tooBig()
		}
		e.keys = append(e.keys, k)
	}
	if e.gap += far - n; e.gap > maxGap {
		return e.fail("has indices up to %d with gaps; use strings as keys", far)
	}
	keys := e.keys[base:]
	sort.Slice(keys, func(i, j int) bool { return keyLess(keys[i], keys[j]) })
	e.buf = binary.AppendUvarint(e.buf, uint64(len(keys)))
	for i := range keys {
		key := e.keys[base+i] // children may have moved the slice
		if err := e.value(key); err != nil {
			return err
		}
		if err := e.child(key, t.RawGet(key)); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) child(key, v lua.LValue) error {
	switch v.(type) {
	case lua.LNumber, lua.LBool:
		return e.value(v)
	case lua.LString:
		return e.value(v)
	}
	n := len(e.path)
	if s, ok := key.(lua.LString); ok && isName(string(s)) {
		e.path = append(e.path, "."+string(s))
	} else {
		e.path = append(e.path, "["+cut(luaText(key), 20)+"]")
	}
	if err := e.value(v); err != nil {
		return err
	}
	e.path = e.path[:n]
	return nil
}

// keyLess orders whole numbers before other numbers before strings.
func keyLess(a, b lua.LValue) bool {
	ra, rb := keyRank(a), keyRank(b)
	if ra != rb {
		return ra < rb
	}
	if s, ok := a.(lua.LString); ok {
		return s < b.(lua.LString)
	}
	return a.(lua.LNumber) < b.(lua.LNumber)
}

func keyRank(k lua.LValue) int {
	n, ok := k.(lua.LNumber)
	switch {
	case !ok:
		return 2
	case n == lua.LNumber(int64(n)) && math.Abs(float64(n)) < 1<<53:
		return 0
	}
	return 1
}

// decode builds the table that encode wrote. It refuses what encode would not
// write, but for the order of keys.
func decode(b []byte) (*lua.LTable, error) {
	t, _, err := decodeSize(b)
	return t, err
}

// decodeSize also tells roughly how many bytes of memory the table takes.
func decodeSize(b []byte) (*lua.LTable, int, error) {
	if len(b) == 0 {
		return &lua.LTable{Metatable: lua.LNil}, 0, nil
	}
	if len(b) > MaxData {
		return nil, 0, errData
	}
	d := decoder{b: b}
	v := d.value(0)
	t, ok := v.(*lua.LTable)
	if d.bad || !ok || len(d.b) != 0 {
		return nil, 0, errData
	}
	return t, len(b)*bytesPerDatum + d.gap*valueSize, nil
}

// bytesPerDatum is what a byte of encoded data takes as a table, at worst.
const bytesPerDatum = 256

type decoder struct {
	b   []byte
	gap int
	bad bool
}

// inArray says whether a key lies in the array part of a table.
func inArray(k lua.LNumber) bool { return k >= 1 && k <= MaxArray && k == lua.LNumber(int64(k)) }

func (d *decoder) value(depth int) lua.LValue {
	if len(d.b) == 0 || depth > maxDepth+1 {
		d.bad = true
		return lua.LNil
	}
	tag := d.b[0]
	d.b = d.b[1:]
	switch tag {
	case tagFalse:
		return lua.LFalse
	case tagTrue:
		return lua.LTrue
	case tagInt:
		i, n := binary.Varint(d.b)
		if n <= 0 || i <= -1<<53 || i >= 1<<53 {
			break
		}
		d.b = d.b[n:]
		return lua.LNumber(i)
	case tagFloat:
		if len(d.b) < 8 {
			break
		}
		f := math.Float64frombits(binary.LittleEndian.Uint64(d.b))
		d.b = d.b[8:]
		return lua.LNumber(f)
	case tagString:
		n := d.count()
		if n > len(d.b) {
			break
		}
		s := lua.LString(d.b[:n])
		d.b = d.b[n:]
		return s
	case tagTable:
		return d.table(depth)
	}
	d.bad = true
	return lua.LNil
}

func (d *decoder) table(depth int) lua.LValue {
	t := &lua.LTable{Metatable: lua.LNil}
	n := d.count()
	for i := 1; i <= n && !d.bad; i++ {
		t.RawSetInt(i, d.value(depth+1))
	}
	n = d.count()
	for i := 0; i < n && !d.bad; i++ {
		switch k := d.value(maxDepth + 1).(type) {
		case lua.LString:
			t.RawSetString(string(k), d.value(depth+1))
		case lua.LNumber:
			if inArray(k) {
				d.gap += max(int(k)-arrayLen(t), 0)
			}
			if math.IsNaN(float64(k)) || d.gap > maxGap {
				d.bad = true
				break
			}
			t.RawSet(k, d.value(depth+1))
		default:
			d.bad = true
		}
	}
	return t
}

// count reads a length; each thing counted takes at least one byte.
func (d *decoder) count() int {
	n, w := binary.Uvarint(d.b)
	if w <= 0 || n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	d.b = d.b[w:]
	return int(n)
}

// FormatData shows the bytes of r.state or fields as a Lua table constructor,
// for screens and exports.
func FormatData(b []byte) string {
	t, err := decode(b)
	if err != nil {
		return err.Error()
	}
	var s strings.Builder
	formatTable(&s, t)
	return s.String()
}

func formatTable(s *strings.Builder, t *lua.LTable) {
	s.WriteByte('{')
	sep, array := "", 0
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		s.WriteString(sep)
		sep = ", "
		switch key := k.(type) {
		case lua.LNumber:
			if array++; key != lua.LNumber(array) {
				s.WriteString("[" + luaText(k) + "]=")
			}
		case lua.LString:
			if isName(string(key)) {
				s.WriteString(string(key) + "=")
			} else {
				s.WriteString("[" + luaText(k) + "]=")
			}
		}
		if sub, ok := v.(*lua.LTable); ok {
			formatTable(s, sub)
		} else {
			s.WriteString(luaText(v))
		}
	}
	s.WriteByte('}')
}

func luaText(v lua.LValue) string {
	if s, ok := v.(lua.LString); ok {
		return strconv.Quote(string(s))
	}
	return v.String()
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && !isAlpha(c) && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}
