package workload

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Defaults of what a form leaves out: the bursts of arXiv 2607.18253.
const (
	defaultCV    = 2
	defaultRatio = 3
	defaultHigh  = 0.2
)

const defaultCorrelation = 2 * time.Second

// ParseArrivals reads how requests come, as a flag states it:
//
//	closed                          the closed loop: nil Arrivals
//	poisson:2.5                     [Poisson], 2.5 arrivals a second
//	uniform:2.5                     [Uniform]
//	gamma:2.5,cv=2                  [Gamma]
//	mmpp:2.5,r=3,h=0.2,tc=2s        [MMPP]
//	trace:FILE,scale=1              [ReadTrace], scale times as fast
//
// What stands behind a comma may be left out and is then as shown.
func ParseArrivals(text string, seed uint64) (Arrivals, error) {
	kind, rest, found := strings.Cut(text, ":")
	fail := func(err error) (Arrivals, error) { return nil, fmt.Errorf("arrivals %q: %w", text, err) }
	if kind == "closed" && !found {
		return nil, nil
	}
	if kind == "trace" && found {
		t, err := parseTrace(rest)
		if err != nil {
			return fail(err)
		}
		return t, nil
	}
	names, known := arrivalOptions[kind]
	if !known || !found {
		return fail(errForms)
	}
	first, options, _ := strings.Cut(rest, ",")
	rate, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	if err != nil {
		return fail(fmt.Errorf("%q is not a rate in arrivals a second, such as %s:2.5", first, kind))
	}
	o, err := parseOptions(kind, names, options)
	if err != nil {
		return fail(err)
	}
	var a Arrivals
	switch kind {
	case "poisson":
		a, err = Poisson(seed, rate)
	case "uniform":
		a, err = Uniform(rate)
	case "gamma":
		a, err = Gamma(seed, rate, o.cv)
	case "mmpp":
		a, err = MMPP(seed, MMPPSpec{Rate: rate, Ratio: o.ratio, High: o.high, Correlation: o.correlation})
	}
	if err != nil {
		return fail(err)
	}
	return a, nil
}

var errForms = errors.New("give closed, poisson:2.5, uniform:2.5, gamma:2.5,cv=2, mmpp:2.5,r=3,h=0.2,tc=2s or trace:FILE")

var arrivalOptions = map[string][]string{
	"poisson": nil,
	"uniform": nil,
	"gamma":   {"cv"},
	"mmpp":    {"h", "r", "tc"},
}

type arrivalForm struct {
	cv, ratio, high float64
	correlation     time.Duration
}

func parseOptions(kind string, names []string, text string) (arrivalForm, error) {
	o := arrivalForm{cv: defaultCV, ratio: defaultRatio, high: defaultHigh, correlation: defaultCorrelation}
	if strings.TrimSpace(text) == "" {
		return o, nil
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(option), "=")
		switch {
		case len(names) == 0:
			return o, fmt.Errorf("%s takes a rate and nothing else, not %q", kind, option)
		case !slices.Contains(names, name):
			return o, fmt.Errorf("%s knows no %q; it takes %s", kind, name, strings.Join(names, ", "))
		case seen[name]:
			return o, fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		var err error
		if name == "tc" {
			if o.correlation, err = time.ParseDuration(value); err != nil {
				return o, fmt.Errorf("tc=%s is not a time such as 2s", value)
			}
			continue
		}
		number := map[string]*float64{"cv": &o.cv, "r": &o.ratio, "h": &o.high}[name]
		if *number, err = strconv.ParseFloat(value, 64); err != nil {
			return o, fmt.Errorf("%s=%s is not a number", name, value)
		}
	}
	return o, nil
}

// parseTrace reads FILE or FILE,scale=2; a comma in the name of a file is kept.
func parseTrace(text string) (*Trace, error) {
	name, scale := text, 1.0
	if i := strings.LastIndex(text, ",scale="); i >= 0 {
		value := text[i+len(",scale="):]
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f >= minScale && f <= maxScale) {
			return nil, fmt.Errorf("scale=%s is not a number from %g to %g: how many times as fast as in the file", value, minScale, float64(maxScale))
		}
		name, scale = text[:i], f
	}
	if name == "" {
		return nil, errors.New("trace: names no file")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := ReadTrace(file, name)
	if err != nil {
		return nil, err
	}
	t.scale = scale
	return t, nil
}

const (
	minScale = 1e-6
	maxScale = 1e6
)
