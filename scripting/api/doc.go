// Package api is the catalogue of what a router sees and may do: every global
// beside Lua's own, and every field of the values that route, send and receive
// are given, each with its type and a sentence.
//
// The invariant that matters: it is the only list. Package scripting takes its
// names from here, so do the checks and their suggestions, the tables of
// docs/lua.md and the annotations for editors in docs/tokenrouter.lua; a test
// fails where a file was not generated anew.
//
// Read catalogue.go for the entries, annotations.go and tables.go for what is
// made of them. To add a field: an entry here, its case in scripting/row.go, then
// go generate ./scripting/api.
package api

//go:generate go run ./annotate ../../docs
