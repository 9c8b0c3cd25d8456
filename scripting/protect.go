package scripting

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// maxProtected bounds how deep pcall and xpcall may lie in each other.
const maxProtected = 16

// protected calls the function at stack position 1 with the arguments behind it
// and leaves its results there. It runs in a thread of its own: where
// gopher-lua 1.1.2 catches an error, it closes the upvalues of every function of
// the thread, also of callers that go on, whose closures would then see other
// locals than they do.
func (vm *VM) protected(l *lua.LState) error {
	l.CheckAny(1)
	level := vm.level
	if level == maxProtected {
		l.RaiseError("pcall is nested deeper than %d levels", maxProtected)
	}
	th := vm.threads[level]
	if th == nil {
		th, _ = l.NewThread()
		th.SetContext(&vm.meter)
	}
	vm.threads[level], vm.level = nil, level+1
	n := l.GetTop()
	for i := range n {
		th.Push(l.Get(i + 1))
	}
	l.SetTop(0)
	err := th.PCall(n-1, lua.MultRet, nil)
	vm.threads[level], vm.level = th, level
	for i := range th.GetTop() {
		l.Push(th.Get(i + 1))
	}
	th.SetTop(0)
	return err
}

func (vm *VM) luaPCall(l *lua.LState) int {
	if err := vm.protected(l); err != nil {
		return failed(l, err)
	}
	l.Insert(lua.LTrue, 1)
	return l.GetTop()
}

// luaXPCall calls the handler after the failed call, not inside it: without the
// debug library a router cannot tell.
func (vm *VM) luaXPCall(l *lua.LState) int {
	handler := l.CheckFunction(2)
	l.SetTop(1)
	err := vm.protected(l)
	if err == nil {
		l.Insert(lua.LTrue, 1)
		return l.GetTop()
	}
	failed(l, err)
	l.Replace(1, handler)
	if err := vm.protected(l); err != nil {
		return failed(l, err)
	}
	l.Insert(lua.LFalse, 1)
	return l.GetTop()
}

// failed leaves false and the error of a protected call.
func failed(l *lua.LState, err error) int {
	l.SetTop(0)
	l.Push(lua.LFalse)
	var v lua.LValue = lua.LString(err.Error())
	var e *lua.ApiError
	if errors.As(err, &e) {
		v = e.Object
	}
	if s, ok := v.(lua.LString); ok {
		v = lua.LString(withoutAddresses(cut(string(s), MaxString)))
		charge(l, len(s)/costLook)
	}
	charge(l, costFailure)
	l.Push(v)
	return 2
}
