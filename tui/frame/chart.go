package frame

import "math"

// Layer is one layer of a stacked chart, from the bottom up.
type Layer struct {
	Style Style
	Over  Style  // this layer in front, the next one behind it; "" without colours
	Solid string // glyph of a full cell where colours cannot tell layers apart, "" = block
}

// Stack draws columns of stacked values: values[c][i] is layer i of column c,
// in the same unit as top, the value at the upper end. All rows are len(values)
// wide. Values that are not numbers leave a gap.
func Stack(g *Glyphs, height int, top float64, layers []Layer, values [][]float64) []Row {
	if height <= 0 {
		return nil
	}
	if !(top > 0) {
		top = 1
	}
	scale := float64(height*8) / top
	bounds := make([][]int, len(values)) // upper ends of the layers in eighths
	flat := make([]int, len(values)*len(layers))
	for c, v := range values {
		b := flat[c*len(layers) : (c+1)*len(layers)]
		sum, lowest := 0.0, -1 // lowest layer that has something
		for i := range layers {
			if i < len(v) && v[i] > 0 && !math.IsInf(v[i], 0) {
				sum += v[i]
				if lowest < 0 {
					lowest = i
				}
			}
			b[i] = int(math.Round(min(sum*scale, float64(height*8))))
		}
		if sum > 0 && b[len(b)-1] == 0 { // too little for an eighth, but not nothing
			for i := lowest; i < len(b); i++ {
				b[i] = 1
			}
		}
		bounds[c] = b
	}
	out := make([]Row, height)
	l := NewLine(len(values), g.ASCII)
	for y := range out {
		l.Start(len(values))
		floor := (height - 1 - y) * 8
		for _, b := range bounds {
			glyph, style := stackCell(g, layers, b, floor)
			l.Repeat(style, glyph, 1)
		}
		out[y] = l.End()
	}
	return out
}

// stackCell draws the cell between floor and floor+8.
func stackCell(g *Glyphs, layers []Layer, bounds []int, floor int) (string, Style) {
	n := len(bounds)
	if n == 0 || bounds[n-1] <= floor {
		return " ", ""
	}
	top := min(bounds[n-1]-floor, 8)
	// The lowest layer that reaches into this cell, and where it ends.
	i := 0
	for bounds[i] <= floor {
		i++
	}
	end := min(bounds[i]-floor, 8)
	ly := layers[i]
	if ly.Over != "" || i == n-1 && ly.Solid == "" {
		switch {
		case end == top:
			return g.Levels[top], ly.Style
		case top >= 6 && i+1 < n && ly.Over != "" && bounds[i+1]-floor >= top:
			// A cell has two colours and no third one for what is left empty: a
			// nearly full one is shown as full, so that both layers are seen.
			return g.Levels[end], ly.Over
		}
	}
	// Two layers share a cell that cannot show both: the larger one has it.
	if end*2 < top && i+1 < n {
		for i+1 < n && bounds[i+1] <= bounds[i] {
			i++
		}
		i = min(i+1, n-1)
		ly = layers[i]
	}
	switch {
	case ly.Solid == "":
	case top >= 4 || i < n-1:
		return ly.Solid, ly.Style
	case floor > 0: // a part of a block would look like another layer
		return " ", ""
	}
	return g.Levels[top], ly.Style
}

// Spark draws one row of columns for values between 0 and top; values that are
// not numbers leave a gap.
func Spark(l *Line, g *Glyphs, s Style, top float64, values []float64) {
	if !(top > 0) {
		top = 1
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			l.Repeat("", " ", 1)
			continue
		}
		k := int(math.Round(min(max(v, 0)/top, 1) * 8))
		if k == 0 && v > 0 {
			k = 1
		}
		if k == 0 {
			l.Repeat(s, g.None, 1)
			continue
		}
		l.Repeat(s, g.Levels[k], 1)
	}
}
