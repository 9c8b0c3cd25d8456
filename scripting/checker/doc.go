// Package checker judges the answers of a user's own tasks by a Lua file, whose
// function check(task, text, answer) returns true or false.
//
// The invariant that matters: a checker can only judge. It runs in the sandbox of
// routers, under counted limits, and a fault of it counts as a wrong answer and
// says file and line, so a run never stops because of its checker.
//
// Read checker.go; [tokenrouter/scripting.CheckVM] has the sandbox, docs/cli.md
// says what a file may do.
package checker
