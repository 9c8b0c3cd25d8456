package workload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
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
