package cpu

import (
	"fmt"
	"os"
	"sync/atomic"
)

// Level is a set of instructions that kernels are written for. A higher one
// contains the lower.
type Level int

const (
	Go     Level = iota // plain Go, everywhere
	AVX2                // amd64: AVX2, FMA and F16C
	AVX512              // amd64: AVX-512 F, BW, DQ and VL with VNNI
)

var names = [...]string{Go: "go", AVX2: "avx2", AVX512: "avx512"}

func (l Level) String() string {
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return names[l]
}

// Variable is the name of the environment variable that lowers the level.
const Variable = "TOKENROUTER_KERNELS"

var (
	best           = detect()
	current        atomic.Int64
	refused        error
	wanted, chosen = os.LookupEnv(Variable)
)

func init() {
	var l Level
	l, refused = choose(best, wanted, chosen)
	current.Store(int64(l))
}

// choose is the level to use where the machine can do up to best.
func choose(best Level, wanted string, chosen bool) (Level, error) {
	if !chosen || wanted == "" {
		return best, nil
	}
	for l, name := range names {
		switch {
		case name != wanted:
		case Level(l) > best:
			return best, fmt.Errorf("%s=%s: this machine and build run kernels up to %s", Variable, wanted, best)
		default:
			return Level(l), nil
		}
	}
	return best, fmt.Errorf("%s=%q is no level of kernels; it may be go, avx2 or avx512", Variable, wanted)
}

// Best is the highest level that the machine and this build can run.
func Best() Level { return best }

// Current is the level in use: Best, unless the environment variable Variable
// names a lower one.
func Current() Level { return Level(current.Load()) }

// Err says that Variable names no level or one that the machine does not have;
// Current is Best then. A program asks at its start.
func Err() error { return refused }

// Force puts another level in use and gives back what undoes it: for tests. It
// panics above Best.
func Force(l Level) (restore func()) {
	if l < 0 || l > best {
		panic(fmt.Sprintf("cpu: level %v is not between go and %v", l, best))
	}
	old := current.Swap(int64(l))
	return func() { current.Store(old) }
}
