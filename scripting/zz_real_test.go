package scripting

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func real51(code string) string {
	c := exec.Command("timeout", "2", "lua5.1", "-e", "local function main()\n"+code+"\nend\nlocal r = {pcall(main)}\nif not r[1] then io.write('error') return end\nfor i = 2, #r do io.write(i > 2 and '|' or '', tostring(r[i])) end")
	b, err := c.CombinedOutput()
	if err != nil {
		return "EXEC " + string(b)
	}
	return string(b)
}

func TestZZReal(t *testing.T) {
	n, diff := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := &author{t: t}
		code := prelude + p.block() + p.block() +
			"\nlog(a) log(b) log(t) log(g) end\nlog((pcall(run, 'v', 4)))\nreturn table.concat(out, ' ')"
		code = apart.ReplaceAllString(code, "$1")
		code = strings.ReplaceAll(code, "\x04", "...")
		code = strings.ReplaceAll(code, "#t", "2")
		got := sandboxed(t, code)
		if len(got) > 8000 {
			t.Skip("")
		}
		want := real51(code)
		n++
		if got != want {
			diff++
			t.Fatalf("%s\n got %s\nwant %s", code, cut(got, 600), cut(want, 600))
		}
	})
	t.Log(n, diff)
}
