// Package board is the screen that shows a running cluster: a card per
// subserver, the figures and their course, the requests with every token marked
// by its writer, knobs and events, and the closer look at one request.
//
// The invariant that matters: a Model is a fold over the tape. It learns of
// requests, tokens and changes from records alone, so a live run, a recording
// and a simulation look the same, and its memory is bounded whatever the tape
// brings. Drawing changes nothing that is seen.
//
// Read model.go for what is kept, fold.go for how records change it, draw.go for
// how the parts share a window, plan.go for what is predicted beside what is
// measured and who waits for whom, and inspect.go for the closer look.
package board
