package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"

	"tokenrouter/tui/frame"
)

// onTerminal is a message as a terminal may get it: names of files hold anything.
func onTerminal(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, text)
}

// liveLine is a line of a terminal that is written anew again and again. The zero
// value, without a terminal, writes nothing.
type liveLine struct {
	w      io.Writer
	room   int // columns, 0: not known
	filled int
}

// newLiveLine is one on f, if that is a terminal that can do it.
func newLiveLine(f *os.File) liveLine {
	if !term.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return liveLine{}
	}
	l := liveLine{w: f}
	if w, _, err := term.GetSize(f.Fd()); err == nil {
		l.room = w - 1 // a full line would break
	}
	return l
}

// put writes the line.
func (l *liveLine) put(text string) {
	if l.w == nil {
		return
	}
	room := l.room
	if room <= 0 {
		room = frame.Width(text)
	}
	row := frame.NewLine(room, false).Put("", text).End()
	fmt.Fprintf(l.w, "\r%s%s", row.S, strings.Repeat(" ", max(0, l.filled-row.W)))
	l.filled = row.W
}

// putEnd writes the line, and cuts the text where there is no room for it and
// the end.
func (l *liveLine) putEnd(text, end string) {
	if l.room > 0 {
		text = frame.Clip(text, l.room-frame.Width(end), false)
	}
	l.put(text + end)
}

// clear takes the line away, and the ^C behind it that a terminal shows.
func (l *liveLine) clear() {
	if l.w != nil && l.filled > 0 {
		n := l.filled + len("^C")
		if l.room > 0 {
			n = min(n, l.room)
		}
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", n))
		l.filled = 0
	}
}
