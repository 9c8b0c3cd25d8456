package train

import "math"

// normEps is that of package head.
const normEps = 1e-5

// layerNorm is (x - mean) / sqrt(var + eps) * w + b over the values of a row (Ba et
// al. 2016).
type layerNorm struct {
	width int
	w, b  *param

	normed, y, dx []float32
	scale         []float64 // 1 / sqrt(var + eps) of each row
}

func (l *layerNorm) params() []*param { return []*param{l.w, l.b} }

func (l *layerNorm) forward(x []float32, n int, _ bool) []float32 {
	l.normed, l.y, l.scale = sized(l.normed, n*l.width), sized(l.y, n*l.width), append(l.scale[:0], make([]float64, n)...)
	for r := range n {
		row := x[r*l.width:][:l.width]
		mean, variance := moments(row)
		l.scale[r] = 1 / math.Sqrt(variance+normEps)
		for i, v := range row {
			h := (float64(v) - mean) * l.scale[r]
			l.normed[r*l.width+i] = float32(h)
			l.y[r*l.width+i] = float32(h*float64(l.w.value[i]) + float64(l.b.value[i]))
		}
	}
	return l.y
}

func (l *layerNorm) backward(dy []float32, n int) []float32 {
	l.dx = sized(l.dx, len(dy))
	k := float64(l.width)
	for r := range n {
		d, h := dy[r*l.width:][:l.width], l.normed[r*l.width:][:l.width]
		var sum, dot float64
		for i, v := range d {
			g := float64(v) * float64(l.w.value[i])
			sum += g
			dot += g * float64(h[i])
			l.w.grad[i] += v * h[i]
			l.b.grad[i] += v
		}
		for i, v := range d {
			g := float64(v) * float64(l.w.value[i])
			l.dx[r*l.width+i] = float32(l.scale[r] * (g - sum/k - float64(h[i])*dot/k))
		}
	}
	return l.dx
}

// moments are the mean and the variance of values.
func moments(x []float32) (mean, variance float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		variance += d * d
	}
	return mean, variance / float64(len(x))
}

// batchNorm is (x - mean) / sqrt(var + eps) * w + b for each value of a row, over
// the rows of a batch in training and with running statistics else (Ioffe and
// Szegedy 2015). Running statistics move by a tenth, to the unbiased variance, as
// those of PyTorch.
type batchNorm struct {
	width             int
	w, b              *param
	runMean, runVar   []float32
	normed, y, dx     []float32
	mean, scale, a, c []float64
	measured          bool // mean and scale are those of the batch
}

const batchMomentum = 0.1

func (l *batchNorm) params() []*param { return []*param{l.w, l.b} }

func (l *batchNorm) forward(x []float32, n int, training bool) []float32 {
	l.normed, l.y = sized(l.normed, n*l.width), sized(l.y, n*l.width)
	l.mean, l.scale = append(l.mean[:0], make([]float64, l.width)...), append(l.scale[:0], make([]float64, l.width)...)
	if l.measured = training && n > 1; l.measured {
		l.measure(x, n)
	} else {
		for i := range l.mean {
			l.mean[i], l.scale[i] = float64(l.runMean[i]), 1/math.Sqrt(float64(l.runVar[i])+normEps)
		}
	}
	for r := range n {
		for i, v := range x[r*l.width:][:l.width] {
			h := (float64(v) - l.mean[i]) * l.scale[i]
			l.normed[r*l.width+i] = float32(h)
			l.y[r*l.width+i] = float32(h*float64(l.w.value[i]) + float64(l.b.value[i]))
		}
	}
	return l.y
}

// measure takes the statistics of a batch.
func (l *batchNorm) measure(x []float32, n int) {
	for r := range n {
		for i, v := range x[r*l.width:][:l.width] {
			l.mean[i] += float64(v)
		}
	}
	for i := range l.mean {
		l.mean[i] /= float64(n)
	}
	for r := range n {
		for i, v := range x[r*l.width:][:l.width] {
			d := float64(v) - l.mean[i]
			l.scale[i] += d * d
		}
	}
	for i, sum := range l.scale {
		l.runMean[i] += batchMomentum * (float32(l.mean[i]) - l.runMean[i])
		l.runVar[i] += batchMomentum * (float32(sum/float64(n-1)) - l.runVar[i])
		l.scale[i] = 1 / math.Sqrt(sum/float64(n)+normEps)
	}
}

// backward is of a batch in training: mean and variance depend on every row, but for
// a batch of one, which has none of its own.
func (l *batchNorm) backward(dy []float32, n int) []float32 {
	l.dx = sized(l.dx, len(dy))
	l.a, l.c = append(l.a[:0], make([]float64, l.width)...), append(l.c[:0], make([]float64, l.width)...)
	for r := range n {
		for i, v := range dy[r*l.width:][:l.width] {
			l.a[i] += float64(v)
			l.c[i] += float64(v) * float64(l.normed[r*l.width+i])
		}
	}
	for i := range l.a {
		l.w.grad[i] += float32(l.c[i])
		l.b.grad[i] += float32(l.a[i])
	}
	for r := range n {
		for i, v := range dy[r*l.width:][:l.width] {
			at := r*l.width + i
			g := float64(v)
			if l.measured {
				g -= l.a[i]/float64(n) + float64(l.normed[at])*l.c[i]/float64(n)
			}
			l.dx[at] = float32(float64(l.w.value[i]) * l.scale[i] * g)
		}
	}
	return l.dx
}
