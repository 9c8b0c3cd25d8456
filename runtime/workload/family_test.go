package workload

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write testdata/families.txt anew")

func familyOf(t testing.TB, name string, seed uint64) *Generator {
	t.Helper()
	g, err := NewFamily(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The file shows what each family looks like, and its digests hold the streams:
// embedded models are trained on them.
func TestFamilySamples(t *testing.T) {
	var b strings.Builder
	for _, name := range Families() {
		g := familyOf(t, name, otherSeed)
		digest := sha256.New()
		for i := range 2000 {
			p := g.Problem()
			text := fmt.Sprintf("%s\n%s%s | %d | %s\n\n", p.Question, p.Thought, p.Answer, p.Equations, p.Form)
			digest.Write([]byte(text))
			if i < 6 {
				fmt.Fprintf(&b, "%s %s: %s", name, p.ID, text)
			}
		}
		fmt.Fprintf(&b, "%s, 2000 problems: %x\n\n", name, digest.Sum(nil))
	}
	const file = "testdata/families.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the streams are not those of %s; the first difference:\n%s", file, firstDifference(b.String(), string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d is %q", i+1, g[i])
		}
	}
	return "lines are missing"
}

// Whatever the seed: equations hold, the answer is what solving the question by
// other means gives, and it stands at the end of the thought.
func TestFamiliesAreSound(t *testing.T) {
	for _, name := range Families()[1:] {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g, err := NewFamily(name, rapid.Uint64().Draw(t, "seed"))
				if err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					p := g.Problem()
					if p.ID != strconv.Itoa(i) || p.Family != name {
						t.Fatalf("problem %d is %+v", i, p)
					}
					checkFamilyThought(t, p)
					if want := solve(p.Question, name); p.Answer != want {
						t.Fatalf("the answer is %q, but it is %q: %s\n%s", p.Answer, want, p.Question, p.Thought)
					}
				}
			})
		})
	}
}

func checkFamilyThought(t *rapid.T, p Problem) {
	body, ok := strings.CutSuffix(p.Thought, fmt.Sprintf("The answer is %s.\n", p.Answer))
	if !ok || !strings.HasSuffix(body, ".\n") || strings.Contains(body, "answer") {
		t.Fatalf("the thought does not end with the answer: %+v", p)
	}
	equations := equation.FindAllStringSubmatch(body, -1)
	for _, e := range equations {
		a, b, result := atoi(t, e[1]), atoi(t, e[3]), atoi(t, e[4])
		want := map[string]int{"+": a + b, "-": a - b, "*": a * b, "/": a / max(b, 1)}[e[2]]
		if result != want || result > maxNumber || e[2] == "/" && a%b != 0 {
			t.Fatalf("%s is wrong in %+v", e[0], p)
		}
	}
	if _, err := strconv.Atoi(p.Answer); (err == nil) != (p.Form == "") {
		t.Fatalf("the form of the answer is %q: %+v", p.Form, p)
	}
	steps := len(equations)
	if p.Family == "sort" || p.Family == "count" {
		steps = strings.Count(body, "\n")
	}
	if p.Equations != steps || steps < 1 || steps > 9 {
		t.Fatalf("%d steps, not %d: %+v", steps, p.Equations, p)
	}
}

// In a ledger the line that changes an amount says whose it is, and goes on from
// what that one had.
func TestLedgerGoesOnFromNames(t *testing.T) {
	g := familyOf(t, "ledger", otherSeed)
	for range 500 {
		p := g.Problem()
		lines := strings.Split(p.Thought, "\n")
		have := map[string]string{}
		words := strings.Fields(strings.TrimSuffix(lines[0], "."))
		have[words[2]], have[words[5]] = words[3], words[6]
		for _, line := range lines[1 : len(lines)-2] {
			_, changes, ok := strings.Cut(strings.TrimSuffix(line, "."), ": ")
			if !ok {
				t.Fatalf("line %q of %+v", line, p)
			}
			for _, change := range strings.Split(changes, ", ") {
				name, eq, _ := strings.Cut(change, " ")
				e := equation.FindStringSubmatch(eq)
				if have[name] != e[1] {
					t.Fatalf("%q goes on from %q in %+v", change, have[name], p)
				}
				have[name] = e[4]
			}
		}
		if len(have) != 2 || !slices.ContainsFunc([]string{words[2], words[5]}, func(n string) bool {
			return have[n] == p.Answer && strings.Contains(p.Question[strings.LastIndex(p.Question, "How"):], n)
		}) {
			t.Fatalf("the two come to %v in %+v", have, p)
		}
	}
}

func TestMixtureTakesTurns(t *testing.T) {
	mix := NewMixture(otherSeed)
	var each []*Generator
	for _, name := range Families() {
		each = append(each, familyOf(t, name, otherSeed))
	}
	for n := range 10 * len(each) {
		got, want := mix.Problem(), each[n%len(each)].Problem()
		want.ID = strconv.Itoa(n)
		if got != want {
			t.Fatalf("problem %d is %+v, want %+v", n, got, want)
		}
	}
	task, ok := mix.Next()
	if !ok || task.Family != FamilyStory || !task.HasAnswer {
		t.Errorf("task %+v", task)
	}
}

// The story is the stream that the embedded models were trained on.
func TestStoryIsLight(t *testing.T) {
	story, light := familyOf(t, FamilyStory, EvaluationSeed), generator(t, EvaluationSeed, Light)
	for range 100 {
		got, want := story.Problem(), light.Problem()
		want.Family = FamilyStory
		if got != want {
			t.Fatalf("problem %+v, want %+v", got, want)
		}
	}
}

// Seeds and families differ, and a stream repeats itself no more than chance does.
func TestStreamsDiffer(t *testing.T) {
	least := map[string]int{"calendar": 1700} // days are few
	for _, name := range Families() {
		a, b := familyOf(t, name, 1), familyOf(t, name, 2)
		seen := map[string]bool{}
		answers := map[string]int{}
		same := 0
		for range 2000 {
			p, q := a.Problem(), b.Problem()
			seen[p.Question] = true
			answers[p.Answer]++
			if p.Question == q.Question {
				same++
			}
		}
		want := least[name]
		if want == 0 {
			want = 1990
		}
		if len(seen) < want || same > 2 {
			t.Errorf("%s: %d of 2000 questions are different, and %d those of another seed", name, len(seen), same)
		}
		for answer, n := range answers {
			if n > 2000/5 {
				t.Errorf("%s: %d of 2000 answers are %q, so that one need not think", name, n, answer)
			}
		}
	}
}

func TestNewFamilyRefuses(t *testing.T) {
	_, err := NewFamily("riddles", 1)
	const want = `no family of problems "riddles"; there are story, ledger, units, calendar, sort, count`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestPresetsGiveFamilies(t *testing.T) {
	for _, name := range Presets() {
		s, err := NewPreset(name, otherSeed)
		if err != nil {
			t.Fatal(err)
		}
		task, ok := s.Next()
		if !ok || !task.HasAnswer {
			t.Errorf("%s begins with %+v", name, task)
		}
		if slices.Contains(Families(), name) {
			if want, _ := familyOf(t, name, otherSeed).Next(); !reflect.DeepEqual(task, want) {
				t.Errorf("%s begins with %+v, want %+v", name, task, want)
			}
			_, err := ShapeOf(name)
			if err == nil || !strings.Contains(err.Error(), "light, heavy, multi-turn") || !strings.Contains(err.Error(), name) {
				t.Errorf("lengths of %s: %v", name, err)
			}
		}
	}
	if _, err := NewPreset("riddles", 1); err == nil || !strings.HasSuffix(err.Error(), "there are light, heavy, multi-turn, mixture, story, ledger, units, calendar, sort, count") {
		t.Errorf("error %v", err)
	}
}

func BenchmarkMixture(b *testing.B) {
	g := NewMixture(otherSeed)
	b.ReportAllocs()
	for b.Loop() {
		g.Problem()
	}
}
