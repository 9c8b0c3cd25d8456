// Package workload gives the requests of a run: endless word problems with
// verifiable answers from a seed, or tasks from a JSONL file.
//
// The invariant that matters: a seed and a [Size] fix the whole stream of
// problems, byte for byte and for ever. The embedded models were trained on
// this distribution and the reference results were computed on it (seed
// [EvaluationSeed], the first 300 problems), so the order of random choices
// in problem.go is data, not style.
//
// How many tasks are outstanding at a time (closed loop) is the business of
// the client that draws from a [Source].
//
// Read problem.go for the problems, tasks.go for files, answer.go for how an
// answer is judged.
package workload
