package plan

import "math"

// sample is what was seen of a run, cut into batches of events: one row per
// batch, in columns.
//
// A run that sent more requests than expected to the large model shows a lower
// throughput by bad luck alone. How much of each batch is due to such drifts,
// whose mean is known to be 0, is found by least squares over the batches and
// taken out (control variates). The error that is left is a third to a sixteenth
// of the plain one, which would take 10 to 250 times the events.
type sample struct {
	models int         // whose columns are kept: all, or 0 where only the throughput is asked for
	cols   [][]float64 // colTicks, colTokens, 3 per model (steps, batches, busy ticks), then drifts
	basis  [][]float64 // orthonormal, of the centred drifts
	means  []float64   // of each basis vector before it was centred
}

const (
	colTicks = iota
	colTokens
	colFirst // of the models
)

// open makes room for that many batches.
func (p *sample) open(drifts, batches int) {
	p.cols = make([][]float64, colFirst+3*p.models+drifts)
	room := make([]float64, len(p.cols)*batches)
	for c := range p.cols {
		p.cols[c] = room[c*batches : c*batches : (c+1)*batches]
	}
}

// take runs x on for a tenth of events to warm up, then for at least events that
// it watches.
func (p *sample) take(x *run, events int) error {
	batches := min(max(int(math.Sqrt(float64(events))), 20), 500)
	p.open(4*(len(x.at)-1), batches)
	for range events / 10 {
		if err := x.step(); err != nil {
			return err
		}
	}
	row, last := make([]float64, len(p.cols)), make([]float64, len(p.cols))
	p.read(x, last)
	for range batches {
		for range (events + batches - 1) / batches {
			if err := x.step(); err != nil {
				return err
			}
		}
		p.read(x, row)
		p.add(row, last)
		row, last = last, row
	}
	p.orthogonalise(p.cols[colFirst+3*p.models:], min(batches/8, x.rarest()/20))
	return nil
}

// read fills a row with the totals of the run so far.
func (p *sample) read(x *run, row []float64) {
	row[colTicks], row[colTokens] = float64(x.clock), x.tokens
	for m := range p.models {
		x.at[m].read(row[colFirst+3*m:])
	}
	others := len(x.at) - 1
	for m := range others {
		d, c := &x.at[m+1].drift, row[colFirst+3*p.models+m:]
		c[0], c[others], c[2*others], c[3*others] = d.plain, d.left, d.waiting, d.square
	}
}

func (p *sample) add(row, last []float64) {
	for c := range p.cols {
		p.cols[c] = append(p.cols[c], row[c]-last[c])
	}
}

// result is the sample as a Result, with ticks of that many ms.
func (p *sample) result(tick float64) Result {
	perSecond := 1000 / tick
	rate := func(col int) float64 {
		v, _ := p.rate(col)
		return v
	}
	res := Result{Classes: 1}
	res.Throughput, res.Error = p.rate(colTokens)
	res.Throughput, res.Error = res.Throughput*perSecond, res.Error*perSecond
	for m := range p.models {
		steps, batches := rate(colFirst+3*m), rate(colFirst+3*m+1)
		res.Steps = append(res.Steps, steps*perSecond)
		res.Busy = append(res.Busy, rate(colFirst+3*m+2))
		res.MeanBatch = append(res.MeanBatch, 0)
		if batches > 0 {
			res.MeanBatch[m] = steps / batches
		}
	}
	return res
}

// rarest is how often the model ran that ran least, but for those that never did
// and the first, whose drift nobody needs.
func (x *run) rarest() int {
	least := math.MaxInt
	for m := range x.at[1:] {
		if a := &x.at[m+1]; a.batches > 0 {
			least = min(least, a.batches)
		}
	}
	return least
}

// orthogonalise builds the basis from the drifts, plain ones first, up to most.
//
// A drift is trusted only where the sample shows what it is made of: its mean of
// 0 may come about by rare jumps, and if none was seen, what is left looks smooth,
// fits anything and is far from 0. So there must be twenty batches of every model
// for each, and beyond the plain ones a drift must bring something new and have a
// mean within four standard errors of 0.
func (p *sample) orthogonalise(drifts [][]float64, most int) {
	n := len(p.cols[colTicks])
	most = min(most, len(drifts))
	plain := len(drifts) / 4
	room := make([]float64, n*most)
	for c, col := range drifts {
		if len(p.basis) == most {
			return
		}
		mean := 0.0
		for _, v := range col {
			mean += v / float64(n)
		}
		e := room[n*len(p.basis) : n*(len(p.basis)+1)]
		for i, v := range col {
			e[i] = v - mean
		}
		size := dot(e, e)
		for k, old := range p.basis {
			f := dot(e, old)
			axpy(e, -f, old)
			mean -= f * p.means[k]
		}
		left := dot(e, e)
		if left <= 0.03*size || (c >= plain && mean*mean*float64(n*n) > 16*left) {
			continue
		}
		f := 1 / math.Sqrt(left)
		for i := range e {
			e[i] *= f
		}
		p.basis, p.means = append(p.basis, e), append(p.means, mean*f)
	}
}

// rate is a column per tick, freed of the drifts, and its standard error.
func (p *sample) rate(col int) (value, se float64) {
	n := len(p.cols[col])
	sum, ticks := 0.0, 0.0
	for i, v := range p.cols[col] {
		sum, ticks = sum+v, ticks+p.cols[colTicks][i]
	}
	value = sum / ticks
	y := make([]float64, n)
	for i, v := range p.cols[col] {
		y[i] = v - value*p.cols[colTicks][i]
	}
	luck := 0.0 // mean per batch
	for k, e := range p.basis {
		f := dot(y, e)
		axpy(y, -f, e)
		luck += f * p.means[k]
	}
	// What is under way at the edge of a batch falls into the next: batches are
	// joined to a few long ones, so that edges do not pass for noise.
	size := max(1, n/20)
	spread := 0.0
	for i := 0; i < n; i += size {
		part := 0.0
		for _, v := range y[i:min(i+size, n)] {
			part += v
		}
		spread += part * part
	}
	spread *= float64(n) / float64(n-min(size*(1+len(p.basis)), n/2))
	return value - luck*float64(n)/ticks, math.Sqrt(spread) / ticks
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func axpy(y []float64, f float64, x []float64) {
	for i, v := range x {
		y[i] += f * v
	}
}
