package model

import (
	"fmt"

	"tokenrouter/kernels/mem"
	"tokenrouter/runtime/model/checkpoint"
)

// available is the memory that may still be taken; tests lower it.
var available = mem.Available

// fits refuses a model whose weights the machine has no memory for. Where it
// does not tell what it has, there is nothing to refuse.
func fits(p *checkpoint.Plan) error {
	have, err := available()
	if err != nil || p.Bytes <= have {
		return nil
	}
	return fmt.Errorf("the weights need %s of memory, only %s are available: close other programs, or choose a smaller model or a narrower format (q8, q4)", mebi(p.Bytes), mebi(have))
}

// mebi is a number of bytes for people.
func mebi(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
