// Package pair writes texts with a small and a large model directly on the
// engine: many texts at a time, without scheduler, messages and Lua. It is what
// labels are collected with and thresholds are chosen by.
//
// The invariant that matters: what a model says of a text depends on the text
// alone, bit for bit, as in the runtime: not on the other texts of a step, not on
// where the text was forked. So a router that decides by the same signals writes
// here what it writes there.
//
// Read pair.go for a step, text.go for a text and its KV, route.go for a pair
// under a rule.
package pair
