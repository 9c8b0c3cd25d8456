package api

import (
	"fmt"
	"regexp"
	"strings"
)

// head is the annotations' beginning. Destination, Action and Verdict are opaque:
// what they are made of is the runtime's.
const head = `---@meta
-- Generated from scripting/api: what a router sees and may do, for editors that
-- speak LuaLS. tokenrouter routers --types DIR writes it beside your routers.
-- Write ---@param r Row above function route(r), and r. completes.

---@alias Role "small"|"middle"|"large"|string

---@class Destination
---@class Action
---@class Verdict

`

// Annotations is the catalogue as a definition file of LuaLS.
func Annotations() []byte {
	var b strings.Builder
	b.WriteString(head)
	for _, c := range Classes() {
		fmt.Fprintf(&b, "--- %s\n---@class %s\n", c.Doc, c.Name)
		for _, f := range c.Fields {
			fmt.Fprintf(&b, "---@field %s %s # %s\n", f.Name, fieldType(&f), plain(f.Doc))
		}
		b.WriteString("\n")
	}
	for _, g := range globals {
		annotate(&b, &g)
	}
	b.WriteString("-- Written by the router.\n\n")
	for _, h := range hooks {
		annotate(&b, &h)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// fieldType is a field's type; a function's is its signature.
func fieldType(e *Entry) string {
	if !e.IsFunction() {
		return e.Type
	}
	params := make([]string, len(e.Params))
	for i, p := range e.Params {
		params[i] = p.Name + ": " + p.Type
	}
	return "fun(" + strings.Join(params, ", ") + "): " + strings.Join(e.Returns, ", ")
}

func annotate(b *strings.Builder, e *Entry) {
	fmt.Fprintf(b, "--- %s\n", plain(e.Doc))
	if !e.IsFunction() {
		fmt.Fprintf(b, "---@type %s\n%s = nil\n\n", e.Type, e.Name)
		return
	}
	var names []string
	for _, p := range e.Params {
		fmt.Fprintf(b, "---@param %s %s\n", p.Name, p.Type)
		names = append(names, strings.TrimSuffix(p.Name, "?"))
	}
	if len(e.Returns) > 0 {
		fmt.Fprintf(b, "---@return %s\n", strings.Join(e.Returns, ", "))
	}
	fmt.Fprintf(b, "function %s(%s) end\n\n", e.Name, strings.Join(names, ", "))
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain leaves the text of links into docs/lua.md, which lead nowhere elsewhere.
func plain(doc string) string { return link.ReplaceAllString(doc, "$1") }

// Editor is the settings of LuaLS for a folder of routers: Lua as routers have it
// (5.1 with goto), without the libraries that they do not have, and the
// annotations in the folder types.
const Editor = `{
  "$schema": "https://raw.githubusercontent.com/LuaLS/vscode-lua/master/setting/schema.json",
  "runtime.version": "LuaJIT",
  "runtime.builtin": {
    "bit": "disable", "bit32": "disable", "coroutine": "disable", "debug": "disable", "ffi": "disable",
    "io": "disable", "jit": "disable", "jit.profile": "disable", "jit.util": "disable", "os": "disable",
    "package": "disable", "string.buffer": "disable", "table.clear": "disable", "table.new": "disable", "utf8": "disable"
  },
  "workspace.library": ["types"],
  "diagnostics.globals": ["route", "send", "receive"]
}
`
