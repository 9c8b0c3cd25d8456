// Command vec writes the assembly of kernels/vec: one function for each loop of
// its Go twins, with the same operations in the same order.
//
// Read next: exp.go for the exponential that half of them share, attend.go for
// the tiles of attention.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	ConstraintExpr("!purego")
	elementwise()
	page()
	attend()
	signals()
	Generate()
}
