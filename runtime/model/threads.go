package model

import (
	"fmt"
	"runtime/debug"
	"sync"

	"tokenrouter/kernels"
)

// splitFrom is the number of multiply-adds from which a product is worth a
// goroutine: about half a millisecond of work against some 20 microseconds to
// start and join. Single tokens of the tiny family stay below it.
const splitFrom = 2 << 20

// mul is kernels.MatMul, its rows split over the threads where it is large.
func (ws *Workspace) mul(y []float32, m *kernels.Matrix, x []float32, n int) {
	tiles := (m.Rows + kernels.Lanes - 1) / kernels.Lanes
	parts := min(ws.Threads, tiles, n*m.Rows*m.Cols/splitFrom)
	if parts < 2 {
		kernels.MatMul(y, m, x, n)
		return
	}
	edge := func(i int) int { return min(tiles*i/parts*kernels.Lanes, m.Rows) }
	var wg sync.WaitGroup
	crash := make([]any, parts)
	for i := 1; i < parts; i++ {
		wg.Go(func() {
			// A panic belongs to whoever asked for the step.
			defer func() {
				if v := recover(); v != nil {
					crash[i] = fmt.Sprintf("%v, in a part of a product:\n%s", v, debug.Stack())
				}
			}()
			kernels.MatMulRows(y, m, x, n, edge(i), edge(i+1))
		})
	}
	kernels.MatMulRows(y, m, x, n, 0, edge(1))
	wg.Wait()
	for _, c := range crash {
		if c != nil {
			panic(c)
		}
	}
}
