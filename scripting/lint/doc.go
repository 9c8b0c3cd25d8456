// Package lint reads a router as a careful colleague would: it tells what is
// wrong or likely to be meant otherwise, tries the router on sample rows, and
// measures what a call costs, all without a session.
//
// The invariant that matters: a finding is worth reading. Every shipped router
// and every example of docs/lua.md is without one (a test), and each rule has a
// router that breaks it, with the line, under testdata. The same text gives the
// same findings; only [Measure] looks at a clock.
//
// Read lint.go for what is reported; read.go, functions.go and exprs.go for how the
// text is read (names, and which table, knob or field an expression means); then
// the rules: names.go, values.go, shared.go, flow.go, returns.go; trial.go for the
// dry run and cost.go for the figures.
package lint
