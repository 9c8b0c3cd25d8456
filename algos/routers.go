package algos

import (
	"embed"

	"tokenrouter/scripting/library"
)

//go:embed r2r/router.lua rstitch/router.lua me/router.lua controls/*.lua
var files embed.FS

// order is how routers are listed and stepped through.
var order = []struct{ name, path string }{
	{"r2r", "r2r/router.lua"},
	{"rstitch", "rstitch/router.lua"},
	{"me", "me/router.lua"},
	{"random", "controls/random.lua"},
	{"chance", "controls/chance.lua"},
	{"small_only", "controls/small_only.lua"},
	{"large_only", "controls/large_only.lua"},
}

// Routers returns the shipped routers in the order of lists.
func Routers() []library.Router {
	out := make([]library.Router, 0, len(order))
	for _, r := range order {
		text, err := files.ReadFile(r.path)
		if err != nil {
			continue // embedded at compile time, so it is there
		}
		out = append(out, library.Router{Name: r.name, Text: string(text)})
	}
	return out
}
