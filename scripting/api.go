package scripting

import (
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
	catalogue "tokenrouter/scripting/api"
	"tokenrouter/scripting/near"
)

// apiNames are the globals of the interface beside Lua's own.
var apiNames = catalogue.Names(catalogue.Globals())

// MaxHold is the most tokens that a router may hold back.
const MaxHold = 64

// maxKnobs bounds how many knobs a router may declare: as many as a screen shows.
const maxKnobs = 16

type sortOf uint8

const (
	destination sortOf = iota
	actionConst
	verdict
)

// constant is a value of the interface: STAY, HOME, to(role), KEEP, DROP,
// TRUNCATE(pos), COMMIT, APPEND{...}. Those without arguments are one userdata
// per VM each, so == compares them.
type constant struct {
	sort sortOf
	text string
	peer event.Peer // of a destination; event.None is STAY
	act  event.Action
	at   int // of TRUNCATE
	kind event.VerdictKind
	ids  []event.Token
}

// api holds a VM's constants.
type api struct {
	peers []*lua.LUserData // to(p); [0] is HOME
	roles []string
	named []lua.LValue // roles as Lua strings
}

func newConstant(l *lua.LState, c *constant) *lua.LUserData {
	ud := l.NewUserData()
	ud.Value = c
	return ud
}

// openAPI sets the interface's globals.
func (vm *VM) openAPI() {
	l, g := vm.l, vm.l.G.Global
	set := func(name string, c *constant) {
		c.text = name
		g.RawSetString(name, newConstant(l, c))
	}
	set("STAY", &constant{sort: destination, peer: event.None})
	set("HOME", &constant{sort: destination, peer: event.Front})
	set("KEEP", &constant{sort: actionConst, act: event.Keep})
	set("DROP", &constant{sort: actionConst, act: event.Drop})
	set("COMMIT", &constant{sort: verdict, kind: event.Commit})

	vm.api = api{roles: event.Roles(vm.env.Peers)}
	list := l.NewTable()
	for p, role := range vm.api.roles {
		ud := newConstant(l, &constant{sort: destination, peer: event.Peer(p), text: `to("` + role + `")`})
		if p == 0 {
			ud = g.RawGetString("HOME").(*lua.LUserData)
		}
		vm.api.peers = append(vm.api.peers, ud)
		vm.api.named = append(vm.api.named, lua.LString(role))
		list.RawSetInt(p+1, lua.LString(role))
	}
	g.RawSetString("roles", list)
	g.RawSetString("to", l.NewFunction(vm.luaTo))
	g.RawSetString("param", l.NewFunction(vm.luaParam))
	g.RawSetString("hold", l.NewFunction(vm.luaHold))
	g.RawSetString("TRUNCATE", l.NewFunction(vm.luaTruncate))
	g.RawSetString("pcall", l.NewFunction(vm.luaPCall))
	g.RawSetString("xpcall", l.NewFunction(vm.luaXPCall))
	g.RawSetString("APPEND", l.NewFunction(vm.luaAppend))
	vm.row.open(vm)
	vm.msg.open(vm)
	strict(l, g, vm.noGlobal)
}

// noGlobal says why a global that is read does not exist. One that the file
// assigns somewhere is merely nil so far.
func (vm *VM) noGlobal(name string) string {
	if vm.p.assigned[name] {
		return ""
	}
	if why, ok := absent[name]; ok {
		return why
	}
	return `there is no global "` + cut(name, 40) + `"` + near.Hint(name, globalNames)
}

// peer reads a role, an index or a destination.
func (vm *VM) peer(l *lua.LState, arg int) event.Peer {
	n := vm.env.Peers
	switch v := l.Get(arg).(type) {
	case lua.LString:
		if p := slices.Index(vm.api.roles, string(v)); p >= 0 {
			return event.Peer(p)
		}
		if vm.compiling && vm.loading {
			return event.Front // the file is only compiled; the roles are not known yet
		}
		l.RaiseError("no role %q%s", cut(string(v), 40), near.List(string(v), "roles", vm.api.roles))
	case lua.LNumber:
		if p := clampInt(float64(v)); lua.LNumber(p) == v && p >= 0 && p < n {
			return event.Peer(p)
		}
		l.RaiseError("no subserver %s; there are 0 to %d: %s", showValue(v), n-1, strings.Join(vm.api.roles, ", "))
	case *lua.LUserData:
		if c, ok := v.Value.(*constant); ok && c.sort == destination {
			if c.peer == event.None {
				return vm.env.Self
			}
			return c.peer
		}
	}
	l.RaiseError("%s is no subserver; give a role (%s) or an index", showValue(l.Get(arg)), strings.Join(vm.api.roles, ", "))
	return event.None
}

func (vm *VM) luaTo(l *lua.LState) int {
	if l.GetTop() > 1 {
		// An action put inside the call would be lost in silence.
		l.RaiseError("to() takes one role or index; the action stands behind it: return to(\"large\"), DROP")
	}
	l.Push(vm.api.peers[vm.peer(l, 1)])
	return 1
}

// luaHold declares how many tokens are held back.
func (vm *VM) luaHold(l *lua.LState) int {
	if !vm.loading {
		l.RaiseError("hold() declares how many tokens are held back, so it belongs at the top of the file, not into a function")
	}
	if vm.hold > 0 {
		l.RaiseError("hold() is declared twice")
	}
	n, ok := l.Get(1).(lua.LNumber)
	if !ok || n != lua.LNumber(int(n)) || n < 1 || n > MaxHold {
		l.RaiseError("hold(%s): give how many tokens are held back, a whole number from 1 to %d", showValue(l.Get(1)), MaxHold)
	}
	vm.hold = int(n)
	return 0
}

// luaTruncate makes the action that takes back what was written from a position
// on.
func (vm *VM) luaTruncate(l *lua.LState) int {
	n, ok := l.Get(1).(lua.LNumber)
	if !ok || n != lua.LNumber(clampInt(float64(n))) || n < 0 {
		l.RaiseError("TRUNCATE(%s): give a position, as r.pos counts them", showValue(l.Get(1)))
	}
	alloc(l, 1<<7)
	l.Push(newConstant(l, &constant{
		sort: actionConst, text: "TRUNCATE(" + strconv.Itoa(int(n)) + ")", act: event.Truncate, at: int(n),
	}))
	return 1
}

func (vm *VM) luaAppend(l *lua.LState) int {
	t := l.CheckTable(1)
	n := t.Len()
	alloc(l, 4*n)
	ids := make([]event.Token, n)
	for i := range ids {
		v, ok := t.RawGetInt(i + 1).(lua.LNumber)
		if !ok || v != lua.LNumber(int64(v)) || v < 0 || v > math.MaxInt32 || vm.env.Vocab > 0 && v >= lua.LNumber(vm.env.Vocab) {
			l.RaiseError("APPEND: %s at %d is no token id; ids lie between 0 and %d", showValue(t.RawGetInt(i+1)), i+1, vm.env.Vocab-1)
		}
		ids[i] = event.Token(v)
	}
	l.Push(newConstant(l, &constant{sort: verdict, text: "APPEND", kind: event.Append, ids: ids}))
	return 1
}

var paramKeys = []string{"default", "min", "max", "help", "head"}

// luaParam declares a knob and returns the function that reads it.
func (vm *VM) luaParam(l *lua.LState) int {
	if !vm.loading {
		l.RaiseError("param() declares a knob, so it belongs at the top of the file, not into a function")
	}
	d := Param{Name: l.CheckString(1), Max: 1}
	if !isName(d.Name) || len(d.Name) > 32 {
		l.RaiseError("param: %q is no name for a knob; use letters, digits and _", cut(d.Name, 40))
	}
	if slices.ContainsFunc(vm.declared, func(o Param) bool { return o.Name == d.Name }) {
		l.RaiseError("param: %q is declared twice", d.Name)
	}
	if len(vm.declared) == maxKnobs {
		l.RaiseError("param: a router may declare %d knobs", maxKnobs)
	}
	opts, ok := l.Get(2).(*lua.LTable)
	if !ok {
		l.RaiseError("param: %q needs a table { default = ..., min = ..., max = ..., help = ..., head = ... }", d.Name)
	}
	hasDefault := false
	for k, v := opts.Next(lua.LNil); k != lua.LNil; k, v = opts.Next(k) {
		key := k.String()
		if key == "help" {
			text, ok := v.(lua.LString)
			if !ok {
				l.RaiseError("param: help of %q is %s; it must be a text", d.Name, showValue(v))
			}
			d.Help = cut(oneLine(string(text)), 200)
			continue
		}
		if key == "head" {
			d.Head = vm.headOf(l, d.Name, v)
			continue
		}
		n, isNumber := v.(lua.LNumber)
		f := float64(n) + 0 // no -0
		if slices.Contains(paramKeys, key) && (!isNumber || math.IsNaN(f) || math.IsInf(f, 0)) {
			l.RaiseError("param: %s of %q is %s; it must be a number", key, d.Name, showValue(v))
		}
		switch key {
		case "default":
			d.Default, hasDefault = f, true
		case "min":
			d.Min = f
		case "max":
			d.Max = f
		default:
			l.RaiseError("param: %q has an unknown option %q%s", d.Name, cut(key, 40), near.Hint(key, paramKeys))
		}
	}
	switch {
	case !hasDefault:
		l.RaiseError("param: %q has no default", d.Name)
	case math.IsInf(d.Max-d.Min, 0):
		l.RaiseError("param: the range %s..%s of %q is too wide", num(d.Min), num(d.Max), d.Name)
	case d.Min >= d.Max:
		l.RaiseError("param: %q has min %s and max %s; min must be smaller (0 and 1 unless given)", d.Name, num(d.Min), num(d.Max))
	case d.Default < d.Min || d.Default > d.Max:
		l.RaiseError("param: the default %s of %q lies outside %s..%s; give min and max", num(d.Default), d.Name, num(d.Min), num(d.Max))
	}
	d = vm.p.settled(d)
	vm.declared = append(vm.declared, d)
	s := vm.env.Knobs.slot(vm.p, d)
	bits, boxed := s.value.Load(), lua.LValue(lua.LNumber(s.get()))
	l.Push(l.NewFunction(func(l *lua.LState) int {
		if now := s.value.Load(); now != bits {
			bits, boxed = now, lua.LNumber(math.Float64frombits(now))
		}
		l.Push(boxed)
		return 1
	}))
	return 1
}

// headOf is the head that a knob has its default from. It is one that the file asks
// for, if the names of those stand in the text: a slip would be lost in silence,
// since the file's default would do.
func (vm *VM) headOf(l *lua.LState, knob string, v lua.LValue) string {
	name, ok := v.(lua.LString)
	if !ok || name == "" {
		l.RaiseError("param: head of %q is %s; it must be the name of a head", knob, showValue(v))
	}
	if asked := vm.p.Heads; len(asked) > 0 && !slices.Contains(asked, string(name)) {
		l.RaiseError("param: %q has its default from the head %q, which the file does not ask for%s", knob, cut(string(name), 40), near.List(string(name), "heads", asked))
	}
	return string(name)
}

// Lua shows the constant as a router writes it.
func (c *constant) Lua() string { return c.text }
