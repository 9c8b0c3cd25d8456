// Package keys is the catalogue of what the keys do: key -> action, with the
// words of the last line and of the help.
//
// The invariant that matters: no screen owns a raw key. Everything can be
// reached without Ctrl, Alt or function keys, and within one context no key
// means two things.
package keys

// Action is what a key asks for.
type Action string

// The actions.
const (
	Quit        Action = "quit"
	Help        Action = "help"
	Back        Action = "back"
	Pause       Action = "pause"
	Slower      Action = "slower"
	Faster      Action = "faster"
	Clock       Action = "clock"
	Fewer       Action = "fewer"
	More        Action = "more"
	NextRouter  Action = "next router"
	PrevRouter  Action = "previous router"
	Edit        Action = "edit"
	Up          Action = "up"
	Down        Action = "down"
	KnobDown    Action = "knob down"
	KnobUp      Action = "knob up"
	KnobBigDown Action = "knob far down"
	KnobBigUp   Action = "knob far up"
	PickB       Action = "pick B"
	LowerB      Action = "lower B"
	RaiseB      Action = "raise B"
	Policy      Action = "policy"
	Plan        Action = "plan"
	Focus       Action = "focus"
	Inspect     Action = "inspect"
	Drops       Action = "dropped"
	Export      Action = "export"
	Copy        Action = "copy"
	CopyToken   Action = "copy token"
	Left        Action = "left"
	Right       Action = "right"
	First       Action = "first"
	Last        Action = "last"
	NextSwitch  Action = "next switch"
	PrevSwitch  Action = "previous switch"
	AsJSONL     Action = "export jsonl"
	AsPerfetto  Action = "export perfetto"
)

// Context is where a key is pressed.
type Context uint8

// The contexts.
const (
	Board Context = iota
	Inspector
	Menu
	Helping
	Planning
	contexts
)

// Binding is one line of the catalogue.
type Binding struct {
	Action Action
	Keys   []string // as the terminal library names them
	Show   string   // as people read them, with the partner's key: "-/+"
	Hint   string   // word in the last line, "" = not there
	Help   string   // sentence in the help
	In     []Context
}

var (
	everywhere = []Context{Board, Inspector, Menu, Helping, Planning}
	onBoard    = []Context{Board}
	inside     = []Context{Inspector}
	running    = []Context{Board, Inspector}
	planned    = []Context{Board, Inspector, Planning}
	scrolling  = []Context{Board, Inspector, Helping, Planning}
)

// table is in the order of the last line: what comes first is kept longest when
// the window is narrow.
var table = []Binding{
	{Pause, []string{"space"}, "space", "pause", "pause and go on", running},
	{Left, []string{"left", "h"}, "left/right", "token", "move the cursor by a token", inside},
	{Right, []string{"right", "l"}, "", "", "", inside},
	{NextSwitch, []string{"n"}, "n/N", "next switch", "next and previous token with another writer", inside},
	{PrevSwitch, []string{"N"}, "", "", "", inside},
	{AsJSONL, []string{"j"}, "j", "JSONL, a row per token", "JSONL, a row per token", []Context{Menu}},
	{AsPerfetto, []string{"p"}, "p", "Perfetto, a timeline", "a trace for ui.perfetto.dev", []Context{Menu}},
	{Back, []string{"esc"}, "esc", "back", "back to the board", []Context{Inspector, Menu, Helping, Planning}},
	{Edit, []string{"e"}, "e", "edit", "edit the router; saving reloads it", running},
	{KnobUp, []string{"right", "l"}, "left/right", "knob", "move the picked knob, H and L by ten steps", onBoard},
	{KnobDown, []string{"left", "h"}, "", "", "", onBoard},
	{KnobBigUp, []string{"shift+right", "L"}, "", "", "", onBoard},
	{KnobBigDown, []string{"shift+left", "H"}, "", "", "", onBoard},
	{RaiseB, []string{"}"}, "{/}", "B", "lower and raise the threshold B", onBoard},
	{LowerB, []string{"{"}, "", "", "", onBoard},
	{NextRouter, []string{"n"}, "n/N", "router", "next and previous router", onBoard},
	{PrevRouter, []string{"N"}, "", "", "", onBoard},
	{Policy, []string{"P"}, "P", "policy", "next policy: eager, fixed, table, look-ahead, lock-step", []Context{Board, Planning}},
	{Plan, []string{"p"}, "p", "plan", "what the plan predicts, and how it turns out", planned},
	{Inspect, []string{"enter"}, "enter", "inspect", "look into the picked request, token by token", onBoard},
	{Clock, []string{"c"}, "c", "clock", "live clock or paced clock", running},
	{Faster, []string{"+", "="}, "-/+", "speed", "slower and faster, unless the clock is live", running},
	{Slower, []string{"-", "_"}, "", "", "", running},
	{More, []string{"]"}, "[/]", "concurrency", "fewer and more requests at a time", onBoard},
	{Fewer, []string{"["}, "", "", "", onBoard},
	{Export, []string{"x"}, "x", "export", "write the session so far to a file", running},
	{Copy, []string{"y"}, "y", "copy", "copy the text of the request", running},
	{CopyToken, []string{"Y"}, "Y", "copy token", "copy the token under the cursor", inside},
	{Focus, []string{"tab"}, "tab", "pane", "next pane: knobs, requests, events", onBoard},
	{PickB, []string{"B"}, "B", "which B", "next subserver whose B is meant", onBoard},
	{Down, []string{"down", "j"}, "up/down", "", "pick a knob, a request, an older event; a line of the text", scrolling},
	{Up, []string{"up", "k"}, "", "", "", scrolling},
	{Drops, []string{"d"}, "d", "dropped", "show dropped candidates in the streams", onBoard},
	{First, []string{"home", "g"}, "g/G", "ends", "first and newest token", inside},
	{Last, []string{"end", "G"}, "", "", "", inside},
	{Help, []string{"?"}, "?", "help", "this help", everywhere},
	{Quit, []string{"q", "ctrl+c"}, "q", "quit", "end the requests, close the session and quit; twice forces", everywhere},
}

var lookup = func() [contexts]map[string]Action {
	var out [contexts]map[string]Action
	for c := range out {
		out[c] = map[string]Action{}
	}
	for _, b := range table {
		for _, c := range b.In {
			for _, k := range b.Keys {
				out[c][k] = b.Action
			}
		}
	}
	return out
}()

// Find gives the action of a key, "" if it has none.
func Find(c Context, key string) Action {
	if c >= contexts {
		return ""
	}
	return lookup[c][key]
}

// Table lists the bindings of a context in their order.
func Table(c Context) []Binding {
	var out []Binding
	for _, b := range table {
		for _, in := range b.In {
			if in == c {
				out = append(out, b)
			}
		}
	}
	return out
}
