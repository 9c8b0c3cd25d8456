package scripting

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"tokenrouter/scripting/near"
)

// CheckTask is a finished task as function check sees it.
type CheckTask struct {
	ID, Question string
	Answer       string // that is wanted; nil in Lua without HasAnswer
	HasAnswer    bool
	Family       string // nil in Lua where there is none
	Found        string // the answer that was extracted from the text; nil in Lua where there is none
}

// CheckVM judges answers by the function check(task, text, answer) of a Lua file,
// in the sandbox of routers and under its limits: a call ends after as many
// counted instructions and bytes, reaches nothing outside and depends on nothing
// but its arguments and the file's variables. It belongs to one goroutine.
type CheckVM struct {
	vm    VM
	check *lua.LFunction
	task  *lua.LTable // whose metatable all tasks share
}

var checkFields = []string{"id", "question", "answer", "family"}

// NewCheckVM compiles a file and loads it. The error is an *Error:
// "right.lua:14: ...". Lines of print() go to print, which may be nil.
func NewCheckVM(file, text string, print func(line string)) (*CheckVM, error) {
	p, err := compileCheck(filepath.Base(file), text)
	if err != nil {
		return nil, err
	}
	c := &CheckVM{vm: VM{env: Env{Peers: 1, Print: print}}}
	if err := c.load(p); err != nil {
		return nil, err
	}
	return c, nil
}

func compileCheck(file, text string) (*Program, error) {
	source := strings.TrimPrefix(text, "\ufeff") // the mark that some editors put before UTF-8
	switch {
	case len(text) > MaxText:
		return nil, &Error{File: file, Msg: fmt.Sprintf("the file has %d bytes; a checker may have %d", len(text), MaxText)}
	case strings.TrimSpace(source) == "":
		return nil, &Error{File: file, Msg: "the file is empty; a checker defines function check(task, text, answer)"}
	}
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	chunk, err := parseText(file, source, len(lines))
	if err != nil {
		return nil, err
	}
	w := newWalker(file)
	w.push(1)
	chunk = w.stmts(chunk)
	w.pop()
	w.checkChecker()
	w.checkGlobals()
	if len(w.errs) > 0 {
		return nil, w.errs[0]
	}
	proto, err := compileChunk(file, bindGuards(chunk))
	if err != nil {
		return nil, err
	}
	return &Program{File: file, Text: text, proto: proto, lines: lines, assigned: w.assigned}, nil
}

// checkChecker tests that the file defines check, and uses nothing of routers.
func (w *walker) checkChecker() {
	for _, ref := range w.reads {
		if slices.Contains(apiNames, ref.name) && !w.assigned[ref.name] {
			w.fail(ref.line, "%s belongs to routers; a checker looks at a finished text and returns true or false", ref.name)
		}
	}
	if w.assigned["check"] || w.dynamic {
		return
	}
	if line, ok := w.localFns["check"]; ok {
		w.fail(line, "check is local, so the runtime cannot see it; write: function check(task, text, answer)")
		return
	}
	w.fail(0, "there is no function check(task, text, answer); a checker must define one")
}

// load runs the file's top level in a fresh state.
func (c *CheckVM) load(p *Program) (err error) {
	vm := &c.vm
	vm.program = program{p: p}
	defer vm.rescue(&err)
	vm.meter.used = 0
	vm.openState()
	g := vm.l.G.Global
	g.RawSetString("pcall", vm.l.NewFunction(vm.luaPCall))
	g.RawSetString("xpcall", vm.l.NewFunction(vm.luaXPCall))
	strict(vm.l, g, c.noGlobal)
	c.task = vm.l.NewTable()
	strict(vm.l, c.task, func(key string) string {
		if slices.Contains(checkFields, key) {
			return "" // this task has none
		}
		return fmt.Sprintf("task has no field %q%s", cut(key, 40), near.List(key, "fields", checkFields))
	})
	vm.meter.begin(MaxInstructions)
	err = vm.chunk(p.proto, 0)
	vm.meter.end()
	if err != nil {
		return vm.asError(err)
	}
	f, ok := g.RawGetString("check").(*lua.LFunction)
	if !ok || f.IsG {
		return &Error{File: p.File, Msg: fmt.Sprintf("check is a %s; it must be a function of the file", g.RawGetString("check").Type())}
	}
	c.check = f
	if vm.overfull() {
		return &Error{File: p.File, Msg: fmt.Sprintf(
			"the top of the file fills variables with %d MiB; a checker may hold %d", vm.held>>20, MaxHeld>>20,
		)}
	}
	return nil
}

func (c *CheckVM) noGlobal(name string) string {
	if c.vm.p.assigned[name] {
		return ""
	}
	if why, ok := absent[name]; ok {
		return why
	}
	known := slices.DeleteFunc(slices.Clone(globalNames), func(n string) bool { return slices.Contains(apiNames, n) })
	return `there is no global "` + cut(name, 40) + `"` + near.Hint(name, known)
}

// Check judges the text that was written for a task. The error is a fault of the
// file, an *Error that names its line; the answer is then not right. Of a text
// longer than MaxString the file gets the end, of a question the beginning.
func (c *CheckVM) Check(task *CheckTask, text string) (right bool, err error) {
	vm := &c.vm
	if vm.dead != nil {
		return false, vm.dead
	}
	right, err = c.call(task, text)
	p := vm.p
	switch {
	case vm.broken:
	case vm.overfull():
		right, err = false, &Error{File: p.File, Msg: fmt.Sprintf(
			"the checker's variables hold %d MiB, more than %d; they start afresh", vm.held>>20, MaxHeld>>20,
		)}
	default:
		return right, err
	}
	vm.l.Close()
	if again := c.load(p); again != nil {
		vm.dead = again
	}
	return right, err
}

func (c *CheckVM) call(task *CheckTask, text string) (right bool, err error) {
	vm := &c.vm
	defer vm.rescue(&err)
	l := vm.l
	vm.meter.begin(MaxInstructions)
	t := l.NewTable()
	t.Metatable = c.task.Metatable
	t.RawSetString("id", lua.LString(first(task.ID)))
	t.RawSetString("question", lua.LString(first(task.Question)))
	if task.HasAnswer {
		t.RawSetString("answer", lua.LString(first(task.Answer)))
	}
	if task.Family != "" {
		t.RawSetString("family", lua.LString(first(task.Family)))
	}
	found := lua.LValue(lua.LNil)
	if task.Found != "" {
		found = lua.LString(last(task.Found))
	}
	l.Push(c.check)
	l.Push(t)
	l.Push(lua.LString(last(text)))
	l.Push(found)
	vm.level = 0
	e := l.PCall(3, 1, nil)
	vm.meter.end()
	if e != nil {
		return false, vm.asError(e)
	}
	v := l.Get(-1)
	l.Pop(1)
	b, ok := v.(lua.LBool)
	if !ok {
		return false, &Error{
			File: vm.p.File, Line: c.check.Proto.LineDefined,
			Msg: oneLine(fmt.Sprintf("check returned %s; it must return true or false", showValue(v))),
		}
	}
	return bool(b), nil
}

// Close frees the VM.
func (c *CheckVM) Close() { c.vm.l.Close() }

// first and last cut a text to what a string may have, between characters.
func first(s string) string {
	if len(s) <= MaxString {
		return s
	}
	n := MaxString
	for n > MaxString-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func last(s string) string {
	if len(s) <= MaxString {
		return s
	}
	n := len(s) - MaxString
	for n < len(s)-MaxString+utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[n:]
}
