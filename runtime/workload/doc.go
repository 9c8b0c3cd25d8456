// Package workload gives the requests of a run and says when they come: endless
// problems of several families with verifiable answers from a seed, conversations
// whose turns add facts to a story, requests of drawn tokens with lengths like
// those of published workloads, or tasks from a JSONL file; and for the open loop
// arrivals by a law or by a trace. It also judges what was answered.
//
// The invariant that matters: all of it is a function of the seed. A seed and a
// [Size] fix the whole stream of problems, byte for byte and for ever: the
// embedded models were trained on this distribution and the reference results
// were computed on it (seed [EvaluationSeed], the first 300 problems), so the
// order of random choices in problem.go and in the families is data, not style
// (testdata/families.txt holds it). What is drawn elsewhere is keyed by
// conversation, turn or arrival, so that none of it depends on what else was drawn
// before.
//
// How many tasks are outstanding at a time (closed loop), and what time it is
// (open loop), is the business of the client that draws from a [Source] and
// [Arrivals].
//
// Read source.go first, then preset.go for the workloads by name: problem.go and
// conversation.go for the stories, family.go for the other families (ledger.go,
// units.go, calendar.go, lists.go), drawn.go for drawn tokens. arrivals.go has the
// laws, parse.go their forms, trace.go the files; tasks.go reads tasks, answer.go
// and check.go judge answers.
package workload
