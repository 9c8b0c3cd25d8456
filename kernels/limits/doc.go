// Package limits measures what the machine could do at best: how fast memory can
// be read and how many multiply-adds of each kind fit into a second, on one core
// and on several. A kernel is judged against the stricter of the two.
//
// The invariant that matters: a limit and what is held against it are measured
// the same way (Time), as the work of a seat's workers in the same run of the
// program, at the level of kernels in use (kernels/cpu).
//
// Read next: limits.go for what is measured, timing.go for how time is taken on
// a machine that others use too.
package limits

//go:generate go -C ../gen run ./limits -out ../limits/loops_amd64.s -stubs ../limits/loops_amd64.go -pkg limits
