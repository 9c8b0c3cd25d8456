// Package cpu says which level of kernels the machine can run and which is in
// use.
//
// The invariant that matters: the level in use is one that the machine has, for
// every package of kernels alike; the environment can only lower it.
//
// Read next: level.go.
package cpu
