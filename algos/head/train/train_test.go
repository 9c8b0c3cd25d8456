package train

import (
	"math"
	"reflect"
	"testing"

	"tokenrouter/algos/head"
	"tokenrouter/algos/head/dataset"
	"tokenrouter/runtime/rng"
)

// invented is rows whose label follows from the features, with noise: a head can
// learn it, none can know it.
func invented(hidden, logits, problems, each int) *dataset.Rows {
	r := &dataset.Rows{Meta: dataset.Meta{Hidden: hidden, TopK: logits, Embedded: true, Label: dataset.Outcome}}
	for p := range problems {
		for i := range each {
			key := rng.Key{Seed: 4, Req: uint64(p), Pos: i}
			draw := func(n int) float64 { return 2*key.Float64(n) - 1 }
			var sum float64
			for k := range hidden {
				x := 5 + 3*draw(k)
				r.States = append(r.States, float32(x))
				r.Embeddings = append(r.Embeddings, float32(draw(100+k)))
				sum += (x - 5) * float64(k%2*2-1)
			}
			for k := range logits {
				r.Logits = append(r.Logits, float32(10-float64(k)+0.1*draw(200+k)))
			}
			for k := range dataset.Signals {
				r.Measures = append(r.Measures, float32(draw(300+k)))
			}
			r.Problem, r.Pos = append(r.Problem, int32(p)), append(r.Pos, int32(i))
			r.Token, r.Other = append(r.Token, int32(i)), append(r.Other, int32(i+1))
			label := uint8(0)
			if sum+2*draw(400) > 3 {
				label = 1
			}
			r.Labels, r.Differ = append(r.Labels, label), append(r.Differ, 1)
		}
	}
	return r
}

func scoresOf(t *testing.T, h *head.Head, r *dataset.Rows, o *Options) (logits []float64, held []int) {
	t.Helper()
	var ws head.Workspace
	for i := range r.Len() {
		if !HeldOut(o.Seed, r.Number(i), o.HeldOut) {
			continue
		}
		in := r.Input(i, o.Spec.TopLogits())
		z, err := h.Logit(&ws, &in)
		if err != nil {
			t.Fatal(err)
		}
		logits, held = append(logits, z), append(held, i)
	}
	return logits, held
}

// A head learns what there is to learn.
func TestLearns(t *testing.T) {
	rows := invented(8, 4, 150, 20)
	for _, spec := range []head.Spec{
		{Kind: "linear", Features: []string{"hidden"}, Hidden: 8},
		{Kind: "mlp", Features: []string{"hidden", "signals"}, Hidden: 8, Widths: []int{16}},
		{Kind: "citer", Features: []string{"hidden"}, Hidden: 8},
		{Kind: "r2r", Features: []string{"hidden", "embedding", "logits:4"}, Hidden: 8, Widths: []int{16}, Expansion: 2},
	} {
		o := Defaults()
		o.Spec, o.Label, o.Batch, o.Epochs, o.Rate = spec, dataset.Outcome, 64, 15, 1e-2
		got, err := Run(t.Context(), rows, o)
		if err != nil {
			t.Fatal(err)
		}
		if best := got.Curve[got.Best-1]; best.AUC < 0.95 || best.HeldOut > got.Curve[0].HeldOut {
			t.Errorf("%s: %+v", spec.Kind, got.Curve)
		}
	}
}

// One seed, one head: bit for bit, and another seed gives another.
func TestReproducible(t *testing.T) {
	rows := invented(6, 4, 40, 8)
	for name, spec := range specs() {
		spec.Features = append([]string{}, spec.Features...)
		for i, f := range spec.Features {
			if f == "logits:5" {
				spec.Features[i] = "logits:4"
			}
		}
		o := Defaults()
		o.Spec, o.Label, o.Batch, o.Epochs = spec, dataset.Outcome, 32, 3
		var got [3]*Result
		for i := range got {
			o.Seed = uint64(7 + i/2)
			var err error
			if got[i], err = Run(t.Context(), rows, o); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("%s: two runs differ", name)
		}
		if reflect.DeepEqual(got[0].Tensors, got[2].Tensors) {
			t.Errorf("%s: another seed gives the same", name)
		}
	}
}

// Problems are held out as a whole; the loss that ends training is of those.
func TestHeldOut(t *testing.T) {
	rows := invented(6, 4, 300, 3)
	o := Defaults()
	o.Spec, o.Label, o.Epochs = head.Spec{Kind: "linear", Features: []string{"hidden"}, Hidden: 6}, dataset.Outcome, 2
	got, err := Run(t.Context(), rows, o)
	if err != nil {
		t.Fatal(err)
	}
	if got.HeldRows%3 != 0 || got.HeldRows < 3*35 || got.HeldRows > 3*85 || got.Rows+got.HeldRows != rows.Len() {
		t.Errorf("%d of %d rows are held out", got.HeldRows, rows.Len())
	}
	if want := float64(got.Rows-got.Positives) / float64(got.Positives); got.Weight != want {
		t.Errorf("weight %v, want %v", got.Weight, want)
	}
}

// Rows of another part of the same stream have the same problems held out: what one
// head was trained on is not what it is judged by.
func TestHeldOutBelongsToTheStream(t *testing.T) {
	all := invented(6, 4, 120, 1)
	part := invented(6, 4, 80, 1)
	part.First = 40
	for i := range part.Len() {
		if a, b := all.Number(40+i), part.Number(i); a != b || HeldOut(3, a, 0.2) != HeldOut(3, b, 0.2) {
			t.Fatalf("problem %d is %d in a file from 40 on", a, b)
		}
	}
	o := Defaults()
	o.Spec, o.Label, o.Epochs, o.Seed = head.Spec{Kind: "linear", Features: []string{"hidden"}, Hidden: 6}, dataset.Outcome, 1, 3
	got, err := Run(t.Context(), part, o)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for number := 40; number < 120; number++ {
		if HeldOut(3, number, 0.2) {
			want++
		}
	}
	if got.HeldRows != want {
		t.Errorf("%d rows were held out, by their numbers in the stream it is %d", got.HeldRows, want)
	}
}

// Without a better held-out loss training ends, and the best epoch is what is kept.
func TestPatience(t *testing.T) {
	rows := invented(6, 4, 30, 3)
	o := Defaults()
	o.Spec = head.Spec{Kind: "mlp", Features: []string{"hidden", "embedding", "logits:4"}, Hidden: 6, Widths: []int{64}}
	o.Label, o.Batch, o.Epochs, o.Rate, o.Wait, o.HeldOut = dataset.Outcome, 8, 400, 2e-2, 5, 0.4
	got, err := Run(t.Context(), rows, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Curve) != got.Best+5 {
		t.Errorf("%d epochs, the best is %d", len(got.Curve), got.Best)
	}
	least := math.Inf(1)
	for _, e := range got.Curve {
		least = min(least, e.HeldOut)
	}
	if least != got.Curve[got.Best-1].HeldOut {
		t.Errorf("the best epoch is not the best: %+v", got.Curve)
	}
}

// Co-LLM's row of the LM head has no bias, so nothing but the vector is written.
func TestNoBias(t *testing.T) {
	o := Defaults()
	o.Spec, o.Label, o.NoBias, o.Weight, o.Epochs = head.Spec{Kind: "linear", Features: []string{"hidden"}, Hidden: 6}, dataset.Mismatch, true, 8, 2
	rows := invented(6, 4, 40, 6)
	copy(rows.Differ, rows.Labels)
	got, err := Run(t.Context(), rows, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tensors) != 1 || len(got.Tensors["weight"]) != 6 || got.Weight != 8 {
		t.Errorf("%+v", got)
	}
}
