package frame

// Glyphs are the characters that frames are drawn with; each is one cell wide.
type Glyphs struct {
	ASCII                  bool
	H, V, TL, TR, BL, BR   string
	Rule, Cross            string
	Up                     string    // mark under a chart
	Full, Mid, Light, None string    // cells of charts without colours, and an empty one
	Seat, Busy, Wait, Rest string    // cells of bars: one of a few, used, waiting, unused
	Levels                 [9]string // columns of height 0 to 8
	Knob, Track            string
	Cursor                 string // before a selected line
	Newline                string // where a token breaks the line
	OK, Bad                string
	PlusMinus              string
	Times                  string
	Half                   [4]string // both halves empty, lower, upper, both: for big digits
}

// Unicode draws with box and block characters.
func Unicode() *Glyphs {
	return &Glyphs{
		H: "─", V: "│", TL: "╭", TR: "╮", BL: "╰", BR: "╯", Rule: "─", Cross: "┴",
		Up: "▲", Full: "█", Mid: "▒", Light: "░", None: "·",
		Seat: "■", Busy: "━", Wait: "┅", Rest: "─",
		Levels: [9]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Knob:   "●", Track: "─", Cursor: "▸", Newline: "¶", OK: "✓", Bad: "✗",
		PlusMinus: "±", Times: "×", Half: [4]string{" ", "▄", "▀", "█"},
	}
}

// ASCII draws with printable ASCII alone.
func ASCII() *Glyphs {
	return &Glyphs{
		ASCII: true,
		H:     "-", V: "|", TL: "+", TR: "+", BL: "+", BR: "+", Rule: "-", Cross: "+",
		Up: "^", Full: "#", Mid: ":", Light: ".", None: ".",
		Seat: "#", Busy: "#", Wait: ":", Rest: ".",
		Levels: [9]string{" ", ".", ".", ":", ":", "|", "|", "#", "#"},
		Knob:   "o", Track: "-", Cursor: ">", Newline: "/", OK: "ok", Bad: "x",
		PlusMinus: "+-", Times: "x", Half: [4]string{" ", ",", "'", "#"},
	}
}
