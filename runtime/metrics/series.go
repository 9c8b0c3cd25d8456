package metrics

import (
	"time"

	"tokenrouter/runtime/event"
)

// seriesSlots is how many slots of 250 ms the series remembers: 17 minutes.
const seriesSlots = 4096

// series counts tokens by slot and subserver.
type series struct {
	peers int
	from  int64 // running time of the first work
	slot  int64 // number of the newest slot
	ring  []int32
}

func newSeries(peers int) series {
	return series{peers: peers, ring: make([]int32, seriesSlots*peers)}
}

func (s *series) start(t int64) { s.from, s.slot = t, t/slotWidth }

func (s *series) at(slot int64) []int32 {
	i := int(slot%seriesSlots) * s.peers
	return s.ring[i : i+s.peers]
}

func (s *series) add(t int64, p event.Peer, n int64) {
	if to := t / slotWidth; to > s.slot {
		for i := max(s.slot+1, to-seriesSlots+1); i <= to; i++ {
			clear(s.at(i))
		}
		s.slot = to
	}
	s.at(s.slot)[p] += int32(n)
}

// Bin is one bar of a chart. The first and the last may be shorter than the
// others; a rate is Tokens over Dur.
type Bin struct {
	At     int64         // session time of its beginning, ns
	Dur    time.Duration // running time it covers
	Tokens int
	Large  int
	ByPeer []int
}

// Rate is the tokens per second of running time in the bin.
func (b *Bin) Rate() float64 { return perSecond(float64(b.Tokens), b.Dur) }

// Series gives up to bins bars of the given width, rounded up to a multiple of
// 250 ms; the last contains now. Bars begin at multiples of the width of running
// time, so that they do not change when time goes on. There are fewer while the
// session is younger than that, or than the 17 minutes that are remembered.
func (b *Board) Series(now int64, bins int, width time.Duration) []Bin {
	if !b.began || bins <= 0 {
		return nil
	}
	s := &b.series
	t := max(b.clock.at(sessionTime(now)), s.from)
	per := max((int64(width)+slotWidth-1)/slotWidth, 1)
	size := per * slotWidth
	last := max(t/slotWidth, s.slot) / per
	oldest := max(s.from/slotWidth, s.slot-seriesSlots+1)
	first := max(last-int64(bins)+1, oldest/per)
	n := int(last - first + 1)
	out := make([]Bin, n)
	by := make([]int, n*s.peers)
	for i := range out {
		bin := &out[i]
		start := (first + int64(i)) * size
		begin, end := max(start, s.from), min(start+size, max(t, s.slot*slotWidth))
		bin.At, bin.Dur = b.clock.session(begin), time.Duration(max(end-begin, 0))
		bin.ByPeer = by[i*s.peers : (i+1)*s.peers : (i+1)*s.peers]
		for j := max(start/slotWidth, oldest); j < start/slotWidth+per && j <= s.slot; j++ {
			for p, c := range s.at(j) {
				bin.ByPeer[p] += int(c)
			}
		}
		for p := range bin.ByPeer {
			bin.ByPeer[p] = max(bin.ByPeer[p], 0)
			bin.Tokens += bin.ByPeer[p]
			if b.large(event.Peer(p)) {
				bin.Large = bin.ByPeer[p]
			}
		}
	}
	return out
}

// perSecond is n over d, 0 if d is not positive.
func perSecond(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}
