// Package replay feeds what a session recorded to fresh cores and tells where
// they order something else: the proof that a core is a function of its events,
// that the tape holds all of them, and that this program decides as the one that
// recorded.
//
// The invariant that matters: a session replays equal if every core, given its
// recorded events in order, orders byte for byte the commands that stand behind
// them, and if all that came to a core from another is the next thing sent on
// that link. Memory holds the cores and what is in flight, not the session.
//
// Read replay.go for the loop, report.go for what it says.
package replay
