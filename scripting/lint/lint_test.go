package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tokenrouter/algos"
	"tokenrouter/scripting"
	"tokenrouter/scripting/lint"
)

// Each case is a router and what is found in it, by line. A router that runs has
// been tried with 2 and 3 models, or as many as models= says.
func TestFindings(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "check" {
				d.Fatalf(t, "no command %q", d.Cmd)
			}
			var o lint.Options
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "models":
					n, err := strconv.Atoi(arg.Vals[0])
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					o.Models = append(o.Models, n)
				case "heads":
					o.Scorer = heads{"r2r"}
				}
			}
			_, found := lint.Check("dir/r.lua", d.Input, o)
			if len(found) == 0 {
				return "clean\n"
			}
			var b strings.Builder
			for _, f := range found {
				if lines := strings.Count(d.Input, "\n") + 1; f.Line > lines {
					t.Errorf("line %d of %d: %s", f.Line, lines, &f)
				}
				fmt.Fprintln(&b, &f)
			}
			return b.String()
		})
	})
}

// heads are those of the small model that a case has.
type heads []string

func (h heads) Check(name string) error {
	if !slices.Contains(h, name) {
		return fmt.Errorf("no head %q; heads: %s", name, strings.Join(h, ", "))
	}
	return nil
}

func (h heads) Score(string, *scripting.Row) (float64, error) { return 0, scripting.ErrNoModel }

// Reads is what a dry run asks before it makes a score up.
func (h heads) Reads(name, role string) error {
	if role != "small" {
		return fmt.Errorf("head %s reads the small model", name)
	}
	return nil
}

// Every rule is broken by a case above.
func TestEveryRuleHasACase(t *testing.T) {
	var cases, code strings.Builder
	for _, glob := range []struct {
		pattern string
		to      *strings.Builder
	}{{"testdata/*", &cases}, {"*.go", &code}} {
		files, err := filepath.Glob(glob.pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(glob.pattern, err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			glob.to.Write(b)
		}
	}
	rules := regexp.MustCompile(`l\.(?:report\((?:Hint|Warning|Error|s)|paired\(), "([a-z-]+)"|l\.paired\("([a-z-]+)"`).FindAllStringSubmatch(code.String(), -1)
	seen := map[string]bool{}
	for _, m := range rules {
		seen[m[1]+m[2]] = true
	}
	if len(seen) < 15 {
		t.Errorf("only %d rules: %v", len(seen), seen)
	}
	for rule := range seen {
		if !strings.Contains(cases.String(), "["+rule+"]") {
			t.Errorf("no case breaks the rule %q", rule)
		}
	}
}

// The shipped routers are clean, hints included.
func TestShippedRoutersAreClean(t *testing.T) {
	for _, r := range algos.Routers() {
		p, found := lint.Check(r.Name+".lua", r.Text, lint.Options{})
		if p == nil {
			t.Errorf("%s does not compile", r.Name)
		}
		for _, f := range found {
			t.Error(&f)
		}
	}
}

// Every router in docs/lua.md compiles, runs with as many models as it speaks of,
// and is clean. The lines are those of the page.
func TestExamplesInDocsAreClean(t *testing.T) {
	page, err := os.ReadFile("../../docs/lua.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile("(?ms)^```lua\n(.*?)^```").FindAllSubmatchIndex(page, -1) {
		code := string(page[m[2]:m[3]])
		if !strings.Contains(code, "function route") {
			continue
		}
		n++
		models := []int{2, 3}
		if strings.Contains(code, `to("middle")`) {
			models = []int{3}
		}
		above := strings.Count(string(page[:m[2]]), "\n")
		p, found := lint.Check("lua.md", strings.Repeat("\n", above)+code, lint.Options{Models: models})
		for _, f := range found {
			t.Error(&f)
		}
		if p == nil {
			continue
		}
		for _, peers := range models {
			if err := scripting.DryRun(p, scripting.Env{Peers: peers}, nil); err != nil {
				t.Errorf("%d models: %v", peers, err)
			}
		}
	}
	if n < 14 {
		t.Errorf("%d routers", n)
	}
}

// One slip of the finger anywhere in a shipped router, two letters of a word
// swapped, is found: of names, fields, knobs' uses, roles and keys of r.state and
// r.fields. Keys of a router's own tables are not seen, and neither are texts.
func TestSlipsAreFound(t *testing.T) {
	word := regexp.MustCompile(`--.*|"[^"]*"|[A-Za-z_][A-Za-z_0-9]+`)
	missed, slips := 0, 0
	for _, r := range algos.Routers() {
		for n, at := range word.FindAllStringIndex(r.Text, -1) {
			w := r.Text[at[0]:at[1]]
			if n%2 == 1 {
				continue // every second word, for time
			}
			if strings.HasPrefix(w, "--") || len(w) < 4 || strings.HasPrefix(w, `"`) && !slices.Contains([]string{`"small"`, `"middle"`, `"large"`}, w) {
				continue
			}
			i := len(w) / 2
			slip := w[:i-1] + w[i:i+1] + w[i-1:i] + w[i+1:]
			if slip == w {
				continue
			}
			slips++
			text := r.Text[:at[0]] + slip + r.Text[at[1]:]
			if _, found := lint.Check(r.Name+".lua", text, lint.Options{}); len(found) == 0 {
				missed++
				t.Logf("%s:%d: %s for %s", r.Name, 1+strings.Count(text[:at[0]], "\n"), slip, w)
			}
		}
	}
	if slips < 300 || missed*100 > slips*3 {
		t.Errorf("%d of %d slips are missed", missed, slips)
	}
	t.Logf("%d of %d slips are missed", missed, slips)
}
