package scripting

import (
	"fmt"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// One call is bounded by the meter; an audit bounds what a router keeps from
// call to call. It walks everything that the router's variables reach, after so
// many instructions that it costs nothing beside them, so a leak is found at
// the same call on every machine. It also drops the deleted keys that
// gopher-lua's tables keep in order to iterate.
const (
	bytesPerInstruction = 640     // what an instruction may allocate unseen, at most
	auditAfter          = 8 << 20 // bytes that may have been allocated since the last audit, at least
)

// What a table takes beside its values. A hash part begins with room for 32 keys
// or for few, which cannot be told from outside: this lies between.
const (
	tableSize = 128
	hashSize  = 1400
	keySize   = 112
)

// audit measures the router's variables when it is time. A router that holds
// too much starts afresh, and the call's fault says so. So does one over which
// the interpreter panicked.
func (vm *VM) audit(fault *string) {
	p := vm.p
	switch {
	case vm.dead != nil:
		return
	case vm.broken:
	case vm.overfull():
		*fault = (&Error{File: p.File, Msg: fmt.Sprintf(
			"the router's variables hold %d MiB, more than %d; they start afresh", vm.held>>20, MaxHeld>>20,
		)}).Error()
	default:
		return
	}
	vm.l.Close()
	if err := vm.load(p, false); err != nil {
		vm.dead = err
	}
}

// overfull says that the router's variables hold too much. It measures them
// only when enough has been allocated since the last time.
func (vm *VM) overfull() bool {
	if vm.meter.used*bytesPerInstruction < max(auditAfter, 2*vm.held) {
		return false
	}
	vm.meter.used = 0
	a := newAuditor()
	a.value(vm.l.G.Global)
	for _, f := range []*lua.LFunction{vm.route, vm.send, vm.receive} {
		if f != nil {
			a.value(f)
		}
	}
	a.walk()
	vm.held = int64(a.size) // the next audit waits for as much, so audits stay cheap
	return a.size > MaxHeld
}

// auditor adds up what values reach, each thing once. The sum does not depend
// on the order of visits.
type auditor struct {
	seen map[unsafe.Pointer]struct{}
	todo []lua.LValue
	size int
}

func newAuditor() *auditor { return &auditor{seen: map[unsafe.Pointer]struct{}{}} }

func (a *auditor) first(p unsafe.Pointer) bool {
	_, known := a.seen[p]
	if !known {
		a.seen[p] = struct{}{}
	}
	return !known
}

func (a *auditor) visit(p unsafe.Pointer, v lua.LValue) {
	if a.first(p) {
		a.todo = append(a.todo, v)
	}
}

func (a *auditor) value(v lua.LValue) {
	switch v := v.(type) {
	case lua.LNumber:
		a.size += 8
	case lua.LString:
		if len(v) < 32 {
			a.size += 48
		} else if a.first(unsafe.Pointer(unsafe.StringData(string(v)))) {
			a.size += 32 + len(v)
		}
	case *lua.LTable:
		a.visit(unsafe.Pointer(v), v)
	case *lua.LFunction:
		a.visit(unsafe.Pointer(v), v)
	case *lua.LUserData:
		a.visit(unsafe.Pointer(v), v)
	}
}

// walk visits what value found, without recursion: a list may be long.
func (a *auditor) walk() {
	for len(a.todo) > 0 {
		v := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		switch v := v.(type) {
		case *lua.LTable:
			a.table(v)
		case *lua.LFunction:
			a.size += 96
			for _, up := range v.Upvalues {
				if up != nil {
					a.size += 48
					a.value(up.Value())
				}
			}
		case *lua.LUserData:
			a.size += 64
			if c, ok := v.Value.(*constant); ok {
				a.size += 4 * len(c.ids)
			}
		}
	}
}

func (a *auditor) table(t *lua.LTable) {
	if m, ok := t.Metatable.(*lua.LTable); ok {
		a.value(m)
	}
	t.ForEach(func(k, v lua.LValue) {
		if n, ok := k.(lua.LNumber); !ok || !inArray(n) {
			a.value(k)
		}
		a.value(v)
	})
	if n := deleted(t); n > keyCount(t)/2+32 {
		compact(t)
	}
	a.size += tableSize + field(t, fieldArray).Cap()*valueSize
	if n := keyCount(t); n > 0 {
		a.size += hashSize + n*keySize
	}
}

// compact rebuilds a table without the keys that were deleted; the order of
// the others stays.
func compact(t *lua.LTable) {
	fresh := &lua.LTable{Metatable: t.Metatable}
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		fresh.RawSet(k, v)
	}
	*t = *fresh
}
