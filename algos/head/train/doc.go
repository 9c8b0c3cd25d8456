// Package train fits heads to labelled rows: weighted binary cross-entropy, AdamW,
// standardised features, early stopping on problems that were held out.
//
// The invariant that matters: the same rows, options and level of kernels give the
// same weights, bit for bit. Everything runs on one goroutine and every draw is
// keyed by the seed.
//
// Read train.go for the loop, net.go for how the networks of package head are built
// of layers, layers.go for their gradients, standard.go for what becomes of the
// scale of features.
package train
