package scripting

import (
	"math/bits"
	"reflect"
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// What an audit, a store and a loop have to know of LTable: how long the array
// part is, and which keys the hash part remembers, deleted ones too.
var (
	fieldArray  = tableField("array", reflect.Slice)
	fieldKeys   = tableField("keys", reflect.Slice)  // in order of insertion
	fieldPlaces = tableField("k2i", reflect.Map)     // key -> index in keys
	fieldTexts  = tableField("strdict", reflect.Map) // live keys: strings,
	fieldOthers = tableField("dict", reflect.Map)    // and others
)

func tableField(name string, kind reflect.Kind) []int {
	f, ok := reflect.TypeFor[lua.LTable]().FieldByName(name)
	if !ok || f.Type.Kind() != kind {
		panic("gopher-lua's LTable has no " + kind.String() + " " + name) // a changed dependency, found by the first test
	}
	return f.Index
}

func field(t *lua.LTable, index []int) reflect.Value {
	return reflect.ValueOf(t).Elem().FieldByIndex(index)
}

func arrayLen(t *lua.LTable) int { return field(t, fieldArray).Len() }
func keyCount(t *lua.LTable) int { return field(t, fieldKeys).Len() }

// deleted counts the keys that were deleted and are still remembered.
func deleted(t *lua.LTable) int {
	return keyCount(t) - field(t, fieldTexts).Len() - field(t, fieldOthers).Len()
}

// length is #t by the array part, paid for: nil values at its end are walked
// over each time.
func length(l *lua.LState, t *lua.LTable) int {
	n := t.Len()
	charge(l, (arrayLen(t)-n)/costLook)
	return n
}

// skipped counts what next walked over between two keys: nil values of the
// array part, then deleted keys.
func skipped(t *lua.LTable, from, to lua.LValue) int {
	n, skip := arrayLen(t), 0
	i, inside := from.(lua.LNumber)
	if from == lua.LNil || inside && inArray(i) {
		end := n
		if j, ok := to.(lua.LNumber); ok && inArray(j) {
			end = int(j) - 1
		}
		skip = max(end-int(i), 0)
	}
	if deleted(t) > 0 {
		skip += max(place(t, to, keyCount(t))-place(t, from, -1)-1, 0)
	}
	return skip
}

// place is where the hash part remembers a key, or otherwise when it does not.
func place(t *lua.LTable, key lua.LValue, otherwise int) int {
	if i := field(t, fieldPlaces).MapIndex(reflect.ValueOf(key)); i.IsValid() {
		return int(i.Int())
	}
	return otherwise
}

const valueSize = 16 // bytes of one Lua value in an array

// payStore charges a store at key before it happens: a store beyond the end of
// the array part fills it up with nil.
func payStore(l *lua.LState, t *lua.LTable, key lua.LValue) {
	k, ok := key.(lua.LNumber)
	if !ok || k != lua.LNumber(int64(k)) || k < 1 || k > MaxArray+1 {
		return
	}
	n := arrayLen(t)
	switch gap := int(k) - 1 - n; {
	case k == MaxArray+1 && n == MaxArray:
		l.RaiseError("an array of more than %d values", MaxArray)
	case gap > 0 && k <= MaxArray:
		alloc(l, gap*valueSize)
	}
}

// guardLenFn is #v.
func guardLenFn(l *lua.LState) int {
	v := l.Get(1)
	t, ok := v.(*lua.LTable)
	switch {
	case ok && t.Metatable == lua.LNil:
		l.Push(lua.LNumber(length(l, t)))
		return 1
	case ok:
		length(l, t) // unless there is a __len, which costs little more
	}
	l.Push(lua.LNumber(l.ObjLen(v)))
	return 1
}

// guardTextFn passes an operand of a comparison, which walks over its bytes.
func guardTextFn(l *lua.LState) int {
	if s, ok := l.Get(1).(lua.LString); ok {
		charge(l, len(s)/costLook)
	}
	return 1
}

// guardOneFn passes one value.
func guardOneFn(*lua.LState) int { return 1 }

// guardStoreFn is t[k] = v.
func guardStoreFn(l *lua.LState) int {
	key := l.Get(2)
	if t, ok := l.Get(1).(*lua.LTable); ok {
		payStore(l, t, key)
		if t.Metatable == lua.LNil {
			l.RawSet(t, key, l.Get(3))
			return 0
		}
	}
	l.SetTable(l.Get(1), key, l.Get(3))
	return 0
}

// guardPackFn passes a table that was built from any number of values.
func guardPackFn(l *lua.LState) int {
	alloc(l, arrayLen(l.CheckTable(1))*valueSize)
	return 1
}

// guardKeyFn passes a key of a constructor.
func guardKeyFn(l *lua.LState) int {
	if k, ok := l.Get(1).(lua.LNumber); ok && k > freeIndex && k <= MaxArray {
		alloc(l, clampInt(float64(k))*valueSize)
	}
	return 1
}

// guardConcatFn is a .. b .. c, bound to the right.
func guardConcatFn(l *lua.LState) int {
	n := l.GetTop()
	size := 0
	for i := 1; i <= n; i++ {
		switch v := l.Get(i).(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += 24
		default:
			return concatMeta(l, n)
		}
	}
	l.Context().(*meter).text(l, size)
	var b strings.Builder
	b.Grow(size)
	for i := 1; i <= n; i++ {
		b.WriteString(lua.LVAsString(l.Get(i)))
	}
	l.Push(lua.LString(b.String()))
	return 1
}

// concatMeta handles operands with a __concat metamethod.
func concatMeta(l *lua.LState, n int) int {
	right := l.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := l.Get(i)
		if lua.LVCanConvToString(left) && lua.LVCanConvToString(right) {
			s := lua.LVAsString(left) + lua.LVAsString(right)
			l.Context().(*meter).text(l, len(s))
			right = lua.LString(s)
			continue
		}
		f, ok := l.GetMetaField(left, "__concat").(*lua.LFunction)
		if !ok {
			f, ok = l.GetMetaField(right, "__concat").(*lua.LFunction)
		}
		if !ok {
			bad := left
			if lua.LVCanConvToString(left) {
				bad = right
			}
			l.RaiseError("attempt to concatenate a %s value", bad.Type().String())
		}
		l.Push(f)
		l.Push(left)
		l.Push(right)
		l.Call(2, 1)
		right = l.Get(-1)
		l.Pop(1)
	}
	l.Push(right)
	return 1
}

// tableLib is Lua's table library.
var tableLib = lib{
	{"concat", tableConcat},
	{"getn", func(l *lua.LState) int {
		l.Push(lua.LNumber(length(l, l.CheckTable(1))))
		return 1
	}},
	{"insert", tableInsert},
	{"maxn", func(l *lua.LState) int {
		t := l.CheckTable(1)
		n := t.MaxN()
		charge(l, (arrayLen(t)-n)/costLook)
		l.Push(lua.LNumber(n))
		return 1
	}},
	{"remove", tableRemove},
	{"sort", tableSort},
}

func tableConcat(l *lua.LState) int {
	t := l.CheckTable(1)
	sep := l.OptString(2, "")
	n := length(l, t)
	i, j := optInt(l, 3, 1), optInt(l, 4, n)
	if i < 1 || j > MaxArray {
		l.RaiseError("concat from %d to %d of an array of %d", i, j, n)
	}
	var b strings.Builder
	for k := i; k <= j; k++ {
		v := t.RawGetInt(k)
		if !lua.LVCanConvToString(v) {
			l.RaiseError("invalid value (%s) at index %d in table for concat", v.Type().String(), k)
		}
		if k > i {
			b.WriteString(sep)
		}
		b.WriteString(lua.LVAsString(v))
		charge(l, 1)
		if b.Len() > MaxString {
			break
		}
	}
	return pushText(l, b.String())
}

func tableInsert(l *lua.LState) int {
	t := l.CheckTable(1)
	n := length(l, t)
	if l.GetTop() < 2 || l.GetTop() > 3 {
		l.RaiseError("table.insert takes (table, value) or (table, position, value)")
	}
	if l.GetTop() == 2 {
		payStore(l, t, lua.LNumber(n+1))
		t.RawSetInt(n+1, l.Get(2))
		return 0
	}
	pos := checkInt(l, 2)
	if pos < 1 || pos > n+1 {
		l.RaiseError("table.insert at %d of an array of %d", pos, n)
	}
	payStore(l, t, lua.LNumber(n+1))
	charge(l, (n-pos)*valueSize/costPiece)
	if pos == n+1 {
		t.RawSetInt(pos, l.Get(3))
		return 0
	}
	t.Insert(pos, l.Get(3))
	return 0
}

func tableRemove(l *lua.LState) int {
	t := l.CheckTable(1)
	n := length(l, t)
	pos := optInt(l, 2, n)
	if n == 0 || pos < 1 || pos > n {
		l.Push(lua.LNil)
		return 1
	}
	charge(l, (n-pos)*valueSize/costPiece)
	for arrayLen(t) > n { // nils behind the last value
		t.Remove(arrayLen(t))
	}
	l.Push(t.Remove(pos))
	return 1
}

func tableSort(l *lua.LState) int {
	t := l.CheckTable(1)
	n := length(l, t)
	charge(l, n*bits.Len(uint(n)))
	alloc(l, n*valueSize)
	s := sorter{l: l, values: make([]lua.LValue, n)}
	if l.GetTop() > 1 {
		s.less = l.CheckFunction(2)
	}
	for i := range s.values {
		s.values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		t.RawSetInt(i+1, v)
	}
	return 0
}
