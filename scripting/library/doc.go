// Package library finds routers by name: those in a directory of the user, and
// those that are embedded in the program.
//
// The invariant that matters: an embedded router is never changed. The first
// edit copies it into the directory, where the copy shadows it from then on.
//
// Read library.go. What the embedded routers are is up to the caller.
package library
