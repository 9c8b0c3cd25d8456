// Package algos carries the routers that ship with tokenrouter. Each algorithm
// has a folder: router.lua is what users copy, reference.go the same algorithm
// as a plain Go loop, and the tests hold one against the other.
//
// The invariant that matters: a shipped router decides exactly as its reference,
// ties included.
//
// Read r2r, citer, collm, rstitch and me for the algorithms of papers, controls for
// what they are measured against, query for the choice of one model per request,
// reference for what the loops share, head for trained heads.
package algos
