package scripting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/event"
)

// fakeScorer knows some heads and counts what it is asked.
type fakeScorer struct {
	scores map[string]float64
	asked  []string
}

func (f *fakeScorer) Check(head string) error {
	if _, ok := f.scores[head]; !ok {
		return fmt.Errorf("there is no head %q", head)
	}
	return nil
}

func (f *fakeScorer) Score(head string, row *Row) (float64, error) {
	f.asked = append(f.asked, fmt.Sprint(head, row.Pos))
	return f.scores[head], f.Check(head)
}

// A head is evaluated once for a row, in route and the send behind it; the decision
// has the score that the call was given last, in single precision.
func TestScore(t *testing.T) {
	f := &fakeScorer{scores: map[string]float64{"a": 0.3, "b": 0.75}}
	vm := mustVM(t, Env{Scorer: f}, `
function route(r)
  assert(r.score("a") == r:score("a") and r.score("b") == 0.75)
  if r.score("a") > 0.2 then return to("large"), DROP end
  return STAY
end
function send(req, dest) return { fields = { s = req.score("b") + req.score("a") } } end`)
	row := sampleRow()
	d := vm.Route(row)
	if d.Fault != "" || d.Dest != 1 || !d.Scored || d.Score != float64(float32(0.3)) {
		t.Errorf("%+v", d)
	}
	if _, fields, fault := vm.Send(row, d.Dest); fault != "" || !strings.Contains(FormatData(fields), "1.05") {
		t.Error(FormatData(fields), fault)
	}
	if want := []string{"a12", "b12"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %v, want %v", f.asked, want)
	}
	next := sampleRow()
	next.Pos = 13
	if d := vm.Route(next); d.Fault != "" || !slices.Equal(f.asked, []string{"a12", "b12", "a13", "b13"}) {
		t.Errorf("of the next row: asked %v, %s", f.asked, d.Fault)
	}
	quiet := mustVM(t, Env{Scorer: f}, routeOf("if r.pos < 0 then r.score('a') end return STAY"))
	if d := quiet.Route(row); d.Scored || d.Score != 0 {
		t.Errorf("nothing was scored: %+v", d)
	}
}

func TestScoreFaults(t *testing.T) {
	env := Env{Scorer: &fakeScorer{scores: map[string]float64{"bad": 1.5, "nan": math.NaN()}}}
	for body, want := range map[string]string{
		"return r.score('c')":    `r.lua:2: r.score("c"): there is no head "c"`,
		"return r.score(3)":      `r.lua:2: r.score(3): give the name of a head`,
		"return r.score()":       "give the name of a head",
		"return r.score('bad')":  "the score 1.5 does not lie between 0 and 1",
		"return r.score('nan')":  "the score NaN does not lie between 0 and 1",
		"return r.scores('bad')": `did you mean "score"?`,
		"r.score = 1":            "r.score cannot be assigned",
	} {
		p, err := Compile("r.lua", routeOf(body))
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", body, err, want)
			}
			continue
		}
		vm, err := NewVM(Env{Peers: 2, Scorer: env.Scorer}, p)
		if err != nil {
			t.Fatal(err)
		}
		if d := vm.Route(sampleRow()); !strings.Contains(d.Fault, want) {
			t.Errorf("%s: %q, want %s", body, d.Fault, want)
		}
		vm.Close()
	}
	if got := faultOf(t, Env{}, "return r.score('a')"); !strings.Contains(got, `r.score("a"): `+ErrNoModel.Error()) {
		t.Error(got)
	}
	if got := faultOf(t, Env{Scorer: env.Scorer}, "kept = r.score return kept('c')"); !strings.Contains(got, "no head") {
		t.Error(got)
	}
}

// Scores are paid for: what is known little, what is evaluated more.
func TestScoresAreCounted(t *testing.T) {
	f := &fakeScorer{scores: map[string]float64{"a": 0.5}}
	if got := faultOf(t, Env{Scorer: f}, "while true do r.score('a') end"); !strings.Contains(got, "VM instructions") || len(f.asked) != 1 {
		t.Error(got, f.asked)
	}
	f = &fakeScorer{scores: map[string]float64{}}
	for i := range 100 {
		f.scores[fmt.Sprint(i)] = 0.5
	}
	if got := faultOf(t, Env{Scorer: f}, "for i = 0, 99 do r.score('' .. i) end"); !strings.Contains(got, "VM instructions") || len(f.asked) >= 50 {
		t.Error(got, len(f.asked))
	}
}

// Heads that the file names are found, with their first line; what merely looks
// alike is not.
func TestHeadsOfAFile(t *testing.T) {
	p := mustCompile(t, `
local other = {}
function other.score(x) return 1 end
local function helper(r) return r.score("helper") end
function route(r)
  other.score("not one")
  if r.score("a") > 1 or r:score("b") > 1
    or r.score("a") > 2 then return HOME end
  local f = r.score
  if f("dynamic") > 2 then return HOME end
  return STAY
end
function send(row, dest) return { fields = { s = row.score("sent") } } end`)
	if want := []string{"helper", "a", "b", "sent"}; !slices.Equal(p.Heads, want) {
		t.Errorf("heads %v, want %v", p.Heads, want)
	}
	if p.HeadLine("b") != 7 || p.HeadLine("sent") != 13 || p.HeadLine("dynamic") != 0 {
		t.Error(p.HeadLine("b"), p.HeadLine("sent"), p.HeadLine("dynamic"))
	}
}

// A dry run refuses a head that the session does not have, though no sample gets
// there, and takes both sides of a threshold with those it has.
func TestDryRunOfHeads(t *testing.T) {
	f := &fakeScorer{scores: map[string]float64{"a": 0.1}}
	run := func(s Scorer, body string) error {
		return DryRun(mustCompile(t, routeOf(body)), Env{Peers: 2, Scorer: s}, nil)
	}
	err := run(f, "if r.pos < 0 then return r.score('c') end return STAY")
	var e *Error
	if !errors.As(err, &e) || e.Line != 2 || !strings.Contains(e.Msg, `no head "c"`) {
		t.Error(err)
	}
	for score, body := range map[string]string{"0": "== 0", "0.5": "== 0.5", "1": "== 1"} {
		if err := run(f, "if r.score('a') "+body+" then error('taken') end return STAY"); err == nil || !strings.Contains(err.Error(), "taken") {
			t.Errorf("a score of %s did not come: %v", score, err)
		}
	}
	if err := run(f, "local n = 'c' r.score(n) return STAY"); err == nil || !strings.Contains(err.Error(), "no head") {
		t.Error(err)
	}
	if err := run(nil, "if r.score('whatever') > 1 then return HOME end return STAY"); err != nil {
		t.Error(err)
	}
	if err := run(smallOnly{f}, "if r.score('a') < 2 then return to('large') end return STAY"); err == nil || !strings.Contains(err.Error(), "not of large (at large)") {
		t.Error(err)
	}
	if err := run(smallOnly{f}, "if r.model == 'large' then return HOME end if r.score('a') < 2 then return to('large') end return STAY"); err != nil {
		t.Error(err)
	}
	if len(f.asked) > 0 {
		t.Errorf("a dry run evaluated %v", f.asked)
	}
}

// A trace goes by the score of the record.
func TestTraceOfAScoredRow(t *testing.T) {
	p := mustCompile(t, routeOf("if r.score('a') >= 0.7 then\nreturn HOME end\nreturn STAY"))
	row := sampleRow()
	for score, want := range map[float32]int{0.9: 3, 0.1: 4} {
		line, _, d := Trace(Env{Peers: 2, Scorer: RecordedScorer(&event.RowResult{Score: score, Scored: true})}, p, row)
		if line != want || d.Fault != "" || !d.Scored || d.Score != float64(score) {
			t.Errorf("score %v: line %d, %+v", score, line, d)
		}
	}
	if _, _, d := Trace(Env{Peers: 2, Scorer: RecordedScorer(&event.RowResult{})}, p, row); !strings.Contains(d.Fault, "no score") {
		t.Error(d.Fault)
	}
}

// smallOnly has heads that read rows of the small model.
type smallOnly struct{ *fakeScorer }

func (smallOnly) Reads(head, role string) error {
	if role != "small" {
		return fmt.Errorf("%s is not of %s", head, role)
	}
	return nil
}

type constScorer struct{}

func (constScorer) Check(string) error                  { return nil }
func (constScorer) Score(string, *Row) (float64, error) { return 0.5, nil }

// BenchmarkScoreCall is what r.score costs beside the head itself.
func BenchmarkScoreCall(b *testing.B) {
	for name, body := range map[string]string{
		"without": "if r.entropy >= 0.7 then return to('large'), DROP end return STAY",
		"with":    "if r.score('a') >= 0.7 then return to('large'), DROP end return STAY",
	} {
		b.Run(name, func(b *testing.B) {
			vm := mustVM(b, Env{Scorer: constScorer{}}, routeOf(body))
			row := sampleRow()
			b.ReportAllocs()
			for b.Loop() {
				row.Pos++
				if d := vm.Route(row); d.Fault != "" {
					b.Fatal(d.Fault)
				}
			}
		})
	}
}
