package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
)

// progress draws one line on a terminal and nothing elsewhere.
type progress struct {
	w     io.Writer
	total int
	width int
}

func newProgress(f *os.File, total int) *progress {
	p := &progress{total: total}
	if term.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb" {
		p.w = f
	}
	return p
}

// show rewrites the line; a bar where the end is known.
func (p *progress) show(done, right, checked int, tokensPerS float64, elapsed time.Duration) {
	if p.w == nil {
		return
	}
	line := fmt.Sprintf("%d/%d requests", done, p.total)
	const bar = 24
	if p.total > 0 {
		n := bar * done / p.total
		line = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", n), strings.Repeat("-", bar-n), line)
	}
	line += fmt.Sprintf("  %.0f tok/s", tokensPerS)
	if checked > 0 {
		line += fmt.Sprintf("  right %d/%d", right, checked)
	}
	line += fmt.Sprintf("  %s", elapsed.Round(time.Second))
	pad := max(0, p.width-len(line))
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", pad))
	p.width = len(line)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
	}
}
