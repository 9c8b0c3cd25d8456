package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/eval"
	"tokenrouter/runtime/rng"
)

// Options say what is trained, and how.
type Options struct {
	Spec    head.Spec
	Label   dataset.Label
	Small   bool    // a high score speaks for the small model (CITER): labels are turned round
	NoBias  bool    // of a linear head: Co-LLM's row of the LM head
	Weight  float64 // of positive rows in the loss; 0: negatives / positives * Factor
	Factor  float64
	Rate    float64 // falls linearly to a tenth over the epochs
	Decay   float64 // decoupled weight decay
	Beta1   float64
	Beta2   float64
	Batch   int
	Epochs  int
	Wait    int     // epochs without a better loss on the held-out problems, then it ends
	HeldOut float64 // share of the problems
	Seed    uint64
	// Progress is told of each epoch.
	Progress func(Epoch)
}

// Defaults are options that fit a small head.
func Defaults() Options {
	return Options{
		Factor: 1, Rate: 2e-3, Decay: 1e-2, Beta1: 0.9, Beta2: 0.999,
		Batch: 1024, Epochs: 40, Wait: 8, HeldOut: 0.2, Seed: 1,
	}
}

// Epoch is how far training has come.
type Epoch struct {
	N       int     `json:"epoch"` // from 1
	Loss    float64 `json:"loss"`  // mean over the rows that are trained on, as they were met
	HeldOut float64 `json:"held_out"`
	AUC     float64 `json:"auc"` // of ROC, on the held-out problems
}

// Result is a trained head.
type Result struct {
	Tensors map[string][]float32 // of the best epoch, for head.New
	Curve   []Epoch
	Best    int     // its epoch
	Weight  float64 // of positive rows

	Rows, Positives         int // that were trained on
	HeldRows, HeldPositives int
}

// Check says what is wrong with options.
func (o *Options) Check() error {
	for _, f := range []struct {
		name       string
		x          float64
		above, max float64
	}{
		{"positive weight", o.Weight, -1e-300, 1e6},
		{"factor", o.Factor, 0, 1e6},
		{"learning rate", o.Rate, 0, 10},
		{"weight decay", o.Decay, -1e-300, 10},
		{"beta1", o.Beta1, -1e-300, 0.9999999},
		{"beta2", o.Beta2, -1e-300, 0.9999999},
		{"held-out share", o.HeldOut, 0, 0.9},
		{"batch", float64(o.Batch), 1, 1 << 20},
		{"number of epochs", float64(o.Epochs), 0, 1 << 20},
		{"patience", float64(o.Wait), 0, 1 << 20},
	} {
		if !(f.x > f.above && f.x <= f.max) {
			return fmt.Errorf("the %s %v is outside of what lies above %.4g, up to %v", f.name, f.x, f.above, f.max)
		}
	}
	return o.Spec.Check()
}

// Fits says why a head of a spec cannot be trained on rows, nil if it can.
func Fits(s *head.Spec, r *dataset.Rows) error {
	switch {
	case s.Hidden != r.Hidden:
		return fmt.Errorf("the head reads hidden states of %d values, the rows have %d", s.Hidden, r.Hidden)
	case s.Has("embedding") && !r.Embedded:
		return errors.New("the head reads embeddings, and the rows have none; collect with --embedding")
	case s.TopLogits() > r.TopK:
		return fmt.Errorf("the head reads %d logits, the rows have %d; collect with --top-logits %[1]d", s.TopLogits(), r.TopK)
	}
	return nil
}

// HeldOut says whether a problem is held out under a seed, by its number in the
// stream of its problems: other rows of the same stream have it held out as well.
func HeldOut(seed uint64, problem int, share float64) bool {
	return rng.Key{Seed: seed, Req: uint64(problem), Purpose: rng.Split}.Float64(0) < share
}

// Run trains a head on rows. Rows of a problem are all trained on or all held out.
func Run(ctx context.Context, r *dataset.Rows, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := Fits(&o.Spec, r); err != nil {
		return nil, err
	}
	labels, err := r.Label(o.Label)
	if err != nil {
		return nil, err
	}
	if o.Small {
		labels = turned(labels)
	}
	t := &trainer{r: r, o: &o, labels: labels}
	for i := range r.Len() {
		if HeldOut(o.Seed, r.Number(i), o.HeldOut) {
			t.held = append(t.held, int32(i))
		} else {
			t.train = append(t.train, int32(i))
		}
	}
	out := &Result{Rows: len(t.train), HeldRows: len(t.held), Positives: t.positives(t.train), HeldPositives: t.positives(t.held)}
	if out.Positives == 0 || out.Positives == out.Rows || out.HeldPositives == 0 || out.HeldPositives == out.HeldRows {
		return nil, fmt.Errorf("of %d rows to train on %d are labelled 1, of %d held-out ones %d: both need rows of both labels; collect from more problems",
			out.Rows, out.Positives, out.HeldRows, out.HeldPositives)
	}
	if out.Weight = o.Weight; out.Weight == 0 {
		out.Weight = float64(out.Rows-out.Positives) / float64(out.Positives) * o.Factor
	}
	t.weight = out.Weight
	if t.net, err = newNetwork(o.Spec, !o.NoBias, o.Seed); err != nil {
		return nil, err
	}
	t.standard = newStandard(r, &o.Spec, t.train, !(o.Spec.Kind == "linear" && o.NoBias))
	if err := t.epochs(ctx, out); err != nil {
		return nil, err
	}
	t.standard.foldInto(&o.Spec, out.Tensors)
	return out, nil
}

func turned(labels []uint8) []uint8 {
	out := make([]uint8, len(labels))
	for i, l := range labels {
		out[i] = 1 - l
	}
	return out
}

type trainer struct {
	r           *dataset.Rows
	o           *Options
	labels      []uint8
	train, held []int32
	weight      float64
	net         *network
	standard    *standard
	step        int

	x, dy []float32
}

func (t *trainer) positives(rows []int32) (n int) {
	for _, i := range rows {
		n += int(t.labels[i])
	}
	return n
}

// epochs trains until the loss on the held-out problems has not fallen for a while.
func (t *trainer) epochs(ctx context.Context, out *Result) error {
	best := math.Inf(1)
	order := append([]int32{}, t.train...)
	for n := 1; n <= t.o.Epochs && n-out.Best <= t.o.Wait; n++ {
		deal(order, t.o.Seed, n)
		rate := t.o.Rate * (1 - 0.9*float64(n-1)/float64(max(t.o.Epochs-1, 1)))
		var sum float64
		for from := 0; from < len(order); from += t.o.Batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			sum += t.batch(order[from:min(from+t.o.Batch, len(order))], rate)
		}
		e := Epoch{N: n, Loss: sum / float64(len(order))}
		e.HeldOut, e.AUC = t.judge(t.held)
		if math.IsNaN(e.Loss) || math.IsNaN(e.HeldOut) {
			return fmt.Errorf("the loss is no number after epoch %d: train with a lower rate than %v", n, t.o.Rate)
		}
		out.Curve = append(out.Curve, e)
		if e.HeldOut < best {
			best, out.Best, out.Tensors = e.HeldOut, n, t.net.tensors()
		}
		if t.o.Progress != nil {
			t.o.Progress(e)
		}
	}
	return nil
}

// deal puts rows into the order of an epoch (Fisher and Yates).
func deal(order []int32, seed uint64, epoch int) {
	key := rng.Key{Seed: seed, Req: uint64(epoch), Purpose: rng.Deal}
	for i := len(order) - 1; i > 0; i-- {
		j := int(key.Float64(i) * float64(i+1))
		order[i], order[j] = order[j], order[i]
	}
}

// gather standardises the features of rows.
func (t *trainer) gather(rows []int32) []float32 {
	t.x = t.x[:0]
	k := t.o.Spec.Inputs()
	for _, i := range rows {
		n := len(t.x)
		t.x = features(t.x, t.r, &t.o.Spec, int(i))
		t.standard.apply(t.x[n : n+k])
	}
	return t.x
}

// batch is one step; it returns the sum of the losses.
func (t *trainer) batch(rows []int32, rate float64) (sum float64) {
	logits := t.net.chain.forward(t.gather(rows), len(rows), true)
	t.dy = sized(t.dy, len(rows))
	for k, i := range rows {
		loss, slope := bce(float64(logits[k]), t.labels[i], t.weight)
		sum += loss
		t.dy[k] = float32(slope / float64(len(rows)))
	}
	t.net.chain.backward(t.dy, len(rows))
	t.step++
	t.net.adamW(t.step, rate, t.o)
	return sum
}

// judgeRows is how many rows are judged at a time.
const judgeRows = 4096

// judge gives the mean loss on rows and the area under their ROC.
func (t *trainer) judge(rows []int32) (loss, auc float64) {
	scores, labels := make([]float64, 0, len(rows)), make([]uint8, 0, len(rows))
	for from := 0; from < len(rows); from += judgeRows {
		part := rows[from:min(from+judgeRows, len(rows))]
		for k, z := range t.net.chain.forward(t.gather(part), len(part), false)[:len(part)] {
			l, _ := bce(float64(z), t.labels[part[k]], t.weight)
			loss += l
			scores, labels = append(scores, float64(z)), append(labels, t.labels[part[k]])
		}
	}
	return loss / float64(max(len(rows), 1)), eval.AUC(scores, labels)
}

// bce is the weighted binary cross-entropy of a logit, with its slope.
func bce(z float64, label uint8, weight float64) (loss, slope float64) {
	if label == 1 {
		return weight * softplus(-z), -weight * sigmoid(-z)
	}
	return softplus(z), sigmoid(z)
}

// softplus is ln(1 + e^z).
func softplus(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }

func sigmoid(z float64) float64 {
	if z < 0 {
		e := math.Exp(z)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-z))
}
