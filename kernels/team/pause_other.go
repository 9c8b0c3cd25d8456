//go:build !amd64 || purego

package team

// pauses is the length of a turn, some 50 ns.
const pauses = 100

// pause lets n steps of an empty loop pass.
//
//go:noinline
func pause(n int) {
	for range n {
	}
}
