// Package emulated answers for models that are not here: at once, with tokens
// and routing signals that are drawn from a law or repeated from a recording. The
// emulated clock paces it by a cost profile, virtual time asks it as it is.
//
// The invariant that matters: what a row yields depends on the seed, the request,
// the position and the model, never on what else is in the batch, on the text
// before, or on how often it is asked; and an end of text never comes by chance.
//
// Read runner.go, then law.go (signals as the embedded family gives them; the
// measurement is law.csv and table.go), recording.go (a session's own), scores.go
// (what heads said of them) and order.go (its requests without end).
package emulated
