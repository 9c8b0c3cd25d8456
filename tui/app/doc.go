// Package app is the program around the screens: it folds the tape, turns keys
// into calls of a Runtime and shows frames.
//
// The invariant that matters: the terminal never makes the runtime wait and
// never loses a record. One goroutine folds the tape into the board, however
// slow the screen; another asks for at most 30 frames a second and may wait for
// the terminal as long as it likes. Update does no I/O: files, editors and
// clipboards are reached by commands.
//
// Read runtime.go for what the screens need, feed.go for how records arrive,
// update.go for keys and messages, actions.go for what the keys do, dialog.go and
// help.go for what is laid over the screen.
package app
