package scripting

import (
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/event"
)

// FuzzRouter: any text is refused or runs; nothing panics or hangs, a fault
// takes the default, and what is decided is legal.
func FuzzRouter(f *testing.F) {
	shipped, err := filepath.Glob("../algos/*/*.lua")
	if err != nil || len(shipped) == 0 {
		f.Fatalf("no shipped routers: %v", err)
	}
	for _, path := range shipped {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, b := range bombs {
		f.Add(routeOf(b.body))
	}
	f.Add(looksBack)
	f.Add("function route(r) return r.state.x end function send(r, d) return {fields={r.topk(1)}} end function receive(m, q) return APPEND(m.suffix) end")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Compile("f.lua", text)
		if err != nil {
			return
		}
		vm, err := NewVM(Env{Self: 1, Peers: 3, Vocab: 100}, p)
		if err != nil {
			return
		}
		defer vm.Close()
		row := sampleRow()
		for range 2 {
			d := vm.Route(row)
			if d.Dest < 0 || d.Dest > 2 || d.Action != event.Keep && d.Dest == 1 || d.Action == event.Truncate && d.At > row.Pos {
				t.Fatalf("illegal decision %+v", d)
			}
			if d.Fault != "" && (d.Dest != event.Front || d.Action != event.Keep) {
				t.Fatalf("a fault with %+v", d)
			}
			if len(d.State) > MaxData {
				t.Fatalf("%d bytes of state", len(d.State))
			}
			if _, err := decode(d.State); err != nil {
				t.Fatalf("state %x: %v", d.State, err)
			}
			row.State = d.State
			budget, fields, _ := vm.Send(row, 2)
			if budget < 0 || len(fields) > MaxData {
				t.Fatalf("budget %d, %d bytes of fields", budget, len(fields))
			}
			v := vm.Receive(&event.PeerReq{Status: event.Alive, Suffix: []event.Token{1}, State: d.State, Fields: fields}, nil)
			for _, id := range v.Ids {
				if id < 0 || id >= 100 {
					t.Fatalf("id %d", id)
				}
			}
		}
		Trace(Env{Peers: 2}, p, row)
	})
}
