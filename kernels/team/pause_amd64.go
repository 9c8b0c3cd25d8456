//go:build !purego

package team

// pauses is the length of a turn, some 50 ns.
const pauses = 2

// pause executes the PAUSE instruction n times: the core rests, and the memory
// that is waited for is not asked for without end.
//
//go:noescape
func pause(n int)
