package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
)

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
	n := utf8.RuneCountInString(text)
	if l.room > 0 && n > l.room {
		text, n = string([]rune(text)[:l.room]), l.room
	}
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(0, l.filled-n)))
	l.filled = n
}

// clear takes the line away.
func (l *liveLine) clear() {
	if l.w != nil && l.filled > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.filled))
		l.filled = 0
	}
}
