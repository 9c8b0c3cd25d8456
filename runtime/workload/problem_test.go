package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// otherSeed is any seed but the one of the evaluation.
const otherSeed = 4217

func generator(t testing.TB, seed uint64, size Size) *Generator {
	t.Helper()
	g, err := NewGenerator(seed, size)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The evaluation seed gives the 300 problems of the reference results.
func TestReferenceProblems(t *testing.T) {
	file, err := os.ReadFile("testdata/tasks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	g := generator(t, EvaluationSeed, Light)
	n := 0
	for line := range bytes.Lines(file) {
		var want struct {
			ID               int
			Question, Answer string
			Equations        int
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		p := g.Problem()
		if p.ID != strconv.Itoa(want.ID) || p.Question != want.Question || p.Answer != want.Answer || p.Equations != want.Equations {
			t.Fatalf("problem %d is %+v, want %+v", n, p, want)
		}
		n++
	}
	if n != 300 {
		t.Errorf("%d reference problems, want 300", n)
	}
}

// The digests cover question, thought, answer and equations of 2,000 problems
// as the generator that made the training data wrote them.
func TestStreamDigest(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		size Size
		want string
	}{
		{EvaluationSeed, Light, "c642a4c3edd19215590f0ea41feb78f32daa4567e15c631ffb04c81dfaf58680"},
		{otherSeed, Heavy, "18929d53b455739e1b40a67cb4cba8a24b6394461bd6cecfa0ce507b08ff4944"},
	} {
		g := generator(t, c.seed, c.size)
		digest := sha256.New()
		lines := json.NewEncoder(digest)
		for range 2000 {
			p := g.Problem()
			err := lines.Encode(struct {
				Question string `json:"question"`
				Thought  string `json:"thought"`
				Answer   string `json:"answer"`
				Steps    int    `json:"steps"`
			}{p.Question, p.Thought, p.Answer, p.Equations})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprintf("%x", digest.Sum(nil)); got != c.want {
			t.Errorf("seed %d, %+v: digest %s, want %s", c.seed, c.size, got, c.want)
		}
	}
}

var equation = regexp.MustCompile(`(\d+)([-+*/])(\d+)=(\d+)`)

// Beside the golden streams: every problem of any seed and size is sound.
func TestProblemsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size{Min: rapid.IntRange(1, 12).Draw(t, "min")}
		size.Max = size.Min + rapid.IntRange(0, 12).Draw(t, "more")
		g, err := NewGenerator(rapid.Uint64().Draw(t, "seed"), size)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			p := g.Problem()
			if p.ID != strconv.Itoa(i) {
				t.Fatalf("problem %d has id %s", i, p.ID)
			}
			if p.Equations < size.Min || p.Equations > size.Max {
				t.Fatalf("%d equations, want %d to %d", p.Equations, size.Min, size.Max)
			}
			checkThought(t, p)
		}
	})
}

// checkThought recomputes the chain of thought: every equation is right,
// starts from the amount reached so far or from a product, and the last
// amount is the answer.
func checkThought(t *rapid.T, p Problem) {
	lines := strings.Split(strings.TrimSuffix(p.Thought, "\n"), "\n")
	if len(lines) != strings.Count(p.Question, ".")+1 {
		t.Fatalf("%d lines of thought for %q", len(lines), p.Question)
	}
	var total int
	if _, err := fmt.Sscanf(lines[0], "Start with %d.", &total); err != nil {
		t.Fatalf("%q: %v", lines[0], err)
	}
	seen := 0
	for _, line := range lines[1 : len(lines)-1] {
		equations := equation.FindAllStringSubmatch(line, -1)
		product := -1
		for _, e := range equations {
			a, b, result := atoi(t, e[1]), atoi(t, e[3]), atoi(t, e[4])
			if want := map[string]int{"+": a + b, "-": a - b, "*": a * b, "/": a / max(b, 1)}[e[2]]; result != want || result > maxNumber {
				t.Fatalf("%s in %q is wrong", e[0], line)
			}
			switch {
			case e[2] == "*" && len(equations) == 2:
				product = result
				continue
			case a != total || product >= 0 && b != product:
				t.Fatalf("%s in %q does not go on from %d", e[0], line, total)
			}
			total = result
		}
		seen += len(equations)
	}
	if seen != p.Equations || lines[len(lines)-1] != fmt.Sprintf("The answer is %s.", p.Answer) || strconv.Itoa(total) != p.Answer {
		t.Fatalf("%d equations lead to %d in %+v", seen, total, p)
	}
}

func atoi(t *rapid.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestGeneratorIsASource(t *testing.T) {
	var s Source = generator(t, otherSeed, Light)
	other := generator(t, otherSeed, Light)
	for range 20 {
		task, ok := s.Next()
		p := other.Problem()
		if want := (Task{ID: p.ID, Question: p.Question, Answer: p.Answer, HasAnswer: true}); !ok || !reflect.DeepEqual(task, want) {
			t.Fatalf("task %+v, %v; want %+v", task, ok, want)
		}
	}
}

func TestGeneratorRefusesSizes(t *testing.T) {
	for _, size := range []Size{{0, 3}, {4, 3}, {1, 65}, {}, {-1, -1}} {
		if _, err := NewGenerator(1, size); err == nil {
			t.Errorf("size %+v was accepted", size)
		}
	}
}

func BenchmarkProblem(b *testing.B) {
	g := generator(b, otherSeed, Light)
	for b.Loop() {
		g.Problem()
	}
}
