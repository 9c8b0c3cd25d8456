package live

import (
	"fmt"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// printsPerSecond bounds what a router's print() puts on the tape: it is called
// for every token, and a person reads a few lines a second.
const printsPerSecond = 5

// printer passes on what a subserver's router prints, a few lines a second, and
// says how many it left out. It belongs to the decode loop.
type printer struct {
	rt      *Runtime
	self    event.Peer
	since   int64 // ns, of the second under way
	lines   int
	leftOut int
}

func (p *printer) print(line string) {
	now := p.rt.Now()
	if now-p.since >= int64(time.Second) {
		if p.leftOut > 0 {
			p.rt.message(tape.Print, fmt.Sprintf("print on %s: %d more lines in a second are left out", event.Role(p.self, p.rt.n), p.leftOut))
		}
		p.since, p.lines, p.leftOut = now, 0, 0
	}
	if p.lines == printsPerSecond {
		p.leftOut++
		return
	}
	p.lines++
	p.rt.message(tape.Print, "print on "+event.Role(p.self, p.rt.n)+": "+line)
}
