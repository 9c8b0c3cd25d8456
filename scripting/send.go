package scripting

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting/near"
)

// Send asks the router's send what travels to dest with the row's request:
// a ceiling on the tokens that dest may write (0 = none) and data for its
// r.fields. It follows the Route of the same row and sees the r.state that the
// decision left.
func (vm *VM) Send(row *Row, dest event.Peer) (budget int, fields []byte, fault string) {
	if vm.send == nil {
		return 0, nil, ""
	}
	seen := *row
	if row == vm.routed {
		seen.State = vm.after
	} else {
		vm.row.unscored()
	}
	budget, fields, err := vm.runSend(&seen, dest)
	vm.row.leave()
	if err != nil {
		budget, fields, fault = 0, nil, vm.fault(vm.send, err)
	}
	vm.audit(&fault)
	return budget, fields, fault
}

func (vm *VM) runSend(row *Row, dest event.Peer) (budget int, fields []byte, err error) {
	defer vm.rescue(&err)
	v, _, err := vm.call(vm.send, row, vm.destName(dest))
	if err != nil {
		return 0, nil, err
	}
	return vm.sendResult(v)
}

var sendKeys = []string{"budget", "fields"}

func (vm *VM) sendResult(v lua.LValue) (budget int, fields []byte, err error) {
	t, ok := v.(*lua.LTable)
	if !ok {
		if v == lua.LNil {
			return 0, nil, nil
		}
		return 0, nil, fmt.Errorf("send returned %s; legal are nil and a table { budget = n, fields = {...} }", showValue(v))
	}
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		switch k {
		case lua.LString("budget"):
			n, ok := v.(lua.LNumber)
			if !ok || n != lua.LNumber(int64(n)) || n < 1 || n > 1<<30 {
				return 0, nil, fmt.Errorf("send returned the budget %s; it is a whole number of tokens from 1", showValue(v))
			}
			budget = int(n)
		case lua.LString("fields"):
			f, ok := v.(*lua.LTable)
			if !ok {
				return 0, nil, fmt.Errorf("send returned %s as fields; they are a table", showValue(v))
			}
			b, err := vm.enc.encode("fields", f)
			if err != nil {
				return 0, nil, err
			}
			fields = slices.Clone(b)
		default:
			return 0, nil, fmt.Errorf("send returned an unknown field %s%s; legal are budget and fields", showValue(k), near.Hint(k.String(), sendKeys))
		}
	}
	return budget, fields, nil
}
