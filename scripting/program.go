package scripting

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"tokenrouter/runtime/event"
)

// MaxText is the size of the largest router file, in bytes.
const MaxText = 64 << 10

// Program is a router that compiled, ran its top level once and defines route.
// It is immutable and may be loaded by any number of VMs.
type Program struct {
	File   string // base name, as faults cite it: "r2r.lua"
	Path   string // where it was read, "" when embedded; set by the caller
	Hash   string // first 12 hex digits of sha256(Text)
	Text   string
	Params []Param  // in the order of the file
	Hold   int      // tokens that stay behind unemitted, as the file declares with hold(n); 0: none
	Heads  []string // that the text names in r.score("name"), in its order

	proto    *lua.FunctionProto
	lines    []string
	assigned map[string]bool // globals that the file assigns somewhere
	heads    []headUse
}

// Error is a fault in a router's text.
type Error struct {
	File string
	Line int // 0 when the fault belongs to no line
	Msg  string
}

func (e *Error) Error() string {
	if e.Line <= 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Compile parses and checks the text of a router and runs its top level in a
// scratch VM with three roles. The error is an *Error: "r2r.lua:14: ...".
// Besides syntax it reports what would only surface in a rare branch: unknown
// globals, unknown fields of the arguments of route, send and receive, and
// functions that look like misspelt hooks.
func Compile(file, text string) (*Program, error) {
	p, errs := CompileAll(file, text)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return p, nil
}

// CompileAll is Compile with everything that is wrong, as far as it can be told
// at once: behind an error of syntax nothing is read, and the top level does not
// run where the text is wrong. The program is nil unless there is no error.
func CompileAll(file, text string) (*Program, []*Error) {
	file = filepath.Base(file)
	fail := func(line int, format string, args ...any) (*Program, []*Error) {
		return nil, []*Error{{File: file, Line: line, Msg: fmt.Sprintf(format, args...)}}
	}
	if len(text) > MaxText {
		return fail(0, "the file has %d bytes; a router may have %d", len(text), MaxText)
	}
	source := strings.TrimPrefix(text, "\ufeff") // the mark that some editors put before UTF-8
	if strings.TrimSpace(source) == "" {
		return fail(0, "the file is empty; a router defines function route(r)")
	}
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	chunk, err := parseText(file, source, len(lines))
	if err != nil {
		return nil, one(file, err)
	}
	w := newWalker(file)
	if chunk = w.program(chunk); len(w.errs) > 0 {
		return nil, w.errs
	}
	proto, err := compileChunk(file, chunk)
	if err != nil {
		return nil, one(file, err)
	}
	sum := sha256.Sum256([]byte(text))
	p := &Program{
		File: file, Hash: hex.EncodeToString(sum[:])[:12], Text: text,
		proto: proto, lines: lines, assigned: w.assigned, heads: w.heads,
	}
	for _, h := range w.heads {
		p.Heads = append(p.Heads, h.name)
	}
	vm, err := newVM(Env{Self: event.Front, Peers: 3}, p, true)
	if err != nil {
		return nil, one(file, err)
	}
	p.Params, p.Hold = vm.declared, vm.hold
	return p, nil
}

func one(file string, err error) []*Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{File: file, Msg: oneLine(err.Error())}
	}
	return []*Error{e}
}

// Parse reads a router's text as [Compile] does, unchecked; the error is an
// *Error.
func Parse(file, text string) ([]ast.Stmt, error) {
	source := strings.TrimPrefix(text, "\ufeff")
	return parseText(filepath.Base(file), source, strings.Count(strings.TrimSuffix(source, "\n"), "\n")+1)
}

// line returns source line n, trimmed.
func (p *Program) line(n int) string {
	if n < 1 || n > len(p.lines) {
		return ""
	}
	return strings.TrimSpace(p.lines[n-1])
}

func parseText(file, text string, lines int) (chunk []ast.Stmt, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{File: file, Msg: fmt.Sprint("cannot be read as Lua: ", r)}
		}
	}()
	if strings.HasPrefix(text, "\x1b") {
		return nil, &Error{File: file, Msg: "is compiled Lua; a router must be source text"}
	}
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return nil, &Error{File: file, Msg: "is UTF-16; save it as UTF-8"}
	}
	chunk, err = parse.Parse(strings.NewReader(text), file)
	var pe *parse.Error
	switch {
	case err == nil:
		return chunk, nil
	case !errors.As(err, &pe):
		return nil, &Error{File: file, Msg: oneLine(err.Error())}
	case pe.Pos.Line == parse.EOF || pe.Token == "":
		return nil, &Error{File: file, Line: lines, Msg: pe.Message + ": the file ends too early; is an \"end\" or a quote missing?"}
	default:
		line := pe.Pos.Line
		if pe.Pos.Column == 0 && line > 1 {
			line-- // a string that the end of its line cut off
		}
		return nil, &Error{File: file, Line: line, Msg: fmt.Sprintf("%s near %q", pe.Message, cut(pe.Token, 40))}
	}
}

func compileChunk(file string, chunk []ast.Stmt) (proto *lua.FunctionProto, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{File: file, Msg: fmt.Sprint("cannot be compiled: ", r)}
		}
	}()
	proto, err = lua.Compile(chunk, file)
	var ce *lua.CompileError
	if errors.As(err, &ce) {
		return nil, &Error{File: file, Line: ce.Line, Msg: ce.Message}
	}
	return proto, err
}

// oneLine makes a message fit one line of a screen or a record: no line breaks,
// and no control codes that a terminal would obey.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, s)
	return cut(strings.Join(strings.Fields(s), " "), 300)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
