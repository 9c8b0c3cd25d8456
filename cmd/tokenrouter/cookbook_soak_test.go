//go:build soak

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Every router of docs/lua.md answers requests on the embedded models without a
// fault, and some are right.
func TestDocumentedRoutersRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/lua.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := 0
	for _, m := range regexp.MustCompile("(?ms)^```lua\n(.*?)^```").FindAllSubmatchIndex(page, -1) {
		code := string(page[m[2]:m[3]])
		if !strings.Contains(code, "function route") {
			continue
		}
		n++
		models := "tiny-37k,tiny-842k"
		if strings.Contains(code, `"middle"`) {
			models = "tiny-37k,tiny-114k,tiny-842k"
		}
		script := fmt.Sprintf(`exec tokenrouter run --models %s --router r.lua --requests 40 -n 8 --json --no-record
stdout '"router_faults":0,'
stdout '"correct":[1-9]'
-- r.lua --
%s`, models, code)
		name := fmt.Sprintf("line-%d.txtar", strings.Count(string(page[:m[0]]), "\n")+1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n < 14 {
		t.Fatalf("%d routers", n)
	}
	testscript.Run(t, testscript.Params{Dir: dir})
}
