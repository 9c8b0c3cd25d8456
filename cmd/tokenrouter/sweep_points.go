package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/algos"
	"tokenrouter/runtime/frontier"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
)

// sweepPoint is a router at one setting.
type sweepPoint struct {
	file   string // as --router takes it
	router string // file@hash
	series string // of the curve that it is on
	fixed  []frontier.Knob
	knobs  []frontier.Knob   // of the axis of the curve
	byHead []scripting.Param // knobs that stand where their head's manifest puts them
}

func (p *sweepPoint) key() string { return frontier.Key(p.series, p.knobs) }

// flags are the knobs as --param takes them.
func (p *sweepPoint) flags() map[string]string {
	out := map[string]string{}
	for _, k := range slices.Concat(p.fixed, p.knobs) {
		out[k.Name] = strconv.FormatFloat(k.Value, 'g', -1, 64)
	}
	return out
}

// axis is a knob with the values that it takes.
type axis struct {
	name   string
	values []float64
}

// Most points of one sweep, and of one axis.
const maxPoints = 10_000

// Baselines beside the two ends.
const (
	randomName = "random"
	oracleName = "oracle"
)

// points reads which routers are run at which settings: the two ends, what is asked
// for, then the other baselines but random, whose settings are not known yet.
func (s *sweep) points() error {
	c := s.cmd
	lib := library.Library{Dir: c.Routers, Embedded: algos.Routers()}
	add := func(router string, axes []axis) error {
		points, err := pointsOf(lib, router, axes)
		s.plan = append(s.plan, points...)
		if len(s.plan) > maxPoints {
			err = fmt.Errorf("there are more than %d points", maxPoints)
		}
		return err
	}
	for _, name := range []string{frontier.SmallOnly, frontier.LargeOnly} {
		if err := add(name, nil); err != nil {
			return err
		}
	}
	if c.Router != "" || len(c.Param) > 0 || len(c.Point) == 0 {
		if c.Router == "" {
			c.Router = "r2r"
		}
		axes, err := axesOf(c.Param)
		if err == nil {
			err = add(c.Router, axes)
		}
		if err != nil {
			return fmt.Errorf("--router %s: %w", c.Router, err)
		}
	}
	for _, text := range c.Point {
		router, axes, err := parsePoint(text)
		if err == nil {
			err = add(router, axes)
		}
		if err != nil {
			return fmt.Errorf("--point %q: %w", text, err)
		}
	}
	if err := s.baselines(lib, add); err != nil {
		return err
	}
	keys := map[string]bool{}
	for i := range s.plan {
		k := s.plan[i].key()
		if keys[k] {
			return fmt.Errorf("the point %q is asked for twice", k)
		}
		keys[k] = true
	}
	return nil
}

func (s *sweep) baselines(lib library.Library, add func(string, []axis) error) error {
	known := []string{frontier.SmallOnly, frontier.LargeOnly, oracleName, randomName}
	text := s.cmd.Baselines
	var names []string
	switch text {
	case "none":
	case "all":
		names = known
	default:
		names = splitNames(text)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(s.plan, func(p sweepPoint) bool { return p.series == name })
	}
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("--baselines %q: there is no baseline %q; there are %s, all and none", text, name, strings.Join(known, ", "))
		case name == randomName:
			s.baseRnd = true
		case has(name):
		default:
			_, _, _, err := lib.Resolve(name)
			if text == "all" && err != nil {
				continue
			}
			if err := add(name, nil); err != nil {
				return fmt.Errorf("--baselines: %w", err)
			}
		}
	}
	return nil
}

// randomShares are those at which random is run whatever the points are, so that its
// curve is known where theirs have none.
var randomShares = []float64{0.2, 0.5, 0.8}

// random are points of the router that routes by chance, at the shares that the
// other points have. Of shares that lie within a tenth of one another the least will
// do: a curve is straight between its points.
func (s *sweep) random() ([]sweepPoint, error) {
	lib := library.Library{Dir: s.cmd.Routers, Embedded: algos.Routers()}
	a := axis{name: "share"}
	shares := slices.Clone(randomShares)
	for i := range s.plan {
		r, ok := s.runs[s.plan[i].key()]
		if x := math.Round(r.Summary.LargeShare*1000) / 1000; ok && x > 0 && x < 1 {
			shares = append(shares, x)
		}
	}
	slices.Sort(shares)
	for _, x := range shares {
		if n := len(a.values); n == 0 || x > 1.1*a.values[n-1] {
			a.values = append(a.values, x)
		}
	}
	if len(a.values) == 0 {
		return nil, nil
	}
	points, err := pointsOf(lib, randomName, []axis{a})
	return slices.DeleteFunc(points, func(p sweepPoint) bool { // asked for by hand
		return slices.ContainsFunc(s.plan, func(q sweepPoint) bool { return q.key() == p.key() })
	}), err
}

// pointsOf is a router at the product of its axes. The axis with the most values is
// that of the curve; each setting of the others is a curve of its own.
func pointsOf(lib library.Library, router string, axes []axis) ([]sweepPoint, error) {
	path, text, embedded, err := lib.Resolve(router)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(router), library.Ext)
	file := name + library.Ext
	if !embedded {
		file = filepath.Base(path)
	}
	program, err := scripting.Compile(file, text)
	if err != nil {
		return nil, err
	}
	if err := settable(program, axes); err != nil {
		return nil, err
	}
	main, total := -1, 1
	for i, a := range axes {
		if main < 0 || len(a.values) > len(axes[main].values) {
			main = i
		}
		if total *= len(a.values); total > maxPoints {
			return nil, fmt.Errorf("there are more than %d points", maxPoints)
		}
	}
	byHead := slices.DeleteFunc(slices.Clone(program.Params), func(d scripting.Param) bool {
		return d.Head == "" || slices.ContainsFunc(axes, func(a axis) bool { return a.name == d.Name })
	})
	out := []sweepPoint{{file: router, router: routerLabel(file, program.Hash), series: name, byHead: byHead}}
	for i, a := range axes {
		if i != main {
			out = crossed(out, a, func(p *sweepPoint, k frontier.Knob) {
				p.fixed = append(slices.Clone(p.fixed), k)
				p.series = frontier.Key(p.series, []frontier.Knob{k})
			})
		}
	}
	if main >= 0 {
		out = crossed(out, axes[main], func(p *sweepPoint, k frontier.Knob) { p.knobs = []frontier.Knob{k} })
	}
	return out, nil
}

// crossed is every point at every value.
func crossed(points []sweepPoint, a axis, set func(*sweepPoint, frontier.Knob)) (out []sweepPoint) {
	for _, p := range points {
		for _, v := range a.values {
			q := p
			set(&q, frontier.Knob{Name: a.name, Value: v})
			out = append(out, q)
		}
	}
	return out
}

// settable sets every value once, so that a wrong one is found before anything runs.
func settable(p *scripting.Program, axes []axis) error {
	knobs := scripting.NewKnobs()
	knobs.Declare(p)
	for _, a := range axes {
		for _, v := range a.values {
			if err := knobs.Set(a.name, v, "flag"); err != nil {
				return err
			}
		}
	}
	return nil
}

// parsePoint reads "router=r2r threshold=0.05:1.5:8".
func parsePoint(text string) (router string, axes []axis, err error) {
	for word := range strings.FieldsSeq(text) {
		name, values, ok := strings.Cut(word, "=")
		switch {
		case !ok || name == "" || values == "":
			return "", nil, fmt.Errorf("%q is not of the form KNOB=VALUES", word)
		case name == "router" && router != "":
			return "", nil, errors.New("it names two routers; give each a --point of its own")
		case name == "router":
			router = values
		default:
			a, err := parseAxis(name, values)
			if err != nil {
				return "", nil, err
			}
			if slices.ContainsFunc(axes, func(b axis) bool { return b.name == name }) {
				return "", nil, fmt.Errorf("it gives %s twice", name)
			}
			axes = append(axes, a)
		}
	}
	if router == "" {
		return "", nil, errors.New("it names no router; begin with router=NAME")
	}
	return router, axes, nil
}

// axesOf are those of --param, by name.
func axesOf(params map[string]string) (out []axis, err error) {
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a, err := parseAxis(name, params[name])
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// parseAxis reads values of a knob: lo:hi:n, which may end in :log, or a list.
func parseAxis(name, text string) (axis, error) {
	a := axis{name: name}
	wrong := func(format string, args ...any) (axis, error) {
		return axis{}, fmt.Errorf("%s=%s: %s", name, text, fmt.Sprintf(format, args...))
	}
	if !strings.Contains(text, ":") {
		for part := range strings.SplitSeq(text, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil {
				return wrong("%q is not a number", part)
			}
			if slices.Contains(a.values, v) {
				return wrong("%g is there twice", v)
			}
			a.values = append(a.values, v)
		}
		return a, nil
	}
	parts := strings.Split(text, ":")
	log := len(parts) == 4 && parts[3] == "log"
	if len(parts) != 3 && !log {
		return wrong("a range is FROM:TO:COUNT, or FROM:TO:COUNT:log")
	}
	lo, err1 := strconv.ParseFloat(parts[0], 64)
	hi, err2 := strconv.ParseFloat(parts[1], 64)
	n, err3 := strconv.Atoi(parts[2])
	switch {
	case err1 != nil || err2 != nil || err3 != nil:
		return wrong("a range is of numbers: FROM:TO:COUNT")
	case !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0):
		return wrong("a range goes from a smaller number to a larger one")
	case n < 2 || n > maxPoints:
		return wrong("a range has 2 to %d values", maxPoints)
	case log && lo <= 0:
		return wrong("a range in equal ratios begins above 0")
	}
	for i := range n {
		t := float64(i) / float64(n-1)
		v := lo + (hi-lo)*t
		if log {
			v = lo * math.Pow(hi/lo, t)
		}
		switch i {
		case 0:
			v = lo
		case n - 1:
			v = hi
		default:
			step := (hi - lo) / float64(n-1)
			if log {
				step = v * (math.Pow(hi/lo, 1/float64(n-1)) - 1)
			}
			v = rounded(v, step)
		}
		if len(a.values) > 0 && v <= a.values[len(a.values)-1] {
			return wrong("its values are too close to be told apart")
		}
		a.values = append(a.values, v)
	}
	return a, nil
}

// rounded has so few digits that the value can be typed, and lies where it was, for a
// neighbour that is so far away.
func rounded(v, step float64) float64 {
	for digits := 3; digits < 6; digits++ {
		x, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
		if err == nil && math.Abs(x-v) <= step/20 {
			return x
		}
	}
	return v
}
