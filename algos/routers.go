package algos

import (
	"embed"

	"tokenrouter/scripting/library"
)

//go:embed r2r/*.lua citer/*.lua collm/*.lua rstitch/*.lua me/*.lua controls/*.lua query/*.lua
var files embed.FS

// order is how routers are listed and stepped through: the algorithms of papers,
// those that run on any models first; the plain controls; variants of the papers';
// other controls; query level.
var order = []struct{ name, path string }{
	{"r2r", "r2r/router.lua"},
	{"rstitch", "rstitch/router.lua"},
	{"me", "me/router.lua"},
	{"citer", "citer/router.lua"},
	{"collm", "collm/router.lua"},
	{"random", "controls/random.lua"},
	{"chance", "controls/chance.lua"},
	{"small_only", "controls/small_only.lua"},
	{"large_only", "controls/large_only.lua"},
	{"r2r_neural", "r2r/neural.lua"},
	{"r2r_outcome", "r2r/outcome.lua"},
	{"collm_compose", "collm/compose.lua"},
	{"collm_draft", "collm/draft.lua"},
	{"citer_no_weights", "citer/no_weights.lua"},
	{"collm_no_weights", "collm/no_weights.lua"},
	{"oracle", "controls/oracle.lua"},
	{"window", "controls/window.lua"},
	{"hysteresis", "controls/hysteresis.lua"},
	{"handover", "controls/handover.lua"},
	{"query_mix", "query/mix.lua"},
	{"query_length", "query/length.lua"},
	{"query_probe", "query/probe.lua"},
	{"query_head", "query/head.lua"},
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
