package frontier

import (
	"fmt"
	"math"
	"strings"
)

// Chart draws the plot with characters, so many columns and rows of them in all. Each
// curve has a letter, which marks its points; the lines between are dots. Curves that
// were composed are drawn first, so that what was run is on top.
func (p *Plot) Chart(columns, rows int) string {
	const left = 8 // for the numbers of the y axis
	w, h := max(columns-left-1, 20), max(rows-3, 6)
	cells := make([][]byte, h)
	for i := range cells {
		cells[i] = []byte(strings.Repeat(" ", w))
	}
	at := func(d Dot) (x, y int) {
		return int(math.Round(p.PartX(d.X) * float64(w-1))), h - 1 - int(math.Round(p.PartY(d.Y)*float64(h-1)))
	}
	for _, top := range []bool{false, true} {
		for _, l := range p.Lines {
			if l.Composed == top {
				continue
			}
			path := p.path(l.Dots)
			for k := 1; k < len(path); k++ {
				x0, y0 := at(path[k-1])
				x1, y1 := at(path[k])
				steps := max(abs(x1-x0), abs(y1-y0), 1)
				for s := range steps + 1 {
					c := &cells[y0+(y1-y0)*s/steps][x0+(x1-x0)*s/steps]
					if *c == ' ' {
						*c = '.'
					}
				}
			}
			for _, d := range l.Dots {
				if !d.End {
					x, y := at(d)
					cells[y][x] = letter(l.Number)
				}
			}
		}
	}
	for _, end := range []struct {
		Dot
		mark byte
	}{{p.Small, 'S'}, {p.Large, 'L'}} {
		x, y := at(end.Dot)
		cells[y][x] = end.mark
	}
	labels := map[int]string{}
	for _, t := range p.YTicks() {
		labels[h-1-int(math.Round(p.PartY(t.At)*float64(h-1)))] = t.Text
	}
	var b strings.Builder
	for y, row := range cells {
		fmt.Fprintf(&b, "%*s |%s\n", left-2, labels[y], strings.TrimRight(string(row), " "))
	}
	fmt.Fprintf(&b, "%*s +%s\n", left-2, "", strings.Repeat("-", w))
	ruler := []byte(strings.Repeat(" ", w+left+1))
	free := 0
	for _, t := range p.XTicks() {
		x := left + int(math.Round(p.PartX(t.At)*float64(w-1)))
		x = min(x, len(ruler)-len(t.Text)) // the last one ends where the axis does
		if x >= free {
			copy(ruler[x:], t.Text)
			free = x + len(t.Text) + 1
		}
	}
	b.WriteString(strings.TrimRight(string(ruler), " ") + "\n")
	name := p.XName
	if p.Root {
		name += " (at square roots)"
	}
	fmt.Fprintf(&b, "%*s%s\n", left, "", name)
	names := []string{"S small_only", "L large_only"}
	for _, l := range p.Lines {
		names = append(names, fmt.Sprintf("%c %s", letter(l.Number), l.Name))
	}
	line := ""
	for i, n := range names {
		if line != "" && left+len(line)+len(n)+2 > columns {
			fmt.Fprintf(&b, "%*s%s\n", left, "", strings.TrimRight(line, " "))
			line = ""
		}
		if line += n; i < len(names)-1 {
			line += ", "
		}
	}
	fmt.Fprintf(&b, "%*s%s\n", left, "", line)
	return b.String()
}

// letter marks curve i.
func letter(i int) byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKMNOPQRTUVWXYZ" // no L and S
	return letters[i%len(letters)]
}

func abs(n int) int { return max(n, -n) }
