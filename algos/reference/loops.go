package reference

import "tokenrouter/runtime/event"

// Small and Large are the models of a pair.
const (
	Small event.Peer = 0
	Large event.Peer = 1
)

// Rewrite is the loop that R2R, CITER and Co-LLM share: the small model makes a
// candidate for every position, and where routed says so the large one writes
// that position instead; control returns after that one token.
func Rewrite(run Run, routed func(o event.Output) bool) Result {
	w := run.Begin()
	for {
		writer, o := Small, w.Next(Small)
		if routed(o) {
			w.Drop(Small, o)
			writer, o = Large, w.Next(Large)
		}
		if !w.Commit(writer, o) {
			return w.Result
		}
	}
}

// Spans is the loop in which the large model, once asked, writes on: routed says
// at the small model's candidate that it is dropped and the large one begins,
// back at one of the large model's, the n-th of its span from 1, that control
// returns behind it.
func Spans(run Run, routed func(o event.Output) bool, back func(o event.Output, n int) bool) Result {
	w := run.Begin()
	active, n := Small, 0
	for {
		o := w.Next(active)
		if active == Small && routed(o) {
			w.Drop(Small, o)
			active, n = Large, 0
			continue
		}
		writer := active
		if active == Large {
			if n++; back(o, n) {
				active = Small
			}
		}
		if !w.Commit(writer, o) {
			return w.Result
		}
	}
}
