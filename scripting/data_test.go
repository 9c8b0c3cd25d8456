package scripting

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

// plainData draws a table of at most the given depth.
func plainData(t *rapid.T, label string, depth int) *lua.LTable {
	table := &lua.LTable{Metatable: lua.LNil}
	for i := range rapid.IntRange(0, 4).Draw(t, label+" size") {
		l := fmt.Sprint(label, i)
		var key lua.LValue = lua.LString(rapid.StringN(0, 6, 12).Draw(t, l+" key"))
		switch rapid.IntRange(0, 2).Draw(t, l+" kind of key") {
		case 0:
			key = lua.LNumber(rapid.IntRange(-3, 9).Draw(t, l+" index"))
		case 1:
			key = lua.LNumber(rapid.Float64Range(-2, 2).Draw(t, l+" float"))
		}
		table.RawSet(key, plainValue(t, l, depth))
	}
	return table
}

func plainValue(t *rapid.T, l string, depth int) lua.LValue {
	n := 4
	if depth > 0 {
		n = 5
	}
	switch rapid.IntRange(0, n).Draw(t, l+" kind") {
	case 0:
		return lua.LBool(rapid.Bool().Draw(t, l))
	case 1:
		return lua.LNumber(rapid.Int64().Draw(t, l))
	case 2:
		return lua.LNumber(rapid.Float64().Draw(t, l))
	case 3:
		return lua.LString(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, l))
	case 4:
		return lua.LNumber(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1 << 53, 0.1}).Draw(t, l))
	default:
		return plainData(t, l, depth-1)
	}
}

// What was encoded decodes to the same data and encodes to the same bytes.
func TestDataRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e encoder
		table := plainData(t, "t", 3)
		first, err := e.encode("t", table)
		if err != nil {
			t.Fatal(err)
		}
		first = bytes.Clone(first)
		back, err := decode(first)
		if err != nil {
			t.Fatalf("%x: %v", first, err)
		}
		again, err := e.encode("t", back)
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("%x became %x (%v)", first, again, err)
		}
	})
}

// The order in which a table was filled, and what was deleted since, does not
// show in the bytes.
func TestDataIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.Permutation([]string{"a", "b", "c", "dd", "e", "1"}).Draw(t, "order")
		table := &lua.LTable{Metatable: lua.LNil}
		for i, k := range keys {
			if i == 3 {
				table.RawSetString("gone", lua.LTrue)
			}
			table.RawSetString(k, lua.LNumber(len(k)))
			table.RawSet(lua.LNumber(len(keys)-i), lua.LString(k[:1]))
		}
		table.RawSetString("gone", lua.LNil)
		for i := range keys {
			table.RawSetInt(i+1, lua.LNumber(i))
		}
		var e encoder
		got, err := e.encode("t", table)
		if err != nil {
			t.Fatal(err)
		}
		if s, want := FormatData(got), `{0, 1, 2, 3, 4, 5, ["1"]=1, a=1, b=1, c=1, dd=2, e=1}`; s != want {
			t.Fatalf("%s, want %s", s, want)
		}
	})
}

func TestDataIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		"r.state = { f = print }":                                    "r.state.f is a function",
		"r.state.deep = { list = { 1, { g = to } } }":                "r.state.deep.list[2].g is a function",
		"r.state.r = r":                                              "r.state.r is a userdata",
		"r.state[r] = 1":                                             "r.state has a key that is a userdata",
		"local t = {}\nt.self = t\nr.state = t":                      "r.state is nested deeper than 16 levels, or contains itself",
		"local t = r.state\nfor i = 1, 20 do t.x = {}\nt = t.x end":  "r.state is nested deeper",
		"r.state.s = string.rep('x', 5000)":                          "r.state takes more than 4096 bytes",
		"for i = 1, 3000 do r.state[i] = i end":                      "r.state takes more than 4096 bytes",
		"for i = 1, 9 do r.state[i] = {}\nr.state[i][16000] = 1 end": "use strings as keys",

		"r.state = 5":    "r.state cannot be 5; it is a table",
		"r.state = 'x'":  `r.state cannot be "x"; it is a table`,
		"r.state = STAY": "r.state cannot be STAY; it is a table",
	} {
		if got := faultOf(t, Env{}, body+"\nreturn STAY"); !strings.Contains(got, want) {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

// r.state goes from decision to decision; unchanged bytes are the row's own.
func TestStateTravels(t *testing.T) {
	vm := mustVM(t, Env{}, `
function route(r)
  if r.token == 1 then return STAY end
  if r.token == 2 then r.state = nil return STAY end
  r.state.n = (r.state.n or 0) + 1
  r.state.seen = r.state.seen or {}
  table.insert(r.state.seen, r.token)
  if r.token == 3 then error("late") end
  return STAY
end`)
	row := sampleRow()
	for i, want := range []string{"{n=1, seen={5}}", "{n=2, seen={5, 5}}"} {
		d := vm.Route(row)
		if d.Fault != "" || FormatData(d.State) != want {
			t.Fatalf("step %d: %s %s", i, FormatData(d.State), d.Fault)
		}
		row.State = d.State
	}
	row.Output.Token = 1
	if d := vm.Route(row); &d.State[0] != &row.State[0] {
		t.Error("untouched state was copied")
	}
	row.Output.Token = 3
	if d := vm.Route(row); d.Fault == "" || FormatData(d.State) != "{n=2, seen={5, 5}}" {
		t.Errorf("a faulty call changed the state: %s %s", FormatData(d.State), d.Fault)
	}
	row.Output.Token = 2
	if d := vm.Route(row); d.Fault != "" || len(d.State) != 0 {
		t.Errorf("state was not cleared: %s %s", FormatData(d.State), d.Fault)
	}
	row.State = []byte("\x09damage")
	row.Output.Token = 5
	if d := vm.Route(row); !strings.Contains(d.Fault, "r.state is damaged") {
		t.Errorf("damaged state: %+v", d)
	}
}

// FuzzDecode: foreign bytes are refused or read, within bounds, and what is
// read has a canonical form.
func FuzzDecode(f *testing.F) {
	var e encoder
	t := &lua.LTable{Metatable: lua.LNil}
	t.RawSetString("a", lua.LNumber(1.5))
	t.RawSetInt(1, lua.LTrue)
	seed, err := e.encode("t", t)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(seed))
	f.Add([]byte{tagTable, 0, 1, tagInt, 0xfe, 0xff, 3, tagTrue})
	f.Add([]byte{tagTable, 1, tagTable, 1, tagTable, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := decode(b)
		if err != nil {
			return
		}
		_ = FormatData(b)
		var e encoder
		first, err := e.encode("t", table)
		if err != nil {
			return // deeper or larger than what is written
		}
		first = bytes.Clone(first)
		back, err := decode(first)
		if err != nil {
			t.Fatalf("%x: %v", first, err)
		}
		if again, err := e.encode("t", back); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("%x became %x (%v)", first, again, err)
		}
	})
}

// r.state goes along over hand-offs, whichever subserver decides.
func TestStateOverThreeModels(t *testing.T) {
	const text = `
function route(r)
  r.state.path = (r.state.path or "") .. r.model:sub(1, 1)
  r.state.seen = r.state.seen or {}
  r.state.seen[r.model] = (r.state.seen[r.model] or 0) + 1
  return to(({ small = "middle", middle = "large", large = "small" })[r.model])
end
function send(req, dest) return { fields = { from = req.model, path = req.state.path } } end
function receive(msg, req)
  assert(msg.fields.from == msg.from and msg.fields.path == msg.state.path)
end`
	var vms [3]*VM
	for i := range vms {
		vms[i] = mustVM(t, Env{Self: event.Peer(i), Peers: 3}, text[1:])
	}
	row, at := sampleRow(), event.Front
	for range 7 {
		d := vms[at].Route(row)
		_, fields, fault := vms[at].Send(row, d.Dest)
		msg := &event.PeerReq{From: at, Status: event.Alive, State: d.State, Fields: fields}
		if v := vms[d.Dest].Receive(msg, nil); d.Fault != "" || fault != "" || v.Fault != "" {
			t.Fatal(d.Fault, fault, v.Fault)
		}
		row.State, row.Fields, at = d.State, fields, d.Dest
	}
	if got := FormatData(row.State); got != `{path="smlsmls", seen={large=2, middle=2, small=3}}` {
		t.Error(got)
	}
}

// Case F2: requests that share a VM decide as each does alone.
func TestInterleavedRequests(t *testing.T) {
	const text = `
function route(r)
  local s = r.state
  s.unsure = r.entropy > 0.4 and (s.unsure or 0) + 1 or 0
  if s.unsure < 2 + math.floor(2 * r.random()) then return STAY end
  s.unsure = 0
  return to("large"), DROP
end`
	entropy := func(req, i int) float32 { return float32((req*7+i*i*3)%10) / 10 }
	play := func(vm *VM, requests ...int) map[int]string {
		states, out := map[int][]byte{}, map[int]string{}
		for i := range 200 {
			for _, req := range requests {
				row := sampleRow()
				row.Req, row.Pos, row.State = event.ReqID(req), 10+i, states[req]
				row.Output.Entropy = entropy(req, i)
				d := vm.Route(row)
				if d.Fault != "" {
					t.Fatal(d.Fault)
				}
				states[req] = d.State
				out[req] += fmt.Sprint(d.Dest)
			}
		}
		return out
	}
	together := play(mustVM(t, Env{}, text[1:]), 1, 2, 3)
	for req := 1; req <= 3; req++ {
		if alone := play(mustVM(t, Env{}, text[1:]), req)[req]; alone != together[req] || !strings.Contains(alone, "1") {
			t.Errorf("request %d\n alone    %s\n together %s", req, alone, together[req])
		}
	}
}
