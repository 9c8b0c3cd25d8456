package checker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/workload"
	"tokenrouter/scripting"
)

func load(t testing.TB, text string) *Checker {
	t.Helper()
	c, err := New("dir/right.lua", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var task = workload.Task{ID: "t1", Question: "How many?", Answer: "12", HasAnswer: true, Family: "units"}

const text = "<think>\n7+5=12\n</think>\n\n12 cm"

func TestCheckSeesTheTask(t *testing.T) {
	c := load(t, `function check(task, text, answer)
		return task.id == "t1" and task.question == "How many?" and task.answer == "12" and task.family == "units"
			and text == "<think>\n7+5=12\n</think>\n\n12 cm" and answer == "12 cm"
	end`)
	if right, fault := c.Check(task, text); !right || fault != "" {
		t.Errorf("%v, %q", right, fault)
	}
	c = load(t, `function check(task, text, answer) return task.answer == nil and task.family == nil and answer == nil end`)
	if right, fault := c.Check(workload.Task{ID: "1", Question: "q"}, "nothing"); !right || fault != "" {
		t.Errorf("a bare task: %v, %q", right, fault)
	}
}

func TestCheckJudges(t *testing.T) {
	c := load(t, `
		local seen = 0
		function check(task, text, answer)
			seen = seen + 1
			local n = tonumber(answer and answer:match("^(%d+) cm$"))
			return n == tonumber(task.answer) and seen <= 3
		end`)
	for i, want := range []bool{true, false, true, false} {
		out := text
		if i == 1 {
			out = "</think> 13 cm"
		}
		if right, fault := c.Check(task, out); right != want || fault != "" {
			t.Errorf("call %d: %v, %q, want %v", i, right, fault, want)
		}
	}
}

// Every fault is a wrong answer with file and line, and the next call is judged
// as if nothing had happened.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"error", `error("no")`, "right.lua:3: no"},
		{"nil", `return`, "right.lua:2: check returned nil; it must return true or false"},
		{"number", `return 1`, "right.lua:2: check returned 1; it must return true or false"},
		{"index", `local x = nil; return x.y`, "right.lua:3: "},
		{"field", `local k = "anwser"; return task[k] == "12"`, `right.lua:3: task has no field "anwser"; did you mean "answer"? fields: id, question, answer, family`},
		{"endless", `while true do end`, "right.lua:3: more than 100000 VM instructions in one call"},
		{"endless in pcall", `while true do pcall(error) end`, "right.lua:3: more than 100000 VM instructions in one call"},
		{"memory", `local t = {}; for i = 1, 1000 do t[i] = ("x"):rep(16000 + i % 300) end; return true`, "right.lua:3: more than 8 MiB of memory taken in one call"},
		{"long string", `return ("x"):rep(1e6) == ""`, "right.lua:3: "},
		{"recursion", `local function f() return f() + 1 end; return f() == 1`, "right.lua:3: "},
		{"error value", `error({})`, "right.lua: error() was called with a table, not with a text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := load(t, "local n = 0\nfunction check(task, text, answer)\nif task.id ~= 'good' then "+strings.ReplaceAll(c.body, "\n", " ")+" end return answer == task.answer\nend")
			good := workload.Task{ID: "good", Question: "q", Answer: "1", HasAnswer: true}
			for range 3 {
				if right, fault := v.Check(task, text); right || !strings.HasPrefix(fault, c.want) {
					t.Fatalf("%v, %q; want %s", right, fault, c.want)
				}
				if right, fault := v.Check(good, "</think>1"); !right || fault != "" {
					t.Fatalf("after the fault a good answer is %v, %q", right, fault)
				}
				if right, fault := v.Check(good, "</think>2"); right || fault != "" {
					t.Fatalf("after the fault a bad answer is %v, %q", right, fault)
				}
			}
		})
	}
}

// What a checker keeps from call to call is bounded.
func TestHeldMemory(t *testing.T) {
	c := load(t, `kept = {}
		function check(task, text, answer)
			for i = 1, 200 do kept[#kept + 1] = ("x"):rep(10000) .. #kept end
			return true
		end`)
	for i := range 40 {
		right, fault := c.Check(task, text)
		if fault == "" {
			continue
		}
		if right || !strings.Contains(fault, "the checker's variables hold") {
			t.Fatalf("call %d: %v, %q", i, right, fault)
		}
		if right, fault := c.Check(task, text); !right || fault != "" {
			t.Fatalf("afterwards: %v, %q", right, fault)
		}
		return
	}
	t.Error("80 MB were kept")
}

func TestLongTexts(t *testing.T) {
	c := load(t, `function check(task, text, answer)
		return #text <= 16384 and #text > 16380 and text:sub(-3) == "END" and task.question:sub(1, 2) == "Qu" and #task.question <= 16384
	end`)
	long := workload.Task{ID: "1", Question: "Qu" + strings.Repeat("\u00fc", 20000)}
	for _, fill := range []string{"x", "\u00fc", "\U0001f600"} {
		if right, fault := c.Check(long, strings.Repeat(fill, 50001)+"END"); !right || fault != "" {
			t.Errorf("%q: %v, %q", fill, right, fault)
		}
	}
}

func TestFilesRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "right.lua: the file is empty; a checker defines function check(task, text, answer)"},
		{"x = 1", "right.lua: there is no function check(task, text, answer)"},
		{"local function check(t) return true end", "right.lua:1: check is local, so the runtime cannot see it"},
		{"function check(t)\nreturn STAY\nend", "right.lua:2: STAY belongs to routers"},
		{"function check(t)\nreturn os.time() > 0\nend", "right.lua:2: os is absent"},
		{"function check(t)\nreturn tonumbr(t) > 0\nend", `right.lua:2: there is no global "tonumbr"; did you mean "tonumber"?`},
		{"function check(t)\nreturn true", "right.lua:2: "},
		{"check = 5", "right.lua: check is a number; it must be a function of the file"},
		{"check = print", "right.lua: check is a function; it must be a function of the file"},
		{"error('at the top')\nfunction check() return true end", "right.lua:1: at the top"},
		{"while true do end\nfunction check() return true end", "right.lua:1: more than 100000 VM instructions"},
		{"--" + strings.Repeat("x", scripting.MaxText) + "\nfunction check() return true end", "right.lua: the file has "},
		{"\x1bLua", "right.lua: is compiled Lua"},
	} {
		if v, err := New("some/right.lua", c.text, nil); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q gives %v, %v; want %s", c.text, v, err, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "right.lua")
	if err := os.WriteFile(path, []byte("function check(task, text, answer) print('seen', task.id) return true end"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	c, err := Read(path, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if right, fault := c.Check(task, text); !right || fault != "" || len(lines) != 1 || lines[0] != "seen t1" {
		t.Errorf("%v, %q, printed %q", right, fault, lines)
	}
	if _, err := Read(path+"x", nil); err == nil || !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

// Whatever the file and the text, a check ends and never panics; a fault is one
// line that names the file.
func FuzzCheck(f *testing.F) {
	f.Add("return answer == task.answer", "</think>12")
	f.Add("return text:find('%d+') ~= nil", "a 12")
	f.Add("local t = {} for w in text:gmatch('%S+') do t[#t+1] = w end return #t > 3", "a b c d")
	f.Add("return task.x", "")
	f.Fuzz(func(t *testing.T, body, text string) {
		c, err := New("f.lua", "function check(task, text, answer)\n"+body+"\nend", nil)
		if err != nil {
			return
		}
		defer c.Close()
		for range 2 {
			right, fault := c.Check(task, text)
			if fault != "" && (right || !strings.HasPrefix(fault, "f.lua") || strings.ContainsAny(fault, "\n\x1b")) {
				t.Fatalf("%v, %q", right, fault)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	c := load(b, `function check(task, text, answer) return tonumber((answer:match("%d+"))) == tonumber(task.answer) end`)
	b.ReportAllocs()
	for b.Loop() {
		c.Check(task, text)
	}
}
