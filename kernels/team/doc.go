// Package team shares the cores of the machine between models that step at the
// same time. Each model has a seat; the goroutine that steps it is worker 0, and
// helpers come to it from cores that no other stepping model needs. When another
// seat begins a step they leave after the item they are at; when it ends they
// come back.
//
// The invariant that matters: whoever helps and whenever they come or go, Do
// calls its function once for every item and returns when all are done. Who
// ran an item is never visible in the result, as long as items write to
// different places.
//
// A step is some hundred calls of Do, each of tens of microseconds, so nothing
// inside a step waits for a channel or the scheduler: items are claimed by
// compare-and-swap on one word, helpers spin between calls and park when a
// pause lasts. Owners and helpers yield every hundred microseconds or so, as the
// scheduler has one processor for each core and no more. Items should take 5 to 15 microseconds: a helper that loses its
// core in the middle of one costs that one, and a longer stretch of assembly
// would hold up the garbage collector.
//
// Read next: seat.go for the word and how items are claimed, cores.go for who
// helps whom, helper.go for spinning and parking.
package team
