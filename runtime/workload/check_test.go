package workload

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func check(t testing.TB, r Rules) *Check {
	t.Helper()
	c, err := NewCheck(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func num(f float64) *float64 { return &f }

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  Rules
		answer string
		right  bool
	}{
		{"any of", Rules{Answers: []string{"four", " 4 "}}, "4", true},
		{"none of", Rules{Answers: []string{"four", "4"}}, "4.0", false},
		{"case counts", Rules{Answers: []string{"four"}}, "Four", false},
		{"regex", Rules{Regex: `^(?i)four\b`}, "Four of them", true},
		{"regex anywhere", Rules{Regex: `\d+`}, "it is 7", true},
		{"regex fails", Rules{Regex: `^\d+$`}, "it is 7", false},
		{"number", Rules{Number: num(12.5)}, "12.50", true},
		{"number with exponent", Rules{Number: num(1250)}, "+1.25e3", true},
		{"whole number with a full stop", Rules{Number: num(12)}, "12.", true},
		{"thousands", Rules{Number: num(1234567.5)}, "1,234,567.5", true},
		{"wrong thousands", Rules{Number: num(12345)}, "12,345,", false},
		{"no thousands", Rules{Number: num(1234)}, "12,34", false},
		{"minus sign", Rules{Number: num(-3)}, "\u22123", true},
		{"words", Rules{Number: num(3)}, "3 apples", false},
		{"hexadecimal", Rules{Number: num(16)}, "0x10", false},
		{"infinite", Rules{Number: num(3), Tolerance: 1e300}, "1e999", false},
		{"not a number", Rules{Number: num(3), Tolerance: 1e300}, "NaN", false},
		{"fraction below 1", Rules{Number: num(0.5)}, ".5", true},
		{"exact", Rules{Number: num(12.5)}, "12.500000000000002", false},
		{"the largest there is", Rules{Number: num(3), Tolerance: 1}, "1.7976931348623157e308", false},
		{"within", Rules{Number: num(12.5), Tolerance: 0.01}, "12.51", true},
		{"just outside", Rules{Number: num(12.5), Tolerance: 0.01}, "12.5101", false},
		{"nothing to check", Rules{Extract: "text"}, "12", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := check(t, c.rules).Right("<think>\n1</think>\n\n" + c.answer + "<|im_end|>"); got != c.right {
				t.Errorf("%q is %v, want %v", c.answer, got, c.right)
			}
		})
	}
}

func TestExtractRules(t *testing.T) {
	const thought = "<think>\n7 or 8\n</think>\n\n"
	for _, c := range []struct{ extract, text, want string }{
		{"", thought + " 263 <|im_end|> 5", "263"},
		{"thought", "263", ""},
		{"text", " 263 \n", "263"},
		{"text", thought + " 263 ", "263"},
		{"text", "<think></think> ", ""},
		{"number", "of 7 there are 1,234.50 left.", "1,234.50"},
		{"number", thought + "none", ""},
		{"number", "so 7-3 = -4", "-4"},
		{"number", "7-3", "3"},
		{"number", "(7)-3", "3"},
		{"number", "3, 14, 27", "27"},
		{"number", "12 cm3", "3"},
		{"number", "1,234,5678", "5678"},
		{"number", "it is \u22125.", "\u22125"},
		{"number", "x-5", "5"},
		{"number", "", ""},
		{`regex:ANSWER: (\w+)`, "ANSWER: a. ANSWER: b!", "b"},
		{`regex:\d+ cm`, thought + "3 cm or 4 cm", "4 cm"},
		{`regex:(x)?y`, "y", ""},
		{`regex:\d+`, "none", ""},
	} {
		got, ok := check(t, Rules{Extract: c.extract}).Find(c.text)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s of %q is %q, %v; want %q", c.extract, c.text, got, ok, c.want)
		}
	}
}

func TestNewCheckRefuses(t *testing.T) {
	zero := 0.0
	for want, r := range map[string]Rules{
		`"answers" and "number" are given`:                                         {Answers: []string{"1"}, Number: num(1)},
		`"answers" and "regex" and "number"`:                                       {Answers: []string{}, Regex: "a", Number: num(1)},
		`"answers" is empty; list`:                                                 {Answers: []string{}},
		`"regex" is no regular expression: `:                                       {Regex: `(?=a)`},
		`"regex" has 5000 bytes; an expression`:                                    {Regex: strings.Repeat("a", 5000)},
		`"extract" is no regular expression: `:                                     {Extract: "regex:("},
		`"extract" has an empty expression`:                                        {Extract: "regex:"},
		`"extract" is "last"; it may be thought, text, number or regex:EXPRESSION`: {Extract: "last"},
		`"number" is NaN; give a finite one`:                                       {Number: num(zero / zero)},
		`"tolerance" is -1; give a number from 0 on`:                               {Number: num(1), Tolerance: -1},
		`"tolerance" is how far from "number"`:                                     {Answers: []string{"1"}, Tolerance: 1},
	} {
		if c, err := NewCheck(r); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v gives %v with error %v, want %s", r, c, err, want)
		}
	}
}

// A check comes back from a recording as it was.
func TestCheckText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rules{Extract: rapid.SampledFrom([]string{"", "thought", "text", "number", `regex:a(\d+)`}).Draw(t, "extract")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			r.Answers = rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "answers")
		case 1:
			r.Regex = rapid.SampledFrom([]string{`^\d+$`, `<a> & "b"`, `ü`}).Draw(t, "regex")
		case 2:
			n := rapid.Float64Range(-1e12, 1e12).Draw(t, "number")
			r.Number, r.Tolerance = &n, rapid.Float64Range(0, 10).Draw(t, "tolerance")
		}
		c, err := NewCheck(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCheck(c.String())
		if err != nil || again.String() != c.String() || again.Want() != c.Want() || again.Checks() != c.Checks() {
			t.Fatalf("%s comes back as %v, %v", c, again, err)
		}
		if !reflect.DeepEqual(again.rules, c.rules) {
			t.Fatalf("%+v comes back as %+v", c.rules, again.rules)
		}
	})
	if _, err := ParseCheck("{"); err == nil {
		t.Error("half an object was read as a check")
	}
}

// A number is equal to itself in every form that it may be written in.
func TestNumbersInAnyForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-1e9, 1e9).Draw(t, "n")
		c, err := NewCheck(Rules{Number: num(float64(n)), Extract: "number"})
		if err != nil {
			t.Fatal(err)
		}
		next, err := NewCheck(Rules{Number: num(float64(n) + 1), Extract: "number"})
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{strconv.FormatInt(n, 10), grouped(n), grouped(n) + ".00", "= " + grouped(n) + " m."} {
			if !c.Right("of 7: " + form) {
				t.Fatalf("%q is not %d", form, n)
			}
			if next.Right(form) {
				t.Fatalf("%q is %d", form, n+1)
			}
		}
	})
}

// grouped writes commas between thousands.
func grouped(n int64) string {
	s, negative := strings.CutPrefix(strconv.FormatInt(n, 10), "-")
	sign := ""
	if negative {
		sign = "-"
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func TestJudge(t *testing.T) {
	const text = "<think>1</think> 7,000"
	for _, c := range []struct {
		task           Task
		text, answer   string
		right, checked bool
	}{
		{Task{Answer: "7,000", HasAnswer: true}, text, "7,000", true, true},
		{Task{Answer: "7000", HasAnswer: true}, text, "7,000", false, true},
		{Task{}, text, "7,000", false, false},
		{Task{HasAnswer: true}, "<think>", "", false, true},
		{Task{HasAnswer: true, Check: check(t, Rules{Number: num(7000)})}, text, "7,000", true, true},
		{Task{HasAnswer: true, Check: check(t, Rules{Number: num(7000)})}, "7000", "", false, true},
		{Task{HasAnswer: true, Check: check(t, Rules{Number: num(7000), Extract: "number"})}, "it is 7000", "7000", true, true},
		{Task{Check: check(t, Rules{Extract: "number"})}, "it is 7000", "7000", false, false},
		{Task{Check: check(t, Rules{Number: num(7000)})}, text, "7,000", false, false}, // the answer was taken from it
	} {
		answer, right, checked := c.task.Judge(c.text)
		if answer != c.answer || right != c.right || checked != c.checked {
			t.Errorf("%+v: %q, %v, %v", c, answer, right, checked)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"number": 12.5, "tolerance": 0.01, "extract": "number"}`, "it is 12.50")
	f.Add(`{"regex": "^a+$", "extract": "regex:(.*)"}`, "<think></think> aaa<|im_end|>")
	f.Add(`{"answers": ["1", ""], "extract": "text"}`, "1,000,-3")
	f.Fuzz(func(t *testing.T, rules, text string) {
		c, err := ParseCheck(rules)
		if err != nil {
			return
		}
		answer, ok := c.Find(text)
		if ok != (answer != "") || !strings.Contains(text, answer) || strings.TrimSpace(answer) != answer {
			t.Fatalf("answer %q, %v in %q", answer, ok, text)
		}
		if c.Right(text) && !ok {
			t.Fatalf("no answer in %q is right", text)
		}
		again, err := ParseCheck(c.String())
		if err != nil || again.String() != c.String() {
			t.Fatalf("%s comes back as %v, %v", c, again, err)
		}
	})
}
