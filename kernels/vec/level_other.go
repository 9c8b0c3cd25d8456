//go:build !amd64 || purego

package vec

func add(x, y []float32) { addGo(x, y) }

func scaled(y, x []float32, s float32) { scaledGo(y, x, s) }

func scaledBy(y, x, w []float32, s float32) { scaledByGo(y, x, w, s) }

func blend(y, x []float32, a, b float32) { blendGo(y, x, a, b) }

func squares(x []float32) float32 { return squaresGo(x) }

func siluMulGroups(act, gu []float32) { siluMulGroupsGo(act, gu) }

func sigmoid(y, x []float32) { sigmoidGo(y, x) }

func rotate(a, b, cos, sin []float32) { rotateGo(a, b, cos, sin) }

func (g Page) putHalf(page []uint16, at int, key, value []float32) (done int) { return 0 }

func (g Page) scores(s []float32, q *[tile][]float32, heads int, pages [][]byte, at int) {
	for h := range heads {
		g.scoresGo(s[h*scoreRoom:], q[h], pages, at)
	}
}

func (g Page) addValues(o, w []float32, heads int, pages, _ [][]byte, at, from, to int) {
	for h := range heads {
		g.addValuesGo(o[h*g.wide:][:g.wide], w[h*scoreRoom:], pages, at, from, to)
	}
}

func softmax(s []float32) (peak, sum float32) { return softmaxGo(s) }

func measure(p *Part, logits []float32) { measureGo(p, logits) }

func above(x []float32, floor float32) int { return aboveGo(x, floor) }

func peakOf(x []float32) (peak float32, nan bool) { return peakOfGo(x) }

func weigh(sums, w, x []float32, peak, scale float32) { weighGo(sums, w, x, peak, scale) }

func heavier(sums, w []float32, floor float32) { heavierGo(sums, w, floor) }

func exceeding(over *[stride / 32]uint32, x []float32, floor float32) {
	exceedingGo(over[:(len(x)+31)/32], x, floor)
}
