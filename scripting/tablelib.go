package scripting

import (
	"math/bits"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The layout of LTable that an audit and a store have to know: how long the
// array part is, and how many keys the hash part remembers, deleted ones too.
var fieldArray, fieldKeys = tableField("array"), tableField("keys")

func tableField(name string) []int {
	f, ok := reflect.TypeFor[lua.LTable]().FieldByName(name)
	if !ok || f.Type.Kind() != reflect.Slice {
		panic("gopher-lua's LTable has no slice " + name) // a changed dependency, found by the first test
	}
	return f.Index
}

func arrayLen(t *lua.LTable) int { return reflect.ValueOf(t).Elem().FieldByIndex(fieldArray).Len() }
func keyCount(t *lua.LTable) int { return reflect.ValueOf(t).Elem().FieldByIndex(fieldKeys).Len() }

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
		l.Push(lua.LNumber(l.CheckTable(1).Len()))
		return 1
	}},
	{"insert", tableInsert},
	{"maxn", func(l *lua.LState) int {
		l.Push(lua.LNumber(l.CheckTable(1).MaxN()))
		return 1
	}},
	{"remove", tableRemove},
	{"sort", tableSort},
}

func tableConcat(l *lua.LState) int {
	t := l.CheckTable(1)
	sep := l.OptString(2, "")
	i, j := l.OptInt(3, 1), l.OptInt(4, t.Len())
	if i < 1 || j > MaxArray {
		l.RaiseError("concat from %d to %d of an array of %d", i, j, t.Len())
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
	n := t.Len()
	if l.GetTop() < 2 || l.GetTop() > 3 {
		l.RaiseError("table.insert takes (table, value) or (table, position, value)")
	}
	if l.GetTop() == 2 {
		payStore(l, t, lua.LNumber(n+1))
		t.RawSetInt(n+1, l.Get(2))
		return 0
	}
	pos := l.CheckInt(2)
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
	n := t.Len()
	pos := l.OptInt(2, n)
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
	n := t.Len()
	for arrayLen(t) > n {
		t.Remove(arrayLen(t))
	}
	charge(l, n*bits.Len(uint(n)))
	s := &sorter{l: l, t: t, n: n}
	if l.GetTop() > 1 {
		s.less = l.CheckFunction(2)
	}
	s.sort()
	return 0
}
