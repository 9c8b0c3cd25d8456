package scripting_test

import (
	"os"
	"testing"

	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
)

func BenchmarkRoute(b *testing.B) {
	for _, file := range []string{"r2r/router.lua", "rstitch/router.lua", "me/router.lua", "controls/large_only.lua"} {
		b.Run(file, func(b *testing.B) {
			text, err := os.ReadFile("../algos/" + file)
			if err != nil {
				b.Fatal(err)
			}
			p, err := scripting.Compile("r.lua", string(text))
			if err != nil {
				b.Fatal(err)
			}
			knobs := scripting.NewKnobs()
			knobs.Declare(p)
			vm, err := scripting.NewVM(scripting.Env{Peers: 2, Knobs: knobs}, p)
			if err != nil {
				b.Fatal(err)
			}
			o := event.Output{Entropy: 0.7, EntropyNorm: 0.1, Top1: 0.6}
			row := scripting.Row{Output: &o, Pos: 20, PromptLen: 10}
			b.ReportAllocs()
			for b.Loop() {
				row.Pos++
				if d := vm.Route(&row); d.Fault != "" {
					b.Fatal(d.Fault)
				}
			}
		})
	}
}
