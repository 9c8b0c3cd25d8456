package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/train"
	"tokenrouter/runtime/workload"
)

const reference = "../../runtime/model/tiny/testdata/reference"

func encoderOf(t *testing.T) *encoder {
	t.Helper()
	tok, err := familyTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEncoder(tok)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// lines decodes a file of the reference.
func lines[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(reference, name))
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// TestExamples: a problem has the prompt of the reference, token for token, and
// where the largest model wrote the very thought, the very answer.
func TestExamples(t *testing.T) {
	enc := encoderOf(t)
	g, err := workload.NewFamily(workload.FamilyStory, workload.EvaluationSeed)
	if err != nil {
		t.Fatal(err)
	}
	var examples []train.Example
	for i, task := range lines[struct {
		Prompt []int32 `json:"prompt_ids"`
	}](t, "tasks.jsonl") {
		e, err := enc.problem(g.Problem())
		if err != nil {
			t.Fatal(err)
		}
		n := len(task.Prompt)
		if !slices.Equal(e.IDs[:n], task.Prompt) || e.Learn[n-1] || !e.Learn[n] || !e.Learn[len(e.IDs)-1] {
			t.Fatalf("problem %d is asked with %v, want %v", i, e.IDs, task.Prompt)
		}
		examples = append(examples, train.Example{IDs: e.IDs[n:]})
	}
	same := 0
	for _, g := range lines[struct {
		Problem int
		IDs     []int32
	}](t, "greedy_tiny-842k.jsonl") {
		if slices.Equal(examples[g.Problem].IDs, g.IDs) {
			same++
		}
	}
	if same < 5 {
		t.Errorf("only %d answers of the large model have the tokens that are learnt", same)
	}
}

// TestDrills: a line's pieces are the tokens of the whole text, and what is learnt
// of it is results, decisions and amounts.
func TestDrills(t *testing.T) {
	enc := encoderOf(t)
	learnt := map[string]*regexp.Regexp{
		"drill":  regexp.MustCompile(`^([0-9]+\.\n)+([0-9]+\.?)?$`),
		"pick":   regexp.MustCompile(`^( yes| no)+( ye?| n)?$`),
		"recall": regexp.MustCompile(`^[0-9]{20,}$`),
		"asked":  regexp.MustCompile(`^[0-9]{2,}$`),
		"divide": regexp.MustCompile(`^[0-9]{20,}$`),
	}
	for name, line := range drills {
		r := splitMix{3}
		for range 20 {
			e := enc.drill(line, &r)
			if len(e.IDs) != drillTokens || e.IDs[0] != enc.start || e.Learn[0] {
				t.Fatalf("%s: a line of %d tokens that begins with %d", name, len(e.IDs), e.IDs[0])
			}
			text := enc.tok.Decode(e.IDs[1:])
			if ids := enc.tok.Encode(text); !slices.Equal(ids[:len(ids)-4], e.IDs[1:len(ids)-3]) {
				t.Errorf("%s: %q has other tokens as a whole", name, text)
			}
			var b strings.Builder
			for i, id := range e.IDs {
				if e.Learn[i] {
					b.Write(enc.tok.Bytes(id))
				}
			}
			if !learnt[name].MatchString(b.String()) {
				t.Errorf("%s: %q is learnt of %q", name, b.String(), text)
			}
		}
	}
}

// TestEquations: what is told is true.
func TestEquations(t *testing.T) {
	r := splitMix{5}
	for range 10_000 {
		a, op, b, result := equation(&r)
		want := map[byte]int{'+': a + b, '-': a - b, '*': a * b, '/': a / b}[op]
		if result != want || result < 0 || result > 999 || op == '/' && a%b != 0 {
			t.Fatalf("%d%c%d=%d", a, op, b, result)
		}
	}
}

func TestParseMix(t *testing.T) {
	parts, err := parseMix("all,drill=4:1")
	if err != nil || len(parts) != len(workload.Families())+1 {
		t.Fatalf("%v, %v", parts, err)
	}
	if d := parts[len(parts)-1]; d.at(0) != 4 || d.at(1) != 1 || d.at(0.5) != 2.5 {
		t.Errorf("the drill's weight: %+v", d)
	}
	for _, text := range []string{"", "story=0", "story=-1", "story=x", "story=1:x", "story,story", "poetry", "all,story", "drill=1:0", "story=NaN"} {
		if _, err := parseMix(text); err == nil {
			t.Errorf("%q is a mixture", text)
		}
	}
}

// TestMixtureGoesOn: a mixture that goes on from its place gives what the one that
// never stopped gives.
func TestMixtureGoesOn(t *testing.T) {
	enc := encoderOf(t)
	m, err := newMixture(place{Mix: "all,drill=2,pick,recall", Seed: 7}, enc)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		m.next(0.2)
	}
	note, err := json.Marshal(m.place)
	if err != nil {
		t.Fatal(err)
	}
	var at place
	if err := json.Unmarshal(note, &at); err != nil {
		t.Fatal(err)
	}
	again, err := newMixture(at, enc)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		a, b := m.next(0.7), again.next(0.7)
		if !slices.Equal(a.IDs, b.IDs) || !slices.Equal(a.Learn, b.Learn) {
			t.Fatalf("example %d is another", i)
		}
	}
	if _, err := newMixture(place{Mix: every, Seed: workload.EvaluationSeed}, enc); err == nil {
		t.Error("a model may be trained on the problems it is judged by")
	}
}

// TestTrainAndResume: a run writes a checkpoint that opens, and a run that was
// stopped and resumed the same one.
func TestTrainAndResume(t *testing.T) {
	begin := func(out string) *trainCmd {
		return &trainCmd{
			Shape: "16,1,2,1,8,16", Steps: 6, Fall: 3, Tokens: 512, Seed: 2, Data: 5, Workers: 2,
			Muon: 0.02, Adam: 0.003, Out: out, Every: 3, Watch: 1,
		}
	}
	whole, halves := t.TempDir(), t.TempDir()
	if err := begin(whole).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	first := begin(halves)
	if err := first.Run(stopped); err != nil { // saves at step 0
		t.Fatal(err)
	}
	if err := first.Run(t.Context()); err == nil {
		t.Error("a run begins anew where one is under way")
	}
	first.Resume, first.Steps = true, 0
	if err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sums [2]string
	for i, dir := range []string{whole, halves} {
		m, err := model.Load(os.DirFS(dir), "toy")
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = m.Hash()
	}
	if sums[0] != sums[1] {
		t.Error("the resumed run ends with other weights")
	}
	shorter := begin(halves)
	shorter.Resume, shorter.FallNow, shorter.Steps = true, 2, 0
	if err := shorter.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr, _, err := train.Resume(filepath.Join(halves, stateFile), 0)
	if err != nil || tr.Steps() != 8 || tr.Config().Schedule != (train.Schedule{Steps: 8, Fall: 6}) {
		t.Errorf("%d steps of %+v, %v", tr.Steps(), tr.Config().Schedule, err)
	}
}

// TestScore counts what the reference counts.
func TestScore(t *testing.T) {
	want, n := 0, 0
	for _, g := range lines[struct{ Correct bool }](t, "greedy_tiny-37k.jsonl") {
		if n++; g.Correct {
			want++
		}
	}
	m, err := tiny.Load("tiny-37k")
	if err != nil {
		t.Fatal(err)
	}
	g, err := workload.NewFamily(workload.FamilyStory, workload.EvaluationSeed)
	if err != nil {
		t.Fatal(err)
	}
	problems := make([]workload.Problem, n)
	for i := range problems {
		problems[i] = g.Problem()
	}
	c := scoreCmd{Tokens: 160}
	right, _, err := c.right(t.Context(), m, encoderOf(t), problems)
	if err != nil || right != want || n < 30 {
		t.Errorf("%d of %d right, the reference has %d: %v", right, n, want, err)
	}
}
