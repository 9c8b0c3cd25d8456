package theme

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"tokenrouter/runtime/event"
)

type rgb [3]float64 // linear, 0 to 1

func linear(hex uint32) rgb {
	var out rgb
	for i := range out {
		c := float64(hex>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			out[i] = c / 12.92
		} else {
			out[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return out
}

// luminance and contrast are WCAG 2's.
func luminance(c rgb) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

func contrast(a, b uint32) float64 {
	x, y := luminance(linear(a)), luminance(linear(b))
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// shades of a palette on one background, as numbers.
func shades(p Palette, light bool) map[string]shade {
	c := p.colours()
	out := map[string]shade{}
	for name, h := range map[string]hue{
		"small": c.small, "middle": c.middle, "large": c.large, "pending": c.pending, "dim": c.dim,
		"grey": c.grey, "good": c.good, "warn": c.warn, "bad": c.bad, "title": c.title, "paper": c.paper,
	} {
		e := h.dark
		if light {
			e = h.light
		}
		rgb, err := strconv.ParseUint(strings.TrimPrefix(e.hex, "#"), 16, 32)
		if err != nil {
			panic(err)
		}
		out[name] = shade{uint32(rgb), e.ansi}
	}
	return out
}

type shade struct {
	rgb  uint32
	ansi int8
}

// xterm16 are the 16 colours as xterm and VGA show them.
var xterm16 = [2][16]uint32{
	{0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff},
	{0x000000, 0xaa0000, 0x00aa00, 0xaa5500, 0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa, 0x555555, 0xff5555, 0x55ff55, 0xffff55, 0x5555ff, 0xff55ff, 0x55ffff, 0xffffff},
}

// case J7: 4.5:1 on the usual backgrounds, with 24-bit colours and with 16.
func TestContrast(t *testing.T) {
	for _, p := range []Palette{Default, Deuteranopia} {
		for _, light := range []bool{false, true} {
			grounds := []uint32{0x000000, 0x0d1117, 0x1e1e2e, 0x282a36}
			if light {
				grounds = []uint32{0xffffff, 0xf6f8fa, 0xfaf4ed}
			}
			all := shades(p, light)
			for name, e := range all {
				if name == "paper" {
					continue
				}
				for _, g := range grounds {
					if c := contrast(e.rgb, g); c < 4.5 {
						t.Errorf("%s %s on %06x: %.2f:1", p, name, g, c)
					}
				}
				if c := contrast(e.rgb, all["paper"].rgb); c < 4.5 {
					t.Errorf("%s %s under the cursor: %.2f:1", p, name, c)
				}
				ground := uint32(0)
				if light {
					ground = 0xffffff
				}
				for _, set := range xterm16 {
					if e.ansi >= 0 && contrast(set[e.ansi], ground) < 4.5 {
						t.Errorf("%s %s as colour %d of 16 on %06x: %.2f:1", p, name, e.ansi, ground, contrast(set[e.ansi], ground))
					}
				}
			}
		}
	}
}

// deutan is how a person without green cones sees a linear colour (Viénot,
// Brettel, Mollon 1999).
func deutan(c rgb) rgb {
	l := 0.31399022*c[0] + 0.63951294*c[1] + 0.04649755*c[2]
	s := 0.01775239*c[0] + 0.10944209*c[1] + 0.87256922*c[2]
	m := 0.9513092*l + 0.04866992*s
	return rgb{
		5.47221206*l - 4.6419601*m + 0.16963708*s,
		-1.1252419*l + 2.29317094*m - 0.1678952*s,
		0.02980165*l - 0.19318073*m + 1.16364789*s,
	}
}

// lab is CIE L*a*b* of a linear colour, D65.
func lab(c rgb) [3]float64 {
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x := f((0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.95047)
	y := f(0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2])
	z := f((0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func apart(a, b uint32, see func(rgb) rgb) float64 {
	x, y := lab(see(linear(a))), lab(see(linear(b)))
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

// case J8: the writers stay apart, in the second palette also without green
// cones.
func TestRolesApart(t *testing.T) {
	for _, light := range []bool{false, true} {
		for _, p := range []Palette{Default, Deuteranopia} {
			see := func(c rgb) rgb { return c }
			if p == Deuteranopia {
				see = deutan
			}
			c := shades(p, light)
			for _, pair := range [][2]shade{{c["small"], c["large"]}, {c["small"], c["middle"]}, {c["middle"], c["large"]}, {c["large"], c["pending"]}} {
				if d := apart(pair[0].rgb, pair[1].rgb, see); d < 20 {
					t.Errorf("%s light=%v: %06x and %06x are %.1f apart", p, light, pair[0].rgb, pair[1].rgb, d)
				}
			}
		}
	}
}

// cases J6, J8: whatever the terminal can do, the writers differ by more than
// hue.
func TestMarksWithoutHue(t *testing.T) {
	const n = 3
	for _, profile := range []colorprofile.Profile{colorprofile.NoTTY, colorprofile.Ascii, colorprofile.ANSI, colorprofile.ANSI256, colorprofile.TrueColor} {
		for _, ascii := range []bool{false, true} {
			th := New(Options{Profile: profile, ASCII: ascii})
			seen := map[string]bool{}
			for p := range event.Peer(n) {
				left, right := th.Brackets(p, n)
				mark := left + right
				st := string(th.Token(p, n))
				for _, attr := range []string{ansi.Style{}.Bold().String(), ansi.Style{}.Underline(true).String()} {
					code := strings.TrimSuffix(strings.TrimPrefix(attr, "\x1b["), "m")
					for _, part := range strings.Split(strings.Trim(st, "\x1b[m"), ";") {
						if part == code {
							mark += attr
						}
					}
				}
				if seen[mark] {
					t.Errorf("%v ascii=%v: two writers share the mark %q", profile, ascii, mark)
				}
				seen[mark] = true
				if profile == colorprofile.NoTTY && st != "" {
					t.Errorf("styles in plain text: %q", st)
				}
				if profile == colorprofile.Ascii && strings.Contains(st, "38;") {
					t.Errorf("colour without colours: %q", st)
				}
			}
			if th.DropMark == "" && (ascii || profile <= colorprofile.Ascii) {
				t.Errorf("%v ascii=%v: dropped candidates have no mark", profile, ascii)
			}
		}
	}
}

// case J12: every glyph of the ASCII set is ASCII, and all are one cell wide.
func TestGlyphs(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		g := *New(Options{ASCII: ascii}).G
		pair := map[string]bool{g.OK: true, g.PlusMinus: true}
		for _, s := range append([]string{
			g.H, g.V, g.TL, g.TR, g.BL, g.BR, g.Rule, g.Cross, g.Up, g.Full, g.Mid, g.Light, g.None, g.Seat, g.Busy, g.Wait, g.Rest,
			g.Knob, g.Track, g.Cursor, g.Newline, g.OK, g.Bad, g.PlusMinus, g.Times,
		}, append(g.Levels[:], g.Half[:]...)...) {
			if w := ansi.StringWidth(s); w != 1 && !(ascii && pair[s]) {
				t.Errorf("glyph %q is %d wide", s, w)
			}
			for _, r := range s {
				if ascii && r >= 0x7f {
					t.Errorf("glyph %q is not ASCII", s)
				}
			}
		}
	}
}

func TestOptionsAreKept(t *testing.T) {
	th := New(Options{Light: true, Palette: Deuteranopia})
	if th.Opts.Profile != colorprofile.TrueColor || !th.Color || th.Plain {
		t.Errorf("an unknown terminal is taken for %v", th.Opts.Profile)
	}
	if got := string(th.Role(0, 2)); !strings.Contains(got, fmt.Sprintf("%d;%d;%d", 0x00, 0x5f, 0x99)) {
		t.Errorf("small on light, deuteranopia: %q", got)
	}
}
