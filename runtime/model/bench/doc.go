// Package bench measures the engine on the machine it runs on: how fast a model
// reads a prompt and decodes at some batch sizes and numbers of cores, as a
// fraction of what the machine could do at best; two models that hand a request
// over after every token; two that share the cores; and how long the garbage
// collector stops the world meanwhile.
//
// The invariant that matters: what is divided by each other is measured in one
// run and in one way (kernels/limits, Time and Clock). A fraction is a lower
// bound of the time of a step over the time it took: the larger of the bytes it
// has to read over the read bandwidth, and its multiply-adds over the peak of
// their kind. Both are measured in turn, lap by lap. A step that reads faster than
// the loops counts as 1: memory can give what it read. So a fraction says how much
// is left to be had, whatever the machine.
//
// Read next: work.go for what a step has to do, steps.go for the table of steps,
// share.go and handoff.go for two models.
package bench
