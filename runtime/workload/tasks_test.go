package workload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadReferenceTasks(t *testing.T) {
	file, err := os.ReadFile("testdata/tasks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := ReadTasks(bytes.NewReader(file), "tasks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	g := generator(t, EvaluationSeed, Light)
	list := NewList(tasks)
	if list.Len() != 300 {
		t.Fatalf("%d tasks, want 300", list.Len())
	}
	for range 300 {
		got, ok := list.Next()
		want, _ := g.Next()
		if !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, want %+v", got, want)
		}
	}
	if extra, ok := list.Next(); ok || list.Len() != 0 {
		t.Errorf("the list goes on with %+v", extra)
	}
}

func TestReadTasksForms(t *testing.T) {
	in := "\uFEFF" + `{"id": 7, "question": "a?", "answer": 12}` + "\r\n\n  \n" +
		`{"id": "x y", "question": "ü\n?", "answer": " 3 ", "more": [1]}` + "\n" +
		`{"id": 1.50, "question": "b?"}` + "\n" +
		`{"id": "n", "question": "c?", "answer": null}` + "\n" +
		`{"id": "e", "question": "d?", "answer": ""}`
	got, err := ReadTasks(strings.NewReader(in), "t")
	if err != nil {
		t.Fatal(err)
	}
	want := []Task{
		{ID: "7", Question: "a?", Answer: "12", HasAnswer: true},
		{ID: "x y", Question: "ü\n?", Answer: " 3 ", HasAnswer: true},
		{ID: "1.50", Question: "b?"},
		{ID: "n", Question: "c?"},
		{ID: "e", Question: "d?", HasAnswer: true},
	}
	if len(got) != len(want) {
		t.Fatalf("read %+v", got)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("task %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestReadTasksChecks(t *testing.T) {
	in := `{"id": 1, "question": "a?", "answers": [12, " 3 "], "family": "x"}
{"id": 2, "question": "b?", "regex": "^\\d+$"}
{"id": 3, "question": "c?", "number": 12.5, "tolerance": 0.5}
{"id": 4, "question": "d?", "answer": null, "answers": null, "regex": null, "number": null, "extract": null, "family": null}
{"extract": "number"}
{"id": 5, "question": "e?", "answer": 07.5}
{"id": 6, "question": "f?", "number": 0, "extract": "text"}
{"id": 7, "question": "g?"}`
	in = strings.ReplaceAll(in, "07.5", "7.50")
	got, err := ReadTasks(strings.NewReader(in), "t")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		want, family, check string
		checked             bool
		right, wrong        string
	}{
		{"12 or  3 ", "x", `{"answers":["12"," 3 "]}`, true, "</think>3", "</think>4"},
		{`/^\d+$/`, "", `{"regex":"^\\d+$"}`, true, "</think>3", "</think>3."},
		{"12.5 +- 0.5", "", `{"number":12.5,"tolerance":0.5}`, true, "</think>13.00", "</think>13.01"},
		{"", "", "", false, "", "</think>4"},
		{"7.50", "", `{"answers":["7.50"],"extract":"number"}`, true, "of 8 it is 7.50 m", "it is 7.5"},
		{"0", "", `{"number":0,"extract":"text"}`, true, " 0.0", "of 0"},
		{"", "", `{"extract":"number"}`, false, "", "7"},
	} {
		task := got[i]
		if task.ID != strconv.Itoa(i+1) || task.Answer != c.want || task.Family != c.family || task.HasAnswer != c.checked {
			t.Errorf("task %+v, want %+v", task, c)
		}
		if task.Check == nil != (c.check == "") || task.Check != nil && task.Check.String() != c.check {
			t.Errorf("task %d is checked by %s, want %s", i+1, task.Check, c.check)
		}
		if _, right, _ := task.Judge(c.right); right != c.checked {
			t.Errorf("task %d: %q is right: %v", i+1, c.right, right)
		}
		if _, right, checked := task.Judge(c.wrong); right || checked != c.checked {
			t.Errorf("task %d: %q is right: %v", i+1, c.wrong, right)
		}
	}
}

func TestReadTasksErrors(t *testing.T) {
	const good = `{"id": 1, "question": "q"}` + "\n"
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", `f.jsonl holds no task`},
		{"blank", "\n \n", `f.jsonl holds no task`},
		{"broken", good + "\n{", `f.jsonl:3: line is no task: unexpected end of JSON input`},
		{"list", "[1]", `f.jsonl:1: line is no task: it is not a JSON object but array; write {"id": ..., "question": ...}`},
		{"text", `"q"`, `f.jsonl:1: line is no task: it is not a JSON object but string`},
		{"two objects", good[:len(good)-1] + "{}", `f.jsonl:1: line is no task: `},
		{"no id", `{"question": "q"}`, `f.jsonl:1: task has no "id"; give it a string or a number`},
		{"empty id", `{"id": "", "question": "q"}`, `f.jsonl:1: task has no "id"`},
		{"id object", `{"id": {}, "question": "q"}`, `f.jsonl:1: "id" is an object; it must be a string or a number`},
		{"answer list", `{"id": 1, "question": "q", "answer": [2]}`, `f.jsonl:1: "answer" is a list; it must be`},
		{"answer bool", `{"id": 1, "question": "q", "answer": true}`, `f.jsonl:1: "answer" is true or false; it must be`},
		{"no question", `{"id": 1}`, `f.jsonl:1: task "1" has no "question"`},
		{"question number", `{"id": 1, "question": 2}`, `f.jsonl:1: "question" is not a string but number`},
		{"twice", good + "\n" + `{"id": "1", "question": "r"}`, `f.jsonl:3: id "1" was used in line 1 already`},
		{"not UTF-8", good + "{\"id\": 2, \"question\": \"\xff\"}", `f.jsonl:2: line is not valid UTF-8`},
		{"answer and number", `{"id": 1, "question": "q", "answer": 2, "number": 2}`, `f.jsonl:1: task "1" has "answer" beside "answers", "regex" or "number"; give one`},
		{"tolerance alone", `{"id": 1, "question": "q", "tolerance": 2}`, `f.jsonl:1: task "1": "tolerance" is how far from "number"`},
		{"answers text", `{"id": 1, "question": "q", "answers": "2"}`, `f.jsonl:1: "answers" is not a list but string`},
		{"answers empty", `{"id": 1, "question": "q", "answers": []}`, `f.jsonl:1: task "1": "answers" is empty`},
		{"answers nested", `{"id": 1, "question": "q", "answers": [1, [2]]}`, `f.jsonl:1: "answers[1]" is a list; it must be`},
		{"family of two lines", `{"id": 1, "question": "q", "family": "a\nb"}`, `f.jsonl:1: task "1" has the "family" "a\nb"; give one line`},
		{"family that moves the cursor", `{"id": 1, "question": "q", "family": "\u001b[2J"}`, `f.jsonl:1: task "1" has the "family"`},
		{"answers null", `{"id": 1, "question": "q", "answers": [null]}`, `f.jsonl:1: "answers[0]" is null`},
		{"regex", good + `{"id": 2, "question": "q", "regex": "("}`, "f.jsonl:2: task \"2\": \"regex\" is no regular expression: error parsing regexp: missing closing ): `(`; write it as RE2 does"},
		{"regex empty", `{"id": 1, "question": "q", "regex": ""}`, `f.jsonl:1: "regex" is empty`},
		{"number text", `{"id": 1, "question": "q", "number": "2"}`, `f.jsonl:1: "number" is not a number of common size but string`},
		{"number huge", `{"id": 1, "question": "q", "number": 1e999}`, `f.jsonl:1: "number" is not a number of common size but number 1e999`},
		{"extract", `{"id": 1, "question": "q", "answer": 1, "extract": "last"}`, `f.jsonl:1: task "1": "extract" is "last"; it may be thought, text, number or`},
		{"extract for all", `{"extract": "last"}`, `f.jsonl:1: "extract" is "last"; it may be`},
		{"extract only", `{"extract": "text"}`, `f.jsonl holds no task`},
		{"family", `{"id": 1, "question": "q", "family": 1}`, `f.jsonl:1: "family" is not a string but number`},
		{"too long", good + strings.Repeat(" ", MaxLine+1), `f.jsonl:2: line is longer than 1048576 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks, err := ReadTasks(strings.NewReader(c.in), "f.jsonl")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("read %+v with error %v, want %s", tasks, err, c.want)
			}
		})
	}
}

func TestReadTasksLimits(t *testing.T) {
	line := `{"id": 1, "question": "` + strings.Repeat("q", MaxLine-25) + `"}`
	if len(line) != MaxLine {
		t.Fatalf("line has %d bytes", len(line))
	}
	for _, end := range []string{"", "\n"} {
		if _, err := ReadTasks(strings.NewReader(line+end), "f"); err != nil {
			t.Errorf("a line of MaxLine bytes is refused: %v", err)
		}
	}
	broken := errors.New("disk is gone")
	in := io.MultiReader(strings.NewReader("{\"id\": 1, \"question\": \"q\"}\n"), iotest.ErrReader(broken))
	if _, err := ReadTasks(in, "f"); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "f:2: ") {
		t.Errorf("error %v", err)
	}
}

func FuzzReadTasks(f *testing.F) {
	f.Add([]byte(`{"id": 1, "question": "q", "answer": "2"}`))
	f.Add([]byte("\n{\"id\": \"a\", \"question\": \"q\"}\r\n{\"id\": -1e5, \"question\": \"\\ud83d\"}"))
	f.Add([]byte("\uFEFF{}"))
	f.Add([]byte(`{"id": [], "question": {}}`))
	f.Add([]byte(`{"extract": "regex:a(b)"}` + "\n" + `{"id": 1, "question": "q", "regex": "^a|b*$", "family": "x"}`))
	f.Add([]byte(`{"id": 1, "question": "q", "number": 1e5, "tolerance": 1, "extract": "number"}`))
	f.Add([]byte(`{"id": 1, "question": "q", "answers": ["a", 1]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		tasks, err := ReadTasks(bytes.NewReader(in), "f")
		if err != nil {
			if tasks != nil || !strings.HasPrefix(err.Error(), "f") {
				t.Fatalf("tasks %+v with error %v", tasks, err)
			}
			return
		}
		ids := map[string]bool{}
		for _, task := range tasks {
			if task.ID == "" || task.Question == "" || ids[task.ID] || !task.HasAnswer && task.Answer != "" {
				t.Fatalf("read %+v", tasks)
			}
			if c := task.Check; c != nil {
				if again, err := ParseCheck(c.String()); err != nil || again.String() != c.String() || c.Checks() != task.HasAnswer {
					t.Fatalf("check %s comes back as %v, %v", c, again, err)
				}
			}
			ids[task.ID] = true
		}
	})
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{"<think>\nStart with 2.\n</think>\n\n263<|im_end|>", "263", true},
		{"<think>\nStart.\n</think>\n\n263", "263", true},
		{"</think> 1 </think>\n2 <|im_end|>\n3</think>4", "2", true},
		{"263", "", false},
		{"<think>263", "", false},
		{"<think></think>\n <|im_end|>", "", false},
		{"<|im_end|></think>4", "", false},
		{"", "", false},
	} {
		if got, ok := Extract(c.in); got != c.want || ok != c.ok {
			t.Errorf("Extract(%q) = %q, %v; want %q, %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

func TestCorrect(t *testing.T) {
	for _, c := range []struct {
		got, want string
		ok        bool
	}{{"263", "263", true}, {" 263\n", "263", true}, {"263.", "263", false}, {"0263", "263", false}, {"", "263", false}} {
		if Correct(c.got, c.want) != c.ok {
			t.Errorf("Correct(%q, %q) is not %v", c.got, c.want, c.ok)
		}
	}
}

// A generated problem told the way a model answers is judged right.
func TestGeneratedAnswersAreCorrect(t *testing.T) {
	g := generator(t, otherSeed, Heavy)
	for range 50 {
		p := g.Problem()
		got, ok := Extract("<think>\n" + p.Thought + "</think>\n\n" + p.Answer + "<|im_end|>")
		if !ok || !Correct(got, p.Answer) {
			t.Fatalf("answer %q to %+v", got, p)
		}
	}
}
