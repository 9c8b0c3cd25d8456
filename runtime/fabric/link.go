package fabric

import (
	"cmp"
	"slices"

	"tokenrouter/runtime/event"
)

// link is what is on its way from one subserver to another, first in, first out:
// the messages from head on.
type link struct {
	queue []Message
	head  int
}

func (l *link) put(m Message) {
	if n := len(l.queue); n == cap(l.queue) && l.head > n/2 {
		rest := copy(l.queue, l.queue[l.head:])
		clear(l.queue[rest:])
		l.queue, l.head = l.queue[:rest], 0
	}
	l.queue = append(l.queue, m)
}

func (l *link) take() Message {
	m := l.queue[l.head]
	l.queue[l.head] = Message{}
	if l.head++; l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
	return m
}

func (l *link) waiting() []Message { return l.queue[l.head:] }

func (f *Fabric) launch(m Message) {
	f.seq++
	m.Seq = f.seq
	f.links[int(m.From)*len(f.cores)+int(m.To)].put(m)
	f.flying++
}

// link is that from -> to, nil if there is none or nothing on it.
func (f *Fabric) link(from, to event.Peer) *link {
	n := event.Peer(len(f.cores))
	if from < 0 || to < 0 || from >= n || to >= n {
		return nil
	}
	if l := &f.links[int(from)*int(n)+int(to)]; l.head < len(l.queue) {
		return l
	}
	return nil
}

// Next is the message that link from -> to delivers next.
func (f *Fabric) Next(from, to event.Peer) (Message, bool) {
	l := f.link(from, to)
	if l == nil {
		return Message{}, false
	}
	return l.queue[l.head], true
}

// Flying counts the messages on their way.
func (f *Fabric) Flying() int { return f.flying }

// InFlight lists what is on its way, in the order sent.
func (f *Fabric) InFlight() []Message {
	out := make([]Message, 0, f.flying)
	for i := range f.links {
		out = append(out, f.links[i].waiting()...)
	}
	slices.SortFunc(out, func(a, b Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}
