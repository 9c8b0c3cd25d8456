package train

import (
	"fmt"
	"math"
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/runtime/rng"
)

// specs has a small head of every kind and activation.
func specs() map[string]head.Spec {
	all := []string{"hidden", "embedding", "logits:5"}
	return map[string]head.Spec{
		"linear":     {Kind: "linear", Features: []string{"hidden", "signals"}, Hidden: 6},
		"mlp":        {Kind: "mlp", Features: append(all, "signals"), Hidden: 6, Widths: []int{7, 5}},
		"mlp gelu":   {Kind: "mlp", Features: all, Hidden: 6, Widths: []int{7, 5}, Activation: "gelu"},
		"citer":      {Kind: "citer", Features: []string{"hidden"}, Hidden: 6},
		"r2r":        {Kind: "r2r", Features: all, Hidden: 6, Widths: []int{8, 8}, Expansion: 2},
		"r2r widths": {Kind: "r2r", Features: all, Hidden: 6, Widths: []int{8, 5}, Expansion: 2},
	}
}

// draws are n numbers between -1 and 1.
func draws(n int, seed uint64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(2*rng.Key{Seed: seed}.Float64(i) - 1)
	}
	return out
}

// The gradients of every kind of head, by its weights and by its inputs, are those
// of central differences, also of a batch of one row.
func TestGradients(t *testing.T) {
	for _, rows := range []int{9, 1} {
		gradients(t, rows)
	}
}

func gradients(t *testing.T, rows int) {
	t.Helper()
	for name, spec := range specs() {
		name = fmt.Sprintf("%s, %d rows", name, rows)
		n, err := newNetwork(spec, true, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range n.all { // norms away from 1 and 0
			for k, d := range draws(len(p.value), uint64(i)) {
				p.value[k] += 0.3 * d
			}
		}
		x, along := draws(rows*spec.Inputs(), 8), draws(rows, 9)
		loss := func() (sum float64) {
			for i, z := range n.chain.forward(x, rows, true)[:rows] {
				sum += float64(z) * float64(along[i])
			}
			return sum
		}
		loss()
		dx := append([]float32{}, n.chain.backward(along, rows)...)
		for _, p := range n.all {
			compare(t, name+", "+p.name, loss, p.value, p.grad)
		}
		compare(t, name+", inputs", loss, x, dx)
	}
}

// compare holds a gradient against central differences: as vectors, since single
// precision leaves little of a small component.
func compare(t *testing.T, what string, loss func() float64, at, grad []float32) {
	t.Helper()
	const h = 2e-3
	var off, size float64
	for i, g := range grad {
		v := at[i]
		at[i] = v + h
		up, above := loss(), at[i]
		at[i] = v - h
		down, below := loss(), at[i]
		at[i] = v
		d := (up - down) / float64(above-below)
		off += (float64(g) - d) * (float64(g) - d)
		size += d * d
	}
	// A bias before BatchNorm has no effect: both are rounding.
	if math.Sqrt(off) > 0.01*math.Sqrt(size)+2e-4 {
		t.Errorf("%s: the gradient is off by %.3g of %.3g", what, math.Sqrt(off), math.Sqrt(size))
	}
	if len(grad) == 0 {
		t.Errorf("%s has no gradient", what)
	}
}

// The loss and its slope, by hand and by differences.
func TestLoss(t *testing.T) {
	if l, s := bce(0, 1, 3); math.Abs(l-3*math.Ln2) > 1e-15 || s != -1.5 {
		t.Errorf("loss %v, slope %v at 0", l, s)
	}
	for _, z := range []float64{-800, -30, -2, 0.1, 5, 700} {
		for label := range uint8(2) {
			const h = 1e-6
			up, _ := bce(z+h, label, 2.5)
			down, _ := bce(z-h, label, 2.5)
			l, s := bce(z, label, 2.5)
			if d := (up - down) / (2 * h); math.Abs(d-s) > 1e-6 || math.IsNaN(l) || math.IsInf(l, 0) {
				t.Errorf("label %d at %v: loss %v, slope %v, by differences %v", label, z, l, s, d)
			}
		}
	}
}

// One step of AdamW by hand: the first step moves every weight by the rate against
// the sign of its gradient, after it was drawn to 0 by rate times decay.
func TestAdamW(t *testing.T) {
	o := Defaults()
	o.Decay = 0.5
	w, b := newParam("w", 2, true), newParam("b", 1, false)
	copy(w.value, []float32{1, -2})
	copy(w.grad, []float32{4, -0.25})
	b.value[0], b.grad[0] = 3, 2
	n := &network{all: []*param{w, b}}
	n.adamW(1, 0.1, &o)
	for i, c := range []struct{ got, want float32 }{{w.value[0], 0.95 - 0.1}, {w.value[1], -1.9 + 0.1}, {b.value[0], 2.9}, {w.grad[0], 0}} {
		if math.Abs(float64(c.got-c.want)) > 1e-6 {
			t.Errorf("%d: %v, want %v", i, c.got, c.want)
		}
	}
	n.adamW(2, 0.1, &o) // without a gradient it goes on by what it remembers
	m := 0.9 * 0.1 * 2 / (1 - 0.81)
	v := 0.999 * 0.001 * 4 / (1 - 0.999*0.999)
	if want := 2.9 - 0.1*m/math.Sqrt(v); math.Abs(float64(b.value[0])-want) > 1e-5 {
		t.Errorf("second step: %v, want %v", b.value[0], want)
	}
}

// What is trained is what package head computes: logits of the tensors agree for
// every kind, running statistics and folded standardisation included.
func TestNetworksAreHeads(t *testing.T) {
	for name, spec := range specs() {
		t.Run(fmt.Sprint(name), func(t *testing.T) {
			rows := invented(spec.Hidden, 5, 40, 6)
			o := Defaults()
			o.Spec, o.Label, o.Epochs, o.Batch, o.HeldOut = spec, "outcome", 3, 16, 0.3
			got, err := Run(t.Context(), rows, o)
			if err != nil {
				t.Fatal(err)
			}
			h, err := head.New(head.Manifest{Name: "x", Spec: spec, Meaning: "large"}, got.Tensors)
			if err != nil {
				t.Fatal(err)
			}
			scores, held := scoresOf(t, h, rows, &o)
			tr := &trainer{r: rows, o: &o, weight: got.Weight}
			var loss float64
			for k, i := range held {
				l, _ := bce(scores[k], rows.Labels[i], tr.weight)
				loss += l
			}
			// Training ends with this loss on the held-out rows.
			want := got.Curve[got.Best-1].HeldOut
			if loss /= float64(len(held)); math.Abs(loss-want) > 1e-4*(1+want) {
				t.Errorf("held-out loss of the head %v, in training %v", loss, want)
			}
		})
	}
}
