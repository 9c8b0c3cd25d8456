//go:build !purego

package vec

import (
	"math"
	"unsafe"

	"tokenrouter/kernels/cpu"
)

//go:generate go -C ../gen run ./vec -out ../vec/kernels_amd64.s -stubs ../vec/kernels_amd64.go -pkg vec

// eights is how many of n values assembly takes, in groups of eight; the Go twin
// does what is left, or all.
func eights(n int) int {
	if cpu.Current() < cpu.AVX2 {
		return 0
	}
	return n &^ 7
}

func add(x, y []float32) {
	n := eights(len(x))
	if n > 0 {
		addAVX2(&x[0], &y[0], n)
	}
	addGo(x[n:], y[n:])
}

func scaled(y, x []float32, s float32) {
	n := eights(len(x))
	if n > 0 {
		scaledAVX2(&y[0], &x[0], n, s)
	}
	scaledGo(y[n:], x[n:], s)
}

func scaledBy(y, x, w []float32, s float32) {
	n := eights(len(x))
	if n > 0 {
		scaledByAVX2(&y[0], &x[0], &w[0], n, s)
	}
	scaledByGo(y[n:], x[n:], w[n:], s)
}

func blend(y, x []float32, a, b float32) {
	n := eights(len(x))
	if n > 0 {
		blendAVX2(&y[0], &x[0], n, a, b)
	}
	blendGo(y[n:], x[n:], a, b)
}

func squares(x []float32) float32 {
	if len(x) == 0 || cpu.Current() < cpu.AVX2 {
		return squaresGo(x)
	}
	return squaresAVX2(&x[0], len(x))
}

// sixteens is how many of n values AVX-512 takes.
func sixteens(n int) int {
	if cpu.Current() < cpu.AVX512 {
		return 0
	}
	return n &^ 15
}

func siluMulGroups(act, gu []float32) {
	m, n := sixteens(len(act)), eights(len(act))
	if m > 0 {
		siluMulGroupsAVX512(&act[0], &gu[0], m)
	}
	if n > m {
		siluMulGroupsAVX2(&act[m], &gu[2*m], n-m)
	}
	siluMulGroupsGo(act[n:], gu[2*n:])
}

func sigmoid(y, x []float32) {
	m, n := sixteens(len(x)), eights(len(x))
	if m > 0 {
		sigmoidAVX512(&y[0], &x[0], m)
	}
	if n > m {
		sigmoidAVX2(&y[m], &x[m], n-m)
	}
	sigmoidGo(y[n:], x[n:])
}

func rotate(a, b, cos, sin []float32) {
	n := eights(len(a))
	if n > 0 {
		rotateAVX2(&a[0], &b[0], &cos[0], &sin[0], n)
	}
	rotateGo(a[n:], b[n:], cos[n:], sin[n:])
}

func (g Page) putHalf(page []uint16, at int, key, value []float32) (done int) {
	n := g.dim &^ 15
	if n == 0 || cpu.Current() < cpu.AVX2 {
		return 0
	}
	putHalfAVX2(&page[at], &page[g.dim*PageLen+at*16], &key[0], &value[0], n)
	return n
}

func (g Page) scores(s []float32, q *[tile][]float32, heads int, pages [][]byte, at int) {
	if cpu.Current() < cpu.AVX2 {
		for h := range heads {
			g.scoresGo(s[h*scoreRoom:], q[h], pages, at)
		}
		return
	}
	var p [tile]*float32
	for h := range heads {
		p[h] = &q[h][0]
	}
	_ = s[(heads-1)*scoreRoom+(len(pages)+3)&^3*PageLen-1]
	switch half := g.f == F16; { // called by name, so that p need not be on the heap
	case half && heads == 1:
		scoresF16H1AVX2(&s[0], &p, &pages[0], at, g.dim, len(pages))
	case half && heads == 2:
		scoresF16H2AVX2(&s[0], &p, &pages[0], at, g.dim, len(pages))
	case half && heads == 4:
		scoresF16H4AVX2(&s[0], &p, &pages[0], at, g.dim, len(pages))
	case heads == 1:
		scoresF32H1AVX2(&s[0], &p, &pages[0], at, g.dim, len(pages))
	case heads == 2:
		scoresF32H2AVX2(&s[0], &p, &pages[0], at, g.dim, len(pages))
	default:
		scoresF32H4AVX2(&s[0], &p, &pages[0], at, g.dim, len(pages))
	}
}

func (g Page) addValues(o, w []float32, heads int, pages, later [][]byte, at, from, to int) {
	if to == from {
		return
	}
	if cpu.Current() < cpu.AVX2 {
		for h := range heads {
			g.addValuesGo(o[h*g.wide:][:g.wide], w[h*scoreRoom:], pages, at, from, to)
		}
		return
	}
	_, _ = o[heads*g.wide-1], w[(heads-1)*scoreRoom+to-1]
	pages, w = pages[from/PageLen:(to+PageLen-1)/PageLen], w[from:]
	// As many groups of 16 values at a time as have eight chains, then one.
	group := tile / heads
	times := g.wide / 16 / group
	g.addGroups(o, w, heads, group, times, pages, later, at, from%PageLen, to-from)
	if done := 16 * group * times; done < g.wide {
		g.addGroups(o[done:], w, heads, 1, (g.wide-done)/16, pages, later, at+done*PageLen*g.size(), from%PageLen, to-from)
	}
}

// addGroups adds the values of n positions to group groups of 16 values, times over.
func (g Page) addGroups(o, w []float32, heads, group, times int, pages, later [][]byte, at, first, n int) {
	if times == 0 {
		return
	}
	apart, keys, next := 4*g.wide, g.values(), unsafe.SliceData(later)
	at += keys
	switch half := g.f == F16; {
	case half && heads == 1 && group == 4:
		valuesF16H1G4AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case half && heads == 1 && group == 1:
		valuesF16H1G1AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case half && heads == 2 && group == 2:
		valuesF16H2G2AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case half && heads == 2 && group == 1:
		valuesF16H2G1AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case half && heads == 4:
		valuesF16H4G1AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case heads == 1 && group == 4:
		valuesF32H1G4AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case heads == 1 && group == 1:
		valuesF32H1G1AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case heads == 2 && group == 2:
		valuesF32H2G2AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	case heads == 2 && group == 1:
		valuesF32H2G1AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	default:
		valuesF32H4G1AVX2(&o[0], &w[0], &pages[0], at, first, n, apart, times, next, len(later), keys)
	}
}

func softmax(s []float32) (peak, sum float32) {
	switch cpu.Current() {
	case cpu.Go:
		return softmaxGo(s)
	case cpu.AVX2:
		return softmaxAVX2(&s[0], len(s))
	}
	return softmaxAVX512(&s[0], len(s))
}

func measure(p *Part, logits []float32) {
	var below int32
	switch l := cpu.Current(); {
	case l == cpu.Go:
		measureGo(p, logits)
		return
	case l == cpu.AVX2:
		p.max, p.rest, p.weighted, below = measureAVX2(&logits[0], len(logits))
	case len(logits) == Segment:
		p.max, p.rest, p.weighted, below = measureWholeAVX512(&logits[0])
	default:
		p.max, p.rest, p.weighted, below = measureAVX512(&logits[0], len(logits))
	}
	p.ties = int32(len(logits)) - below
}

func above(x []float32, floor float32) int {
	n := 0
	if cpu.Current() >= cpu.AVX2 {
		if n = len(x) &^ 31; n > 0 {
			if i := aboveAVX2(&x[0], n, floor); i < n {
				return i
			}
		}
	}
	return n + aboveGo(x[n:], floor)
}

func peakOf(x []float32) (peak float32, nan bool) {
	if n := len(x) &^ 31; n > 0 && cpu.Current() >= cpu.AVX2 {
		m, bad := peakAVX2(&x[0], n)
		peak, nan = peakOfGo(x[n:])
		return max(peak, m), nan || bad != 0
	}
	return peakOfGo(x)
}

func weigh(sums, w, x []float32, peak, scale float32) {
	if cpu.Current() < cpu.AVX2 {
		weighGo(sums, w, x, peak, scale)
		return
	}
	n := len(x) / Segment
	if n > 0 {
		segments(sums[:n], w, x, peak, scale)
	}
	if len(x) > n*Segment { // as if logits of -Inf followed
		var padded, stored [Segment]float32
		for i := copy(padded[:], x[n*Segment:]); i < Segment; i++ {
			padded[i] = float32(math.Inf(-1))
		}
		segments(sums[n:n+1], stored[:], padded[:], peak, scale)
		if w != nil {
			copy(w[n*Segment:], stored[:])
		}
	}
}

// segments is weigh for whole segments.
func segments(sums, w, x []float32, peak, scale float32) {
	wide := cpu.Current() > cpu.AVX2
	switch {
	case w == nil && wide:
		weighAVX512(&sums[0], &x[0], len(sums), peak, scale)
	case w == nil:
		weighAVX2(&sums[0], &x[0], len(sums), peak, scale)
	case wide:
		weighStoreAVX512(&sums[0], &w[0], &x[0], len(sums), peak, scale)
	default:
		weighStoreAVX2(&sums[0], &w[0], &x[0], len(sums), peak, scale)
	}
}

func heavier(sums, w []float32, floor float32) {
	if cpu.Current() < cpu.AVX2 {
		heavierGo(sums, w, floor)
		return
	}
	_ = w[len(sums)*Segment-1]
	heavierAVX2(&sums[0], &w[0], len(sums), floor)
}

func exceeding(over *[stride / 32]uint32, x []float32, floor float32) {
	n := 0
	if cpu.Current() >= cpu.AVX2 {
		if n = len(x) / 32; n > 0 {
			exceedingAVX2(&over[0], &x[0], n, floor)
		}
	}
	exceedingGo(over[n:(len(x)+31)/32], x[32*n:], floor)
}
