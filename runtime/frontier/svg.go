package frontier

import (
	"fmt"
	"io"
	"strings"
)

// Size of the drawing, in its own units: the plot and its margins.
const (
	svgWide, svgHigh = 900, 560
	svgLeft, svgTop  = 70, 46
	svgPlotW         = 590
	svgPlotH         = 440
)

// hues tell curves apart for most kinds of colour vision (Okabe and Ito), on light
// and on dark ground alike; the form of the marks does it without colours.
var hues = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"}

// WriteSVG draws the plot. It is text of its own colours, with no script and nothing
// from elsewhere; where the reader asks for a dark ground it has one.
func (p *Plot) WriteSVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s against %s" font-family="system-ui, sans-serif" font-size="13">`+"\n",
		svgWide, svgHigh, svgWide, svgHigh, escaped(p.YName), escaped(p.XName))
	b.WriteString(`<style>
.ground { fill: #ffffff } .text { fill: #1a1a1a } .soft { fill: #595959 } .line { stroke: #d9d9d9 } .edge { stroke: #595959 } .end { fill: #1a1a1a }
@media (prefers-color-scheme: dark) { .ground { fill: #16181d } .text { fill: #ececec } .soft { fill: #a6a6a6 } .line { stroke: #343840 } .edge { stroke: #a6a6a6 } .end { fill: #ececec } }
</style>` + "\n")
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", svgWide, svgHigh)
	fmt.Fprintf(&b, `<text class="text" x="%d" y="22" font-size="15" font-weight="600">%s against %s</text>`+"\n", svgLeft, escaped(p.YName), escaped(p.XName))
	fmt.Fprintf(&b, `<text class="soft" x="%d" y="38" font-size="11">%s</text>`+"\n", svgLeft, escaped(p.Title))
	p.axes(&b)
	for _, top := range []bool{false, true} { // what was run is in front of what was composed
		for i := range p.Lines {
			if p.Lines[i].Composed != top {
				p.band(&b, i)
			}
		}
		for i := range p.Lines {
			if p.Lines[i].Composed != top {
				p.curve(&b, i)
			}
		}
	}
	p.ends(&b)
	p.legend(&b)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// at is where a point lies.
func (p *Plot) at(x, y float64) (px, py float64) {
	return svgLeft + p.PartX(x)*svgPlotW, svgTop + (1-p.PartY(y))*svgPlotH
}

func (p *Plot) axes(b *strings.Builder) {
	for _, t := range p.YTicks() {
		_, y := p.at(0, t.At)
		fmt.Fprintf(b, `<line class="line" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text class="soft" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			svgLeft, y, svgLeft+svgPlotW, y, svgLeft-8, y+4.5, escaped(t.Text))
	}
	free := 0.0
	for _, t := range p.XTicks() {
		x, _ := p.at(t.At, 0)
		fmt.Fprintf(b, `<line class="line" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, svgTop, x, svgTop+svgPlotH)
		if x >= free {
			fmt.Fprintf(b, `<text class="soft" x="%.1f" y="%d" text-anchor="middle">%s</text>`, x, svgTop+svgPlotH+18, escaped(t.Text))
			free = x + 9*float64(len(t.Text))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, `<path class="edge" fill="none" d="M%d %dV%dH%d"/>`+"\n", svgLeft, svgTop, svgTop+svgPlotH, svgLeft+svgPlotW)
	name := p.XName
	if p.Root {
		name += " (at square roots)"
	}
	fmt.Fprintf(b, `<text class="text" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", svgLeft+svgPlotW/2, svgTop+svgPlotH+42, escaped(name))
	fmt.Fprintf(b, `<text class="text" transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", svgTop+svgPlotH/2, escaped(p.YName))
	_, y := p.at(0, p.Large.Y)
	fmt.Fprintf(b, `<line class="edge" stroke-dasharray="2 4" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", svgLeft, y, svgLeft+svgPlotW, y)
}

// band is the intervals of a curve that was run, joined from its first point to its
// last.
func (p *Plot) band(b *strings.Builder, i int) {
	l := &p.Lines[i]
	own := l.own()
	if l.Composed {
		return
	}
	if len(own) == 1 {
		x, lo := p.at(own[0].X, own[0].Lo)
		_, hi := p.at(own[0].X, own[0].Hi)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.6" stroke-width="1.5"/>`+"\n", x, lo, x, hi, hue(l.Number))
		return
	}
	own = p.path(own)
	var path strings.Builder
	for k, d := range own {
		x, y := p.at(d.X, d.Hi)
		fmt.Fprintf(&path, "%s%.1f %.1f", pen(k), x, y)
	}
	for k := len(own) - 1; k >= 0; k-- {
		x, y := p.at(own[k].X, own[k].Lo)
		fmt.Fprintf(&path, "L%.1f %.1f", x, y)
	}
	fmt.Fprintf(b, `<path fill="%s" fill-opacity="0.15" d="%sZ"/>`+"\n", hue(l.Number), path.String())
}

// pen begins a path or goes on with it.
func pen(k int) string {
	if k == 0 {
		return "M"
	}
	return "L"
}

func (p *Plot) curve(b *strings.Builder, i int) {
	l := &p.Lines[i]
	dash := ""
	if l.Composed {
		dash = ` stroke-dasharray="5 4" stroke-opacity="0.8"`
	}
	var path strings.Builder
	for k, d := range p.path(l.Dots) {
		x, y := p.at(d.X, d.Y)
		fmt.Fprintf(&path, "%s%.1f %.1f", pen(k), x, y)
	}
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.8"%s d="%s"><title>%s</title></path>`+"\n", hue(l.Number), dash, path.String(), escaped(l.Name))
	for _, d := range l.Dots {
		if x, y := p.at(d.X, d.Y); !d.End && !l.Composed {
			mark(b, l.Number, x, y)
		}
	}
}

func (p *Plot) ends(b *strings.Builder) {
	for _, e := range []struct {
		Dot
		name string
	}{{p.Small, SmallOnly}, {p.Large, LargeOnly}} {
		x, y := p.at(e.X, e.Y)
		side, dx := "start", 9.0
		if x > svgLeft+svgPlotW/2 {
			side, dx = "end", -9
		}
		fmt.Fprintf(b, `<circle class="end" cx="%.1f" cy="%.1f" r="4.5"/><text class="text" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, x+dx, y+16, side, escaped(e.name))
	}
}

func (p *Plot) legend(b *strings.Builder) {
	const x = svgLeft + svgPlotW + 22
	y := float64(svgTop + 10)
	for i := range p.Lines {
		l := &p.Lines[i]
		dash, name := "", l.Name
		if l.Composed {
			dash, name = ` stroke-dasharray="5 4"`, "~ "+name
		}
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="1.8"%s/>`, x, y, x+26, y, hue(l.Number), dash)
		if !l.Composed {
			mark(b, l.Number, x+13, y)
		}
		fmt.Fprintf(b, `<text class="text" x="%d" y="%.1f">%s</text>`+"\n", x+34, y+4.5, escaped(clip(name, 24)))
		y += 20
	}
	for i := range p.Lines {
		if p.Lines[i].Composed {
			fmt.Fprintf(b, `<text class="soft" x="%d" y="%.1f" font-size="11">~ whole requests, composed</text>`+"\n", x, y+6)
			break
		}
	}
}

// form is the mark of curve i. Hue and form together come again only behind as many
// curves as there are pairs of them.
func form(i int) int { return (i + i/len(hues)) % forms }

const forms = 4

// mark draws a point of curve i: curves differ in form as well.
func mark(b *strings.Builder, i int, x, y float64) {
	switch form(i) {
	case 0:
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, hue(i))
	case 1:
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="6.4" height="6.4" fill="%s"/>`+"\n", x-3.2, y-3.2, hue(i))
	case 2:
		fmt.Fprintf(b, `<path d="M%.1f %.1fl4 7h-8z" fill="%s"/>`+"\n", x, y-4.5, hue(i))
	default:
		fmt.Fprintf(b, `<path d="M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z" fill="%s"/>`+"\n", x, y-4.5, hue(i))
	}
}

func hue(i int) string { return hues[i%len(hues)] }

func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// escaped is text as it may stand in a document.
func escaped(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}
