package limits

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/mem"
	"tokenrouter/kernels/team"
)

// Kind is a kind of multiply-add.
type Kind uint8

const (
	Float Kind = iota // float32
	Int16             // int16 into int32: Q8 weights with activations of 16 bits
	Int8              // int8: Q4 weights with activations of 8 bits
	kinds
)

func (k Kind) String() string {
	switch k {
	case Float:
		return "f32"
	case Int16:
		return "int16"
	case Int8:
		return "int8"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Rate is what a loop reached: bytes or operations a second. A multiply-add is
// two operations.
type Rate struct {
	Loop      string  `json:"loop"`
	PerSecond float64 `json:"per_s"`
}

// Limits is what some cores can do at best, at one level of kernels.
type Limits struct {
	Cores int
	Level cpu.Level
	// Read is bytes a second of a buffer.
	Read Rate
	// Peak is multiply-adds on registers, by kind.
	Peak [kinds]Rate
	// Samples and Disturbed are those of all timings (Timing).
	Samples, Disturbed int
}

// Best is the higher of each limit, and the samples of both.
func Best(a, b *Limits) *Limits {
	best := *a
	best.Samples, best.Disturbed = a.Samples+b.Samples, a.Disturbed+b.Disturbed
	if b.Read.PerSecond > a.Read.PerSecond {
		best.Read = b.Read
	}
	for k := range best.Peak {
		if b.Peak[k].PerSecond > a.Peak[k].PerSecond {
			best.Peak[k] = b.Peak[k]
		}
	}
	return &best
}

// Options of a measurement; the zero value is the default.
type Options struct {
	// Buffer is the bytes that are read, 0 for 256 MiB or four times the largest
	// cache.
	Buffer int64
	// Time is what each loop gets while the best of its kind is looked for, 0
	// for 60 ms.
	Time time.Duration
}

func (o *Options) complete() {
	if o.Buffer == 0 {
		o.Buffer = max(256<<20, 4*largestCache())
	}
	if o.Time == 0 {
		o.Time = 60 * time.Millisecond
	}
}

const (
	// itemBytes and itemSteps are some ten microseconds of work.
	itemBytes = 256 << 10
	itemSteps = 4 << 10
	// itemsPerWorker of one sample: the end of a call, where workers wait for the
	// last one, weighs one in a hundred.
	itemsPerWorker = 100
)

// peak is a loop of multiply-adds: run(n) does n times ops operations.
type peak struct {
	name  string
	level cpu.Level
	kind  Kind
	ops   int
	run   func(n int)
}

// reader is a loop over memory: run reads b.
type reader struct {
	name  string
	level cpu.Level
	run   func(b []byte)
}

// Probe measures the workers of a seat outside of its steps, with the loops that
// are best on them.
type Probe struct {
	seat   *team.Seat
	level  cpu.Level
	cores  int
	buffer []byte
	next   atomic.Int64 // piece of the buffer that is read next
	read   *reader
	peaks  [kinds]*peak

	samples, disturbed int
}

// Open takes memory for the buffer and tries all loops. It fails where the
// memory cannot be had.
func Open(s *team.Seat, o Options) (*Probe, error) {
	o.complete()
	if o.Buffer < itemBytes || o.Time < 0 {
		return nil, fmt.Errorf("limits: a buffer of %d bytes and %v a loop: give at least %d bytes and a time above 0", o.Buffer, o.Time, itemBytes)
	}
	if free, err := mem.Available(); err == nil && o.Buffer > free {
		return nil, fmt.Errorf("limits: the buffer takes %d bytes, %d are available: give a smaller one or close other programs", o.Buffer, free)
	}
	b, err := mem.Alloc(int(o.Buffer) &^ (itemBytes - 1))
	if err != nil {
		return nil, err
	}
	p := &Probe{seat: s, level: cpu.Current(), cores: s.Workers(), buffer: b}
	s.Begin()
	s.Do(len(b)/itemBytes, func(_, i int) { // until it is written, memory is one page of zeros
		for line := range slices.Chunk(p.item(i), 64) {
			line[0] = byte(i)
		}
	})
	s.End()
	p.choose(o.Time)
	return p, nil
}

// Close gives the buffer back.
func (p *Probe) Close() error {
	b := p.buffer
	p.buffer = nil
	return mem.Free(b)
}

// Measure measures the best loops for some time each: the median over samples
// of a millisecond or two.
func (p *Probe) Measure(d time.Duration) *Limits {
	p.samples, p.disturbed = 0, 0
	l := &Limits{Cores: p.cores, Level: p.level, Read: Rate{p.read.name, p.bytesPerSecond(p.read, d)}}
	for k, best := range p.peaks {
		l.Peak[k] = Rate{best.name, p.opsPerSecond(best, d)}
	}
	l.Samples, l.Disturbed = p.samples, p.disturbed
	return l
}

// Measure opens a probe and measures once, each limit for four times o.Time.
func Measure(s *team.Seat, o Options) (*Limits, error) {
	o.complete()
	p, err := Open(s, o)
	if err != nil {
		return nil, err
	}
	return p.Measure(4 * o.Time), p.Close()
}

// choose finds the best loops. There is one of everything at every level.
func (p *Probe) choose(d time.Duration) {
	best := 0.0
	for i := range readers {
		if r := &readers[i]; p.usable(r.level) {
			if v := p.bytesPerSecond(r, d); v > best {
				p.read, best = r, v
			}
		}
	}
	var most [kinds]float64
	for i := range peaks {
		if r := &peaks[i]; p.usable(r.level) {
			if v := p.opsPerSecond(r, d); v > most[r.kind] {
				p.peaks[r.kind], most[r.kind] = r, v
			}
		}
	}
}

// usable says that loops of a level count at the one in use: all up to it, but
// Go's only where there is no other.
func (p *Probe) usable(l cpu.Level) bool { return l == p.level || l < p.level && l > cpu.Go }

// item is a piece of the buffer.
func (p *Probe) item(i int) []byte {
	i %= len(p.buffer) / itemBytes
	return p.buffer[i*itemBytes : (i+1)*itemBytes : (i+1)*itemBytes]
}

func (p *Probe) bytesPerSecond(r *reader, d time.Duration) float64 {
	items := itemsPerWorker * p.cores
	return float64(items*itemBytes) / p.time(d, items, func(int, int) { r.run(p.item(int(p.next.Add(1)))) })
}

func (p *Probe) opsPerSecond(r *peak, d time.Duration) float64 {
	items := itemsPerWorker * p.cores
	return float64(r.ops*itemSteps*items) / p.time(d, items, func(int, int) { r.run(itemSteps) })
}

// time is the seconds of a call of Do.
func (p *Probe) time(d time.Duration, items int, work func(worker, i int)) float64 {
	p.seat.Begin()
	defer p.seat.End()
	t := Time(p.cores, d, func() { p.seat.Do(items, work) })
	p.samples, p.disturbed = p.samples+t.Samples, p.disturbed+t.Disturbed
	return t.Seconds
}
