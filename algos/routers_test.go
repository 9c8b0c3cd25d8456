package algos_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tokenrouter/algos"
	"tokenrouter/algos/internal/routertest"
	"tokenrouter/algos/reference"
	"tokenrouter/runtime/event"
	"tokenrouter/scripting"
	"tokenrouter/scripting/checker"
	"tokenrouter/scripting/library"
)

func TestRouters(t *testing.T) {
	var names []string
	for _, r := range algos.Routers() {
		names = append(names, r.Name)
		p, err := scripting.Compile(r.Name+".lua", r.Text)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, peers := range []int{2, 3} {
			if err := scripting.DryRun(p, scripting.Env{Peers: peers}, nil); err != nil {
				t.Errorf("%d models: %v", peers, err)
			}
		}
		first, _, _ := strings.Cut(r.Text, "\n")
		if what, ok := strings.CutPrefix(first, "-- "+r.Name+".lua: "); !ok || !strings.HasSuffix(what, ".") {
			t.Errorf("%s begins with %q, want its name and one sentence", r.Name, first)
		}
		for i, line := range strings.Split(r.Text, "\n") {
			if len(line) > 90 {
				t.Errorf("%s.lua:%d is %d wide", r.Name, i+1, len(line))
			}
		}
	}
	want := "r2r rstitch me citer collm random chance small_only large_only " +
		"r2r_neural r2r_outcome collm_compose collm_draft citer_no_weights collm_no_weights oracle window hysteresis handover " +
		"query_mix query_length query_probe query_head"
	if got := strings.Join(names, " "); got != want {
		t.Error(got)
	}
	if got := (library.Library{Embedded: algos.Routers()}).List(); len(got) != len(names) || !got[0].Embedded {
		t.Errorf("%+v", got)
	}
	lua, err := filepath.Glob("*/*.lua")
	if err != nil || len(lua) != len(names) {
		t.Errorf("%d routers in the folders, %d are listed (%v)", len(lua), len(names), err)
	}
}

// Case F1: who writes is who the router says, 0 % or 100 %, first token included.
func TestControls(t *testing.T) {
	for _, c := range []struct {
		name  string
		peers int
		set   map[string]float64
		want  event.Peer
		drops int
	}{
		{"small_only", 2, nil, 0, 0},
		{"small_only", 3, nil, 0, 0},
		{"large_only", 2, nil, 1, 1},
		{"large_only", 3, nil, 2, 1},
		{"random", 2, map[string]float64{"share": 0}, 0, 0},
		{"random", 2, map[string]float64{"share": 1}, 1, 20},
		{"chance", 2, map[string]float64{"small_large": 0}, 0, 0},
		{"chance", 2, map[string]float64{"small_large": 1}, 1, 20},
		{"chance", 2, map[string]float64{"small_large": 1, "large_small": 0}, 1, 1},
		{"chance", 3, map[string]float64{"small_large": 0, "small_middle": 1, "middle_large": 1, "middle_small": 0}, 2, 40},
		{"me", 2, map[string]float64{"small": 0}, 1, 1},
		{"me", 3, map[string]float64{"small": 0, "large": 0}, 1, 1},
		{"r2r", 2, map[string]float64{"threshold": 0}, 1, 20},
		{"r2r_neural", 2, map[string]float64{"threshold": 0}, 1, 20},
		{"citer", 2, map[string]float64{"threshold": 0}, 0, 0},
		{"collm", 2, map[string]float64{"threshold": 1}, 0, 0},
		{"collm_draft", 2, map[string]float64{"threshold": 1}, 0, 0},
		{"collm_compose", 2, map[string]float64{"threshold": 1}, 0, 0},
		{"citer_no_weights", 2, map[string]float64{"threshold": 0}, 0, 0},
		{"collm_no_weights", 2, map[string]float64{"threshold": 1}, 0, 0},
		{"handover", 2, map[string]float64{"threshold": 0, "tokens": 4}, 1, 5},
		{"hysteresis", 2, map[string]float64{"up": 4, "down": 4}, 0, 0},
		{"window", 2, map[string]float64{"threshold": 4}, 0, 0},
		{"window", 2, map[string]float64{"threshold": 0, "window": 1}, 1, 3},
		{"query_mix", 2, map[string]float64{"share": 1}, 1, 1},
		{"query_mix", 2, map[string]float64{"share": 0}, 0, 0},
		{"query_length", 2, map[string]float64{"length": 2}, 1, 1},
		{"query_length", 2, map[string]float64{"length": 3}, 0, 0},
		{"query_head", 2, map[string]float64{"threshold": 0}, 1, 1},
		{"query_probe", 2, map[string]float64{"threshold": 0, "tokens": 7}, 1, 7},
		{"query_probe", 2, map[string]float64{"threshold": 4}, 0, 0},
		{"query_probe", 3, map[string]float64{"threshold": 0, "tokens": 1}, 2, 1},
	} {
		run := reference.Run{Models: routertest.Models(c.peers), Req: 4, Prompt: []event.Token{3, 1}, MaxTokens: 20}
		r := routertest.Play(t, run, routertest.Load(t, c.name+".lua", text(t, c.name), c.peers, 5, c.set))
		for i, m := range r.Writers {
			if m != c.want {
				t.Errorf("%s with %d models: token %d is written by %d", c.name, c.peers, i, m)
			}
		}
		if len(r.Writers) != 20 || len(r.Dropped) != c.drops {
			t.Errorf("%s with %d models: %d tokens, %d dropped, want 20 and %d", c.name, c.peers, len(r.Writers), len(r.Dropped), c.drops)
		}
	}
}

// random.lua is a fair coin of its share.
func TestRandomShare(t *testing.T) {
	large, n := 0, 0
	vms := routertest.Load(t, "random.lua", text(t, "random"), 2, 5, map[string]float64{"share": 0.3})
	for req := range 400 {
		run := reference.Run{Models: routertest.Models(2), Req: event.ReqID(req + 1), Prompt: []event.Token{3}, MaxTokens: 25}
		for _, m := range routertest.Play(t, run, vms).Writers {
			large += int(m)
			n++
		}
	}
	// Five standard deviations of 10,000 draws at 0.3.
	if share := float64(large) / float64(n); share < 0.277 || share > 0.323 {
		t.Errorf("share %.3f", share)
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	for _, r := range algos.Routers() {
		if r.Name == name {
			return r.Text
		}
	}
	t.Fatalf("no router %s", name)
	return ""
}

// Every complete router in the documentation compiles and runs, and every
// fragment compiles inside a router.
func TestSnippetsInDocs(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```lua\n(.*?)^```")
	seen := 0
	for _, page := range append(pages, more...) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllSubmatchIndex(b, -1) {
			line := strings.Count(string(b[:m[0]]), "\n") + 1
			code := string(b[m[2]:m[3]])
			seen++
			if strings.Contains(code, "function check(") { // judges answers, routes nothing
				c, err := checker.New("doc.lua", code, nil)
				if err != nil {
					t.Errorf("%s, the block at line %d: %v\n%s", page, line, err, code)
					continue
				}
				c.Close()
				continue
			}
			if !regexp.MustCompile(`(?m)^(function route|route =)`).MatchString(code) {
				code = "function route(r)\n" + code + "\nend\n"
				if strings.Contains(code, "function send") || strings.Contains(code, "function receive") || strings.Contains(code, "param(") {
					code = string(b[m[2]:m[3]]) + "\nfunction route(r) return STAY end\n"
				}
			}
			p, err := scripting.Compile("doc.lua", code)
			if err == nil {
				err = scripting.DryRun(p, scripting.Env{Peers: 3}, nil)
			}
			if err != nil {
				t.Errorf("%s, the block at line %d: %v\n%s", page, line, err, code)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d blocks of Lua were found", seen)
	}
}
