package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// progress draws one line on a terminal and nothing elsewhere.
type progress struct {
	liveLine
	total   int           // requests, 0: unknown
	horizon time.Duration // session time, 0: unknown
}

func newProgress(f *os.File, total int, horizon time.Duration) *progress {
	return &progress{liveLine: newLiveLine(f), total: total, horizon: horizon}
}

// show rewrites the line. at is the time of the session, which is another one
// than the elapsed wall time where it is virtual.
func (p *progress) show(seen *watch, at, elapsed time.Duration, virtual bool) {
	p.put(p.line(seen, at, elapsed, virtual))
}

// line has a bar where the end is known.
func (p *progress) line(seen *watch, at, elapsed time.Duration, virtual bool) string {
	line, part := "", 0.0
	if p.total > 0 {
		line = fmt.Sprintf("%d/%d requests", seen.done, p.total)
		part = float64(seen.done) / float64(p.total)
	} else {
		line = fmt.Sprintf("%d requests", seen.done)
	}
	if p.horizon > 0 {
		part = max(part, at.Seconds()/p.horizon.Seconds())
	}
	const bar = 24
	if p.total > 0 || p.horizon > 0 {
		n := min(int(bar*part), bar)
		line = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", n), strings.Repeat("-", bar-n), line)
	}
	line += fmt.Sprintf("  %.0f tok/s", float64(seen.tokens)/max(at.Seconds(), 1e-3))
	if seen.checked > 0 {
		line += fmt.Sprintf("  right %d/%d", seen.right, seen.checked)
	}
	if virtual {
		return line + fmt.Sprintf("  %s of virtual time in %s", at.Round(time.Second), elapsed.Round(time.Second))
	}
	return line + fmt.Sprintf("  %s", at.Round(time.Second))
}
