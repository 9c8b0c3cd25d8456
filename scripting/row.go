package scripting

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/rng"
	catalogue "tokenrouter/scripting/api"
	"tokenrouter/scripting/near"
)

// rowFields are the fields of r, rowNumbers those that are numbers.
var rowNumbers = []string{
	"token", "entropy", "entropy_norm", "top1", "top2", "margin", "logsumexp", "pos", "emitted", "step", "ready", "batch", "peers",
}

var rowFields = catalogue.Names(catalogue.Row())

var fieldNames = map[kind][]string{rowArg: rowFields, msgArg: messageFields, heldArg: heldFields}

// rowView is r: one userdata per state, pointed at another row for each call.
// Fields are read on demand, since a router reads few of them.
type rowView struct {
	vm  *VM
	ud  *lua.LUserData
	row *Row // nil between calls

	state, fields *lua.LTable // decoded on first use
	readOnly      bool        // in send

	topk, random, load, scoreFn *lua.LFunction

	scores   []scored // of the row, by the heads that were asked
	score    float64  // the last one that the call was given
	hasScore bool
}

func (v *rowView) open(vm *VM) {
	l := vm.l
	v.vm, v.ud = vm, l.NewUserData()
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(v.index))
	meta.RawSetString("__newindex", l.NewFunction(v.assign))
	meta.RawSetString("__metatable", lua.LFalse)
	v.ud.Metatable = meta
	v.topk = l.NewFunction(v.luaTopK)
	v.random = l.NewFunction(v.luaRandom)
	v.load = l.NewFunction(v.luaLoad)
	v.scoreFn = l.NewFunction(v.luaScore)
}

func (v *rowView) enter(row *Row, readOnly bool) { v.row, v.readOnly = row, readOnly }

func (v *rowView) leave() { v.row, v.state, v.fields = nil, nil, nil }

func (v *rowView) index(l *lua.LState) int {
	key, _ := l.Get(2).(lua.LString)
	row := v.row
	if row == nil {
		l.RaiseError("this r is over: a row may be read only during the call that got it")
	}
	o := row.Output
	switch key {
	case "entropy":
		l.Push(lua.LNumber(o.Entropy))
	case "entropy_norm":
		l.Push(lua.LNumber(o.EntropyNorm))
	case "model":
		l.Push(v.vm.api.named[v.vm.env.Self])
	case "first":
		l.Push(lua.LBool(row.Pos == row.PromptLen))
	case "random":
		l.Push(v.random)
	case "score":
		l.Push(v.scoreFn)
	case "top1":
		l.Push(lua.LNumber(o.Top1))
	case "top2":
		l.Push(lua.LNumber(o.Top2))
	case "margin":
		l.Push(lua.LNumber(o.Margin()))
	case "logsumexp":
		l.Push(lua.LNumber(o.LogSumExp))
	case "token":
		l.Push(lua.LNumber(o.Token))
	case "text":
		return pushText(l, v.vm.tokenText(o.Token))
	case "topk":
		l.Push(v.topk)
	case "pos":
		l.Push(lua.LNumber(row.Pos))
	case "emitted":
		l.Push(lua.LNumber(row.Emitted))
	case "last":
		l.Push(lua.LBool(row.Last))
	case "step":
		l.Push(lua.LNumber(row.Step))
	case "is_prefill":
		l.Push(lua.LBool(row.Prefill))
	case "state":
		l.Push(v.stateTable(l))
	case "fields":
		if v.fields == nil {
			v.fields = decodeFor(l, "r.fields", row.Fields)
		}
		l.Push(v.fields)
	case "ready":
		ready, _, _ := v.vm.loadOf(v.vm.env.Self)
		l.Push(lua.LNumber(ready))
	case "batch":
		_, batch, _ := v.vm.loadOf(v.vm.env.Self)
		l.Push(lua.LNumber(batch))
	case "load":
		l.Push(v.load)
	case "peers":
		l.Push(lua.LNumber(v.vm.env.Peers))
	default:
		noField(l, "r", rowFields)
	}
	return 1
}

// noField raises the fault of a field that does not exist.
func noField(l *lua.LState, name string, fields []string) {
	key := l.Get(2).String()
	l.RaiseError("%s has no field %q%s", name, cut(key, 40), fieldHint(key, fields))
}

// fieldHint suggests a field, or lists them all.
func fieldHint(key string, fields []string) string {
	if hint := near.Hint(key, fields); hint != "" {
		return hint
	}
	return near.List(key, "fields", fields)
}

func (v *rowView) assign(l *lua.LState) int {
	switch key := l.Get(2).String(); {
	case v.row == nil:
		l.RaiseError("this r is over: a row may be used only during the call that got it")
	case key != "state" && slices.Contains(rowFields, key):
		l.RaiseError("r.%s cannot be assigned; only r.state can", key)
	case key != "state":
		noField(l, "r", rowFields)
	case v.readOnly:
		l.RaiseError("r.state can be assigned only in route")
	}
	switch t := l.Get(3).(type) {
	case *lua.LTable:
		v.state = t
	case *lua.LNilType:
		v.state = l.NewTable()
	default:
		l.RaiseError("r.state cannot be %s; it is a table", showValue(t))
	}
	return 0
}

func (v *rowView) stateTable(l *lua.LState) *lua.LTable {
	if v.state == nil {
		v.state = decodeFor(l, "r.state", v.row.State)
	}
	return v.state
}

func decodeFor(l *lua.LState, name string, b []byte) *lua.LTable {
	t, size, err := decodeSize(b)
	if err != nil {
		l.RaiseError("%s is damaged: %s", name, err.Error())
	}
	alloc(l, size)
	return t
}

// newState returns the bytes of r.state after the call.
func (v *rowView) newState(enc *encoder) ([]byte, error) {
	if v.state == nil {
		return v.row.State, nil
	}
	b, err := enc.encode("r.state", v.state)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(b, v.row.State) {
		return v.row.State, nil
	}
	return slices.Clone(b), nil
}

// method finds the first argument of r.f(x), or of r:f(x).
func (v *rowView) method(l *lua.LState) int {
	if v.row == nil {
		l.RaiseError("this r is over: a row may be read only during the call that got it")
	}
	if l.Get(1) == lua.LValue(v.ud) {
		return 2
	}
	return 1
}

func (v *rowView) luaRandom(l *lua.LState) int {
	arg := v.method(l)
	k := optInt(l, arg, 0)
	if k < 0 {
		l.RaiseError("r.random(%d): draws are numbered from 0", k)
	}
	key := rng.Key{
		Seed: v.vm.env.Seed, Req: uint64(v.row.Req), Pos: v.row.Pos,
		Model: int(v.vm.env.Self), Purpose: rng.Router,
	}
	l.Push(lua.LNumber(key.Float64(k)))
	return 1
}

func (v *rowView) luaTopK(l *lua.LState) int {
	arg := v.method(l)
	top := v.row.Output.TopK
	n := optInt(l, arg, len(top))
	if n < 0 || n > max(len(top), 5) {
		l.RaiseError("r.topk(%d): a row carries its %d most likely tokens", n, len(top))
	}
	list := l.CreateTable(n, 0)
	for i, t := range top[:min(n, len(top))] {
		alloc(l, 1<<10)
		e := l.CreateTable(0, 4)
		e.RawSetString("token", lua.LNumber(t.Token))
		e.RawSetString("text", lua.LString(v.vm.tokenText(t.Token)))
		e.RawSetString("prob", lua.LNumber(math.Exp(float64(t.Logprob))))
		e.RawSetString("logprob", lua.LNumber(t.Logprob))
		list.RawSetInt(i+1, e)
	}
	l.Push(list)
	return 1
}

func (v *rowView) luaLoad(l *lua.LState) int {
	arg := v.method(l)
	ready, batch, age := v.vm.loadOf(v.vm.peer(l, arg))
	alloc(l, 1<<10)
	t := l.CreateTable(0, 3)
	t.RawSetString("ready", lua.LNumber(ready))
	t.RawSetString("batch", lua.LNumber(batch))
	t.RawSetString("age_ms", lua.LNumber(age))
	l.Push(t)
	return 1
}

// loadOf tells how full a subserver is and how many milliseconds old that is:
// infinitely many while nothing is known.
func (vm *VM) loadOf(p event.Peer) (ready, batch int, ageMs float64) {
	if vm.env.Load != nil {
		if r, b, age, ok := vm.env.Load(p); ok {
			return r, b, float64(age) / 1e6
		}
	}
	return 0, 0, math.Inf(1)
}

func (vm *VM) tokenText(t event.Token) string {
	if vm.env.Text == nil {
		return "<" + strconv.Itoa(int(t)) + ">"
	}
	return cut(vm.env.Text(t), MaxString-8)
}

func (vm *VM) destName(p event.Peer) lua.LValue {
	if p < 0 || int(p) >= len(vm.api.named) {
		return lua.LNil
	}
	return vm.api.named[p]
}
