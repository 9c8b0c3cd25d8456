package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rules say what a right answer is and where in a text the answer stands. At most
// one of Answers, Regex and Number is given; none means that nothing is checked.
// They are what a line of a tasks file says, and their JSON is a part of one.
type Rules struct {
	Answers   []string `json:"answers,omitempty"`   // any of them, literally but for space around it
	Regex     string   `json:"regex,omitempty"`     // RE2; has to match somewhere in the answer
	Number    *float64 `json:"number,omitempty"`    // the answer is a number, in whatever form, this far from it at most:
	Tolerance float64  `json:"tolerance,omitempty"` // 0 or more

	// Extract is where the answer stands:
	//
	//	thought      behind the end of the thought, all of it; the default
	//	text         the same, or the whole text where no thought ends
	//	number       the last number of that
	//	regex:EXPR   the last match of an RE2 in that: its first group, or all
	Extract string `json:"extract,omitempty"`
}

// The forms of Rules.Extract.
const (
	extractThought = "thought"
	extractText    = "text"
	extractNumber  = "number"
	extractRegex   = "regex:"
)

// maxRegex bounds an expression, in bytes.
const maxRegex = 4 << 10

// Check judges answers by rules. It is immutable.
type Check struct {
	rules Rules
	match *regexp.Regexp // of Rules.Regex
	find  *regexp.Regexp // of Rules.Extract
}

// NewCheck compiles rules. Its errors name the rule and the cure.
func NewCheck(r Rules) (*Check, error) {
	var given []string
	for _, rule := range []struct {
		name string
		set  bool
	}{{"answers", r.Answers != nil}, {"regex", r.Regex != ""}, {"number", r.Number != nil}} {
		if rule.set {
			given = append(given, strconv.Quote(rule.name))
		}
	}
	switch {
	case len(given) > 1:
		return nil, fmt.Errorf("%s are given; an answer is judged by one of them", strings.Join(given, " and "))
	case r.Answers != nil && len(r.Answers) == 0:
		return nil, errors.New(`"answers" is empty; list the right answers, or leave it out`)
	case r.Number != nil && (math.IsNaN(*r.Number) || math.IsInf(*r.Number, 0)):
		return nil, fmt.Errorf(`"number" is %g; give a finite one`, *r.Number)
	case !(r.Tolerance >= 0) || math.IsInf(r.Tolerance, 0):
		return nil, fmt.Errorf(`"tolerance" is %g; give a number from 0 on`, r.Tolerance)
	case r.Tolerance > 0 && r.Number == nil:
		return nil, errors.New(`"tolerance" is how far from "number" an answer may be; give that too`)
	}
	c := &Check{rules: r}
	c.rules.Answers = slices.Clone(r.Answers)
	var err error
	if r.Regex != "" {
		if c.match, err = compile("regex", r.Regex); err != nil {
			return nil, err
		}
	}
	switch expr, custom := strings.CutPrefix(r.Extract, extractRegex); {
	case custom:
		c.find, err = compile("extract", expr)
	case !slices.Contains([]string{"", extractThought, extractText, extractNumber}, r.Extract):
		err = fmt.Errorf(`"extract" is %q; it may be %s, %s, %s or %sEXPRESSION`, r.Extract, extractThought, extractText, extractNumber, extractRegex)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func compile(rule, expr string) (*regexp.Regexp, error) {
	if expr == "" {
		return nil, fmt.Errorf("%q has an empty expression; write one, or leave it out", rule)
	}
	if len(expr) > maxRegex {
		return nil, fmt.Errorf("%q has %d bytes; an expression may have %d", rule, len(expr), maxRegex)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w; write it as RE2 does (no lookaround, no backreference), with \\\\ for \\ in JSON", rule, err)
	}
	return re, nil
}

// ParseCheck reads what [Check.String] wrote.
func ParseCheck(text string) (*Check, error) {
	var r Rules
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("check %q: %w", text, err)
	}
	return NewCheck(r)
}

// String is the rules as JSON.
func (c *Check) String() string {
	text, err := json.Marshal(&c.rules)
	if err != nil {
		panic(err) // strings and finite numbers
	}
	return string(text)
}

// Want is the right answer as a reader is told it, empty where there is none.
func (c *Check) Want() string {
	r := &c.rules
	switch {
	case r.Number != nil && r.Tolerance > 0:
		return fmt.Sprintf("%s +- %s", decimal(*r.Number), decimal(r.Tolerance))
	case r.Number != nil:
		return decimal(*r.Number)
	case r.Regex != "":
		return "/" + r.Regex + "/"
	}
	return strings.Join(r.Answers, " or ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Checks tells whether there is anything to check an answer by.
func (c *Check) Checks() bool {
	return c.rules.Answers != nil || c.match != nil || c.rules.Number != nil
}

// NeedsThought tells whether an answer is found only behind the mark that ends a
// thought. That holds for the nil Check.
func (c *Check) NeedsThought() bool {
	return c == nil || c.rules.Extract == "" || c.rules.Extract == extractThought
}

// Right reports whether the answer in a model's text is right.
func (c *Check) Right(output string) bool {
	answer, ok := c.Find(output)
	return ok && c.accepts(answer)
}

// Find extracts the answer from a model's text, as the rules say where it stands.
func (c *Check) Find(output string) (answer string, ok bool) {
	if c.NeedsThought() {
		return Extract(output)
	}
	output, _, _ = strings.Cut(output, endOfTurn)
	if i := strings.LastIndex(output, endOfThought); i >= 0 {
		output = output[i+len(endOfThought):]
	}
	switch {
	case c.find != nil:
		answer = lastMatch(c.find, output)
	case c.rules.Extract == extractNumber:
		answer = lastNumber(output)
	default:
		answer = output
	}
	answer = strings.TrimSpace(answer)
	return answer, answer != ""
}

// accepts judges an extracted answer.
func (c *Check) accepts(answer string) bool {
	switch r := &c.rules; {
	case r.Number != nil:
		got, ok := parseNumber(answer)
		return ok && within(got, *r.Number, r.Tolerance)
	case c.match != nil:
		return c.match.MatchString(answer)
	default:
		return slices.ContainsFunc(r.Answers, func(want string) bool { return Correct(answer, want) })
	}
}

// within compares up to the rounding of decimal fractions: 12.51 is 0.01 from 12.5.
func within(got, want, tolerance float64) bool {
	if tolerance == 0 {
		return got == want
	}
	m := max(math.Abs(got), math.Abs(want))
	return math.Abs(got-want) <= tolerance+4*(m-math.Nextafter(m, 0))
}

func lastMatch(re *regexp.Regexp, text string) string {
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	return last[min(1, len(last)-1)]
}

// A number is what people write: with a sign, with commas between thousands, with
// a fraction, with an exponent.
const numberForm = `(?:\d{1,3}(?:,\d{3})+\b|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?`

var (
	numberInText = regexp.MustCompile(`([-+\x{2212}]?)(` + numberForm + `)`)
	wholeNumber  = regexp.MustCompile(`^[-+]?(?:` + numberForm + `|\.\d+)\.?$`)
)

// lastNumber takes a sign as one only where no word or number stands before it:
// 7-3 ends with 3.
func lastNumber(text string) string {
	all := numberInText.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return ""
	}
	at := all[len(all)-1]
	from := at[0]
	if signed := at[3] > at[2]; signed && from > 0 {
		if c := text[from-1]; c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == ')' {
			from = at[4]
		}
	}
	return text[from:at[5]]
}

func parseNumber(s string) (float64, bool) {
	s = strings.Replace(strings.TrimSpace(s), "\u2212", "-", 1)
	if !wholeNumber.MatchString(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(s, "."), ",", ""), 64)
	return f, err == nil
}
