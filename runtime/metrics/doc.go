// Package metrics folds the tape into figures: the board's rates and shares of
// the last seconds, the series behind its chart, the comparison of before and
// after a change, the summary of a whole run, and the estimates that the
// throughput model plans with.
//
// The invariant that matters: a fold sees nothing but records and the time it is
// asked for. It has no clock, so a live run, a replayed session and a simulation
// give the same figures, and asking changes nothing. Emitted tokens are counted
// once each, under the subserver that wrote them, so the counts by role add
// up to the total.
//
// Time inside a fold is running time: session time (ns since the session began)
// with the pauses cut out.
//
// Definitions, the same on every screen and in every file:
//   - tokens: Emit commands, less what Finish cut; EOS counts, the prompt does not.
//     They belong to who wrote them, also where another subserver emitted them, and
//     to the moment at which they were emitted, also where a router held them back:
//     TTFT and ITL are those of the client.
//   - large share: tokens of the last subserver / tokens. Alone, a model is small.
//   - switches per token: changes of writer along a request's positions / tokens.
//   - TTFT: from the arrival at the front to the first Emit.
//   - ITL: from one Emit of a request to its next, per token; the first token has
//     none, a hand-off between two tokens is inside.
//   - peak: the most tokens/s in any of the equal parts of 1 to 2 s of a window.
//   - queue wait: from the arrival to the admission. Latency (E2E): from the arrival
//     to the last token.
//   - speed of a user: tokens/s of one request from its first token to its last.
//   - rows/s: candidates drawn; each was committed, dropped, or came too late for
//     a request that had ended. Dropped are also those that were committed and taken
//     back before they were emitted (truncated), at the subserver that drew them.
//   - busy: a batch is running; waits for B: idle with 0 < ready < B; idle: the rest.
//   - prefix hits: prompt positions that a prefill found in the prefix cache / prompt
//     positions of prefills. Recomputed: positions fed again after their KV was taken.
//   - extended: tokens fed beyond one by rows of a request that is back where it was,
//     recomputed ones not included: what others wrote meanwhile.
//   - a wait: idle for longer than the guard W although a request is ready.
//
// Read board.go for what is kept, snapshot.go for what is shown, compare.go for
// before and after, run.go for a whole run, span.go for the part of it that is
// measured, and stats.go for the intervals.
// waits.go says who waits for whom; estimator.go what a plan is made of;
// routing.go and interval.go how that is estimated.
package metrics
