// Package store keeps sessions in folders: a manifest that says what ran, the
// tape, the vocabulary that turns its token ids into text, and the routers that
// decided.
//
// The invariant that matters: recording never makes the run wait and never ends
// it. Whatever is on disk stays readable: a killed process loses at most the
// last quarter of a second, a full disk or a reached size cap ends the
// recording with one message on the tape while the run goes on.
//
// Read session.go for how a folder is made, recorder.go for how it fills,
// open.go for how it is read again, find.go for how it is found by name, and
// docs/format/README.md for what is on disk.
package store
