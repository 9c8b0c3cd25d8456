package algos_test

import (
	"testing"

	"tokenrouter/algos"
	"tokenrouter/algos/internal/routertest"
	"tokenrouter/scripting"
)

// Any shipped router takes a request over from any other in the middle of it,
// wherever it is, and finds there what the other has left: without a fault, and the
// text comes to its end.
func TestSwaps(t *testing.T) {
	var programs []*scripting.Program
	for _, r := range algos.Routers() {
		p, err := scripting.Compile(r.Name+".lua", r.Text)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	for _, from := range algos.Routers() {
		vms := routertest.Load(t, from.Name+".lua", from.Text, 2, routertest.Seed, nil)
		own := vms[0].Program()
		for _, to := range programs {
			for req := range 4 {
				p := routertest.NewPlayer(t, routertest.Run(2, req), vms)
				for step := 0; p.Step(); step++ {
					switch step {
					case 3 * req:
						p.Swap(to)
					case 3*req + 7:
						p.Swap(own)
					}
				}
				for _, vm := range vms {
					if err := vm.Swap(own); err != nil {
						t.Fatal(err)
					}
				}
				if t.Failed() {
					t.Fatalf("from %s to %s", own.File, to.File)
				}
			}
		}
	}
}
