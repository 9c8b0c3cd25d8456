// Package scripting runs routers: Lua files whose function route decides after
// every decode step where a request goes on and whether its candidate is kept.
//
// A router's text becomes a [Program] once ([Compile] parses, checks and tries
// it); every subserver loads it into a [VM] of its own and calls Route, Send
// and Receive on one goroutine. Values behind param() live in [Knobs], which
// all VMs share.
//
// The invariant that matters: a router can only decide. Whatever text it is
// made of, a call ends after a bounded number of counted instructions and
// bytes, reaches nothing outside the VM, and depends on nothing but the row,
// the request's state, the knobs and the loads. Everything else is a fault
// with file and line, and a fault has a documented default, so a request never
// stops because of its router.
//
// Read vm.go for the three calls, row.go for what a router sees, meter.go and
// rewrite.go for how a call is bounded and where gopher-lua is kept clear of,
// protect.go for pcall, audit.go for what a router may keep, data.go for how
// r.state travels, trace.go and calls.go for dry runs. The names that a router sees
// come from package api; package lint reads routers without running a session.
// checkvm.go lends the sandbox to files that judge answers
// (package checker). docs/lua.md is the reference for authors of routers.
package scripting
