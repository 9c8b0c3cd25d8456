package frontier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Axis is what accuracy is drawn against.
type Axis string

// Axes, in the order of [Axes].
const (
	AxisShare Axis = "share" // of tokens, by the large model
	AxisRate  Axis = "rate"  // tokens/s
	AxisCost  Axis = "cost"  // over that of large only
)

// Axes lists them.
func Axes() []Axis { return []Axis{AxisShare, AxisRate, AxisCost} }

// Plot is what is drawn of a table: the same for the terminal and for a file.
type Plot struct {
	Axis         Axis
	Title        string
	XName, YName string
	XMax         float64 // the axis begins at 0
	YMin, YMax   float64
	Root         bool // distances on x are those of square roots: small values have room
	Small, Large Dot
	Lines        []Line
}

// Line is one curve. Its first and last dot may be those of small and large only.
type Line struct {
	Name     string
	Number   int  // among the curves of the table: its colour, mark and letter on every axis
	Composed bool // no run stands behind it
	Dots     []Dot
}

// Dot is a point with the interval of its accuracy.
type Dot struct {
	X, Y, Lo, Hi float64
	End          bool // small only or large only
}

// NewPlot draws the curves of a table against an axis. Curves that have no figure on
// it are left out.
func NewPlot(t *Table, axis Axis) *Plot {
	p := &Plot{Axis: axis, YName: "right answers", Root: axis != AxisRate}
	switch axis {
	case AxisShare:
		p.XName = "tokens by the large model"
	case AxisRate:
		p.XName = "tokens/s"
	case AxisCost:
		p.XName = "cost, of large only"
	}
	p.Title = fmt.Sprintf("%d problems, 95 %% intervals over %d resamples", t.Problems, t.Options.Resamples)
	dot := func(r *Row) Dot {
		d := Dot{Y: r.Accuracy.Value, Lo: r.Accuracy.Lo, Hi: r.Accuracy.Hi}
		if math.IsNaN(d.Lo) {
			d.Lo, d.Hi = d.Y, d.Y
		}
		switch axis {
		case AxisShare:
			d.X = r.Share.Value
		case AxisRate:
			d.X = r.Point.Rate
		case AxisCost:
			d.X = r.OfCost.Value
		}
		return d
	}
	p.Small, p.Large = dot(t.Row(t.Set.Small)), dot(t.Row(t.Set.Large))
	p.Small.End, p.Large.End = true, true
	for i := range t.Curves {
		c := &t.Curves[i]
		l := Line{Name: c.Series, Number: i, Composed: c.Composed}
		for _, at := range c.Points {
			if d := dot(&t.Rows[at]); !math.IsNaN(d.X) && !math.IsNaN(d.Y) {
				l.Dots = append(l.Dots, d)
			}
		}
		if len(l.Dots) == 0 {
			continue
		}
		if axis == AxisShare { // the area is of these ends, too
			l.Dots = append(l.Dots, p.Small, p.Large)
		}
		slices.SortStableFunc(l.Dots, func(a, b Dot) int { return cmp.Compare(a.X, b.X) })
		p.Lines = append(p.Lines, l)
	}
	p.bounds()
	return p
}

// bounds are the ends of the axes: round numbers around all dots.
func (p *Plot) bounds() {
	lo, hi := min(p.Small.Lo, p.Large.Lo), max(p.Small.Hi, p.Large.Hi)
	p.XMax = max(p.Small.X, p.Large.X)
	for _, l := range p.Lines {
		for _, d := range l.Dots {
			lo, hi, p.XMax = min(lo, d.Lo), max(hi, d.Hi), max(p.XMax, d.X)
		}
	}
	step := round125((hi - lo) / 10)
	p.YMin, p.YMax = max(math.Floor(lo/step)*step, 0), min(math.Ceil(hi/step)*step, 1)
	if !(p.YMin < p.YMax) {
		p.YMin, p.YMax = max(p.YMin-0.05, 0), min(p.YMax+0.05, 1)
	}
	if p.Axis == AxisShare {
		p.XMax = 1
	} else if s := round125(p.XMax / 5); s > 0 {
		p.XMax = math.Ceil(p.XMax/s-1e-9) * s
	}
	if !(p.XMax > 0) {
		p.XMax = 1
	}
}

// round125 is the smallest of 1, 2, 5 times a power of ten that is not below x.
func round125(x float64) float64 {
	if !(x > 1e-12 && x < 1e18) { // no figure of a run
		return 0.01
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// PartX is how far along its axis x lies, 0 to 1.
func (p *Plot) PartX(x float64) float64 {
	f := min(max(x/p.XMax, 0), 1)
	if math.IsNaN(f) { // small only or large only has no such figure
		return 0
	}
	if p.Root {
		f = math.Sqrt(f)
	}
	return f
}

// PartY is how far up y lies, 0 to 1.
func (p *Plot) PartY(y float64) float64 {
	return min(max((y-p.YMin)/(p.YMax-p.YMin), 0), 1)
}

// path is the line between its dots as it runs on the axis: what is straight in x is
// not straight in its square root.
func (p *Plot) path(dots []Dot) (out []Dot) {
	const steps = 16
	for k, d := range dots {
		if k > 0 && p.Root {
			a := dots[k-1]
			for i := 1; i < steps; i++ { // at equal distances as drawn
				t := float64(i) / steps
				x := math.Sqrt(a.X) + (math.Sqrt(d.X)-math.Sqrt(a.X))*t
				x *= x
				if part := ratio(x-a.X, d.X-a.X); part > 0 && part < 1 {
					out = append(out, Dot{x, a.Y + (d.Y-a.Y)*part, a.Lo + (d.Lo-a.Lo)*part, a.Hi + (d.Hi-a.Hi)*part, true})
				}
			}
		}
		out = append(out, d)
	}
	return out
}

// own are the dots of the curve itself.
func (l *Line) own() []Dot {
	return slices.DeleteFunc(slices.Clone(l.Dots), func(d Dot) bool { return d.End })
}

// Tick is a mark on an axis.
type Tick struct {
	At   float64
	Text string
}

// XTicks are those of the x axis.
func (p *Plot) XTicks() (out []Tick) {
	if p.Axis != AxisRate {
		for _, x := range []float64{0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3} {
			if x <= p.XMax*(1+1e-9) {
				out = append(out, Tick{x, percent(x)})
			}
		}
		return out
	}
	step := round125(p.XMax / 6)
	for i := 0; float64(i)*step <= p.XMax*(1+1e-9) && i < 20; i++ {
		out = append(out, Tick{float64(i) * step, fmt.Sprintf("%.4g", float64(i)*step)})
	}
	return out
}

// YTicks are those of the y axis.
func (p *Plot) YTicks() (out []Tick) {
	step := round125((p.YMax - p.YMin) / 6)
	for i := math.Ceil(max(p.YMin/step-1e-9, 0)); i*step <= p.YMax+1e-9; i++ {
		out = append(out, Tick{i * step, percent(i * step)})
	}
	return out
}

func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
