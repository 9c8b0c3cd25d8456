package scripting

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting/near"
)

// VM runs one router for one subserver. It belongs to one goroutine; VMs share
// nothing but Programs and Knobs.
type VM struct {
	env   Env
	meter meter
	program
	enc   encoder
	wrong map[string]int // lines of wrong returns seen before

	routed *Row   // the row of the last Route, which a Send is about,
	after  []byte // and its r.state after the decision

	tracing *int // the line that runs, in a trace
}

// program is a Program loaded into a state of its own.
type program struct {
	p *Program
	l *lua.LState

	route, send, receive *lua.LFunction

	api  api
	row  rowView
	msg  messageView
	held int64 // bytes that the last audit found

	threads [maxProtected]*lua.LState // of pcall, by depth; nil while one runs
	level   int                       // of the pcall that runs

	broken bool  // the interpreter panicked: the state must be built anew
	dead   error // the router could not be loaded again after a fault of memory or of the interpreter

	declared  []Param
	hold      int // as the file declares, 0 if it does not
	loading   bool
	compiling bool // the file is being compiled, not run
}

// NewVM loads p for the subserver of env. Declare p's knobs first, or they
// stand at their defaults.
func NewVM(env Env, p *Program) (*VM, error) { return newVM(env, p, false) }

func newVM(env Env, p *Program, compiling bool) (*VM, error) {
	if env.Peers < 1 || env.Self < 0 || int(env.Self) >= env.Peers {
		return nil, fmt.Errorf("subserver %d of %d does not exist", env.Self, env.Peers)
	}
	vm := &VM{env: env}
	if err := vm.load(p, compiling); err != nil {
		return nil, err
	}
	return vm, nil
}

// Swap loads another program. Module variables start afresh; after an error the
// old program runs on.
func (vm *VM) Swap(p *Program) error {
	old := vm.program
	if err := vm.load(p, false); err != nil {
		vm.program = old
		return err
	}
	old.l.Close()
	vm.wrong = nil
	return nil
}

// Program returns the program that decides.
func (vm *VM) Program() *Program { return vm.p }

// Close frees the VM.
func (vm *VM) Close() { vm.l.Close() }

// load builds a fresh state, runs p's top level in it and finds the hooks.
func (vm *VM) load(p *Program, compiling bool) (err error) {
	vm.program = program{p: p, loading: true, compiling: compiling}
	defer vm.rescue(&err)
	vm.meter.used = 0
	vm.openState()
	vm.openAPI()

	vm.meter.begin(MaxInstructions)
	err = vm.chunk(p.proto, 0)
	vm.meter.end()
	vm.loading = false
	if err != nil {
		return vm.asError(err)
	}
	if !compiling && vm.hold != p.Hold {
		return &Error{File: p.File, Msg: fmt.Sprintf(
			"hold(%d) became hold(%d) here; write a number that depends on no knob and on no roles", p.Hold, vm.hold,
		)}
	}
	for _, h := range []struct {
		name string
		to   **lua.LFunction
	}{{"route", &vm.route}, {"send", &vm.send}, {"receive", &vm.receive}} {
		v := vm.l.G.Global.RawGetString(h.name)
		if v == lua.LNil && h.name != "route" {
			continue
		}
		f, ok := v.(*lua.LFunction)
		if !ok || f.IsG {
			return &Error{File: p.File, Msg: fmt.Sprintf("%s is a %s; it must be a function of the file", h.name, v.Type())}
		}
		*h.to = f
	}
	if vm.overfull() {
		return &Error{File: p.File, Msg: fmt.Sprintf(
			"the top of the file fills variables with %d MiB; a router may hold %d", vm.held>>20, MaxHeld>>20,
		)}
	}
	return nil
}

// openState makes an empty state with what Lua itself has.
func (vm *VM) openState() {
	vm.l = lua.NewState(lua.Options{
		CallStackSize: 128, RegistrySize: 1024, RegistryMaxSize: 4096, RegistryGrowStep: 512,
		SkipOpenLibs: true,
	})
	vm.l.SetContext(&vm.meter)
	vm.meter.print = vm.env.Print
	openLibs(vm.l)
}

// chunk runs a file's top level, whose arguments are the guards.
func (vm *VM) chunk(proto *lua.FunctionProto, results int) error {
	vm.l.Push(vm.l.NewFunctionFromProto(proto))
	for _, guard := range guards {
		vm.l.Push(vm.l.NewFunction(guard.fn))
	}
	return vm.l.PCall(len(guards), results, nil)
}

// asError turns a Lua error into an *Error: "r2r.lua:14: msg".
func (vm *VM) asError(err error) *Error {
	msg := err.Error()
	var api *lua.ApiError
	if errors.As(err, &api) {
		if msg = withoutAddresses(api.Object.String()); api.Object.Type() != lua.LTString {
			msg = "error() was called with a " + api.Object.Type().String() + ", not with a text"
		}
	}
	return parseError(vm.p.File, msg)
}

// parseError takes "r2r.lua:14: msg" apart.
func parseError(file, msg string) *Error {
	e := &Error{File: file, Msg: oneLine(msg)}
	rest, ok := strings.CutPrefix(e.Msg, file+":")
	if !ok {
		return e
	}
	line, text, ok := strings.Cut(rest, ": ")
	if n, err := strconv.Atoi(line); ok && err == nil {
		e.Line, e.Msg = n, text
	} else if line == "" && ok {
		e.Msg = text
	}
	return e
}

var address = regexp.MustCompile(`(table|function|userdata|thread|channel): 0x[0-9a-f]+`)

// withoutAddresses cuts where in memory a value lies out of a message: it
// differs from run to run.
func withoutAddresses(s string) string {
	if !strings.Contains(s, "0x") {
		return s
	}
	return address.ReplaceAllString(s, "$1")
}

// Route decides about a row. It never fails: a fault takes the default.
func (vm *VM) Route(row *Row) Decision {
	vm.row.unscored()
	d, err := vm.decide(row)
	vm.row.leave()
	if err != nil {
		d = Decision{Dest: event.Front, State: row.State, Fault: vm.fault(vm.route, err)}
	}
	vm.routed, vm.after = row, d.State
	vm.audit(&d.Fault)
	return d
}

func (vm *VM) decide(row *Row) (d Decision, err error) {
	defer vm.rescue(&err)
	dest, action, err := vm.call(vm.route, row)
	if err != nil {
		return d, err
	}
	if d.Dest, d.Action, d.At, err = vm.decision(row, dest, action); err != nil {
		return d, vm.at(row, err)
	}
	if d.State, err = vm.row.newState(&vm.enc); err != nil {
		return d, vm.at(row, err)
	}
	d.Score, d.Scored = vm.row.score, vm.row.hasScore
	return d, nil
}

// rescue turns a panic of the interpreter into a fault. PCall lets one through
// where its own bookkeeping panics, as gopher-lua 1.1.2 does when the arguments
// of a function overflow its registers. The state is then of no use any more.
func (vm *VM) rescue(err *error) {
	if p := recover(); p != nil {
		vm.broken = true
		*err = &Error{File: vm.p.File, Msg: oneLine(fmt.Sprintf(
			"the interpreter gave up (%v); is there an endless recursion with many arguments?", p,
		))}
	}
}

// call runs a hook on a row and returns its first two values.
func (vm *VM) call(fn *lua.LFunction, row *Row, args ...lua.LValue) (a, b lua.LValue, err error) {
	if vm.dead != nil {
		return nil, nil, vm.dead
	}
	l := vm.l
	vm.row.enter(row, len(args) > 0)
	vm.meter.begin(MaxInstructions)
	l.Push(fn)
	l.Push(vm.row.ud)
	for _, arg := range args {
		l.Push(arg)
	}
	vm.level = 0
	e := l.PCall(1+len(args), 2, nil)
	vm.meter.end()
	if e != nil {
		return nil, nil, vm.asError(e)
	}
	a, b = l.Get(-2), l.Get(-1)
	l.Pop(2)
	return a, b, nil
}

// decision checks what route returned about a row.
func (vm *VM) decision(row *Row, dest, action lua.LValue) (event.Peer, event.Action, int, error) {
	d, a, at := vm.env.Self, event.Keep, 0
	switch v := dest.(type) {
	case *lua.LUserData:
		c, ok := v.Value.(*constant)
		if !ok || c.sort != destination {
			return 0, 0, 0, vm.illegal(dest)
		}
		if c.peer != event.None {
			d = c.peer
		}
	case lua.LNumber: // the paper's plain index; 0 is STAY
		n := clampInt(float64(v))
		if lua.LNumber(n) != v || n < 0 || n >= vm.env.Peers {
			return 0, 0, 0, vm.illegal(dest)
		}
		if n > 0 {
			d = event.Peer(n)
		}
	default:
		return 0, 0, 0, vm.illegal(dest)
	}
	if action != lua.LNil {
		ud, _ := action.(*lua.LUserData)
		c, ok := value(ud).(*constant)
		if !ok || c.sort != actionConst {
			return 0, 0, 0, fmt.Errorf("route returned the action %s; legal are KEEP, DROP and TRUNCATE(pos)", showValue(action))
		}
		a, at = c.act, c.at
	}
	switch {
	case a == event.Drop && d == vm.env.Self:
		return 0, 0, 0, errors.New("route returned DROP with the own subserver as destination; DROP needs another one, which writes the position")
	case a == event.Truncate && d == vm.env.Self:
		return 0, 0, 0, fmt.Errorf("route returned TRUNCATE(%d) with the own subserver as destination; TRUNCATE needs another one, which writes the position", at)
	case a == event.Truncate && at > row.Pos:
		return 0, 0, 0, fmt.Errorf("route returned TRUNCATE(%d) at position %d; it takes back what was written before, so give r.pos at most", at, row.Pos)
	case a == event.Truncate && at < row.Pos && vm.hold == 0:
		return 0, 0, 0, fmt.Errorf("route returned TRUNCATE(%d) at position %d, but nothing is held back; write hold(n) at the top of the file", at, row.Pos)
	case a == event.Truncate && at < row.Pos && at < row.Emitted:
		return 0, 0, 0, fmt.Errorf("route returned TRUNCATE(%d), but what lies before position %d has been emitted; give r.emitted at least, or hold more back", at, row.Emitted)
	}
	return d, a, at, nil
}

func (vm *VM) illegal(v lua.LValue) error {
	roles := event.Roles(vm.env.Peers)
	if s, ok := v.(lua.LString); ok {
		if slices.Contains(roles, string(s)) {
			return fmt.Errorf("route returned the text %q; write to(%q)", string(s), string(s))
		}
		return fmt.Errorf("route returned the text %q; legal are STAY, HOME, to(role) and an index from 0 to %d%s",
			cut(string(s), 40), vm.env.Peers-1, near.List(string(s), "roles", roles))
	}
	return fmt.Errorf("route returned %s; legal are STAY, HOME, to(role) and an index from 0 to %d; roles: %s",
		showValue(v), vm.env.Peers-1, strings.Join(roles, ", "))
}

func value(ud *lua.LUserData) any {
	if ud == nil {
		return nil
	}
	return ud.Value
}

// showValue names a value in a message.
func showValue(v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LNilType, lua.LBool:
		return v.String()
	case lua.LNumber:
		if math.IsNaN(float64(v)) {
			return "NaN"
		}
		return v.String()
	case lua.LString:
		return fmt.Sprintf("%q", cut(string(v), 40))
	case *lua.LUserData:
		return plainText(v)
	}
	return "a " + v.Type().String()
}

// fault prefixes an error that has no line with where the function stands.
func (vm *VM) fault(fn *lua.LFunction, err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Error()
	}
	return (&Error{File: vm.p.File, Line: fn.Proto.LineDefined, Msg: oneLine(err.Error())}).Error()
}
