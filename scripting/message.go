package scripting

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
	catalogue "tokenrouter/scripting/api"
)

// messageFields are the fields of msg, heldFields those of req in receive.
var (
	messageFields = catalogue.Names(catalogue.Message())
	heldFields    = catalogue.Names(catalogue.Held())
)

// messageView is msg and req of receive: read-only views of the message and of
// what this subserver holds of the request.
type messageView struct {
	vm       *VM
	msg, req *lua.LUserData

	m      *event.PeerReq // nil between calls
	tokens []event.Token

	suffix, fields, state *lua.LTable // made on first use

	suffixToken, heldToken *lua.LFunction
}

func (v *messageView) open(vm *VM) {
	l := vm.l
	v.vm = vm
	v.msg = v.view(l, "msg", v.index)
	v.req = v.view(l, "req", v.held)
	v.suffixToken = l.NewFunction(func(l *lua.LState) int { return v.at(l, v.m.Suffix, 1) })
	v.heldToken = l.NewFunction(func(l *lua.LState) int { return v.at(l, v.tokens, 0) })
}

func (v *messageView) view(l *lua.LState, name string, index lua.LGFunction) *lua.LUserData {
	ud := l.NewUserData()
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		if v.m == nil {
			l.RaiseError("this %s is over: it may be read only during the call that got it", name)
		}
		return index(l)
	}))
	meta.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("%s.%s cannot be assigned; %s is read-only", name, l.Get(2).String(), name)
		return 0
	}))
	meta.RawSetString("__metatable", lua.LFalse)
	ud.Metatable = meta
	return ud
}

func (v *messageView) enter(m *event.PeerReq, tokens []event.Token) { v.m, v.tokens = m, tokens }

func (v *messageView) leave() {
	v.m, v.tokens = nil, nil
	v.suffix, v.fields, v.state = nil, nil, nil
}

func (v *messageView) index(l *lua.LState) int {
	key, _ := l.Get(2).(lua.LString)
	m := v.m
	switch key {
	case "from":
		l.Push(v.vm.destName(m.From))
	case "status":
		l.Push(lua.LString(m.Status.String()))
	case "loc":
		l.Push(lua.LNumber(m.Loc))
	case "count":
		l.Push(lua.LNumber(len(m.Suffix)))
	case "suffix":
		if v.suffix == nil {
			v.suffix = suffixTable(l, m.Suffix)
		}
		l.Push(v.suffix)
	case "token":
		l.Push(v.suffixToken)
	case "budget":
		l.Push(lua.LNumber(m.Budget))
	case "fields":
		if v.fields == nil {
			v.fields = decodeFor(l, "msg.fields", m.Fields)
		}
		l.Push(v.fields)
	case "state":
		if v.state == nil {
			v.state = decodeFor(l, "msg.state", m.State)
		}
		l.Push(v.state)
	default:
		noField(l, "msg", messageFields)
	}
	return 1
}

func suffixTable(l *lua.LState, ids []event.Token) *lua.LTable {
	if len(ids) > MaxArray {
		l.RaiseError("the suffix has %d tokens, more than an array takes; read them with msg.token(i)", len(ids))
	}
	alloc(l, 2*valueSize*len(ids))
	t := l.CreateTable(len(ids), 0)
	for i, id := range ids {
		t.RawSetInt(i+1, lua.LNumber(id))
	}
	return t
}

func (v *messageView) held(l *lua.LState) int {
	key, _ := l.Get(2).(lua.LString)
	switch key {
	case "model":
		l.Push(v.vm.api.named[v.vm.env.Self])
	case "prompt_len":
		l.Push(lua.LNumber(v.m.Limits.PromptLen))
	case "held":
		l.Push(lua.LNumber(len(v.tokens)))
	case "token":
		l.Push(v.heldToken)
	default:
		noField(l, "req", heldFields)
	}
	return 1
}

// at is token(i) over ids that are numbered from first on; nil outside.
func (v *messageView) at(l *lua.LState, ids []event.Token, first int) int {
	i := checkInt(l, l.GetTop()) - first
	if v.m == nil || i < 0 || i >= len(ids) {
		l.Push(lua.LNil)
	} else {
		l.Push(lua.LNumber(ids[i]))
	}
	return 1
}

// Receive asks the router's receive about a message that hands a request over;
// tokens are what this subserver holds of it. Without a receive, and for
// messages that hand nothing over, the suffix is committed.
func (vm *VM) Receive(msg *event.PeerReq, tokens []event.Token) event.Verdict {
	if vm.receive == nil || msg.Status != event.New && msg.Status != event.Alive {
		return event.Verdict{}
	}
	if end := msg.Loc + len(msg.Suffix); msg.Cut && end >= 0 && end < len(tokens) {
		tokens = tokens[:end] // what lies behind was taken back
	}
	verdict, err := vm.runReceive(msg, tokens)
	vm.msg.leave()
	if err != nil {
		verdict = event.Verdict{Fault: vm.fault(vm.receive, err)}
	}
	vm.audit(&verdict.Fault)
	return verdict
}

func (vm *VM) runReceive(msg *event.PeerReq, tokens []event.Token) (_ event.Verdict, err error) {
	defer vm.rescue(&err)
	if vm.dead != nil {
		return event.Verdict{}, vm.dead
	}
	l := vm.l
	vm.msg.enter(msg, tokens)
	vm.meter.begin(MaxInstructions)
	l.Push(vm.receive)
	l.Push(vm.msg.msg)
	l.Push(vm.msg.req)
	vm.level = 0
	err = l.PCall(2, 1, nil)
	vm.meter.end()
	if err != nil {
		return event.Verdict{}, vm.asError(err)
	}
	v := l.Get(-1)
	l.Pop(1)
	if v == lua.LNil {
		return event.Verdict{}, nil
	}
	ud, _ := v.(*lua.LUserData)
	if c, ok := value(ud).(*constant); ok && c.sort == verdict {
		if c.kind == event.Append {
			if err := follows(c.ids, msg, tokens); err != nil {
				return event.Verdict{}, err
			}
		}
		return event.Verdict{Kind: c.kind, Ids: c.ids}, nil
	}
	return event.Verdict{}, fmt.Errorf("receive returned %s; legal are COMMIT (the default) and APPEND{ids}", showValue(v))
}

// follows checks that ids begin with what has been emitted from the message's
// anchor on: the suffix, or what this subserver knows to follow it.
func follows(ids []event.Token, msg *event.PeerReq, tokens []event.Token) error {
	known := msg.Suffix
	if msg.Loc < 0 || msg.Loc > len(tokens) {
		return nil // a gap, which is asked for again
	}
	if tail := tokens[msg.Loc:]; len(tail) > len(known) && slices.Equal(tail[:len(known)], known) {
		known = tail
	}
	if len(ids) < len(known) || !slices.Equal(ids[:len(known)], known) {
		return fmt.Errorf("receive returned APPEND of %d ids that do not begin with the %d emitted from position %d on; begin with the suffix", len(ids), len(known), msg.Loc)
	}
	return nil
}
