package plan

// Feasible says whether n requests can never all wait for ever under thresholds
// b: they can only if each queue may hold b-1 of them, so progress is sure iff
// the sum of b-1 is below n (§3). n counts the active requests of the
// moment, so a vector that is feasible for many may not be for fewer.
func Feasible(b []int, n int) bool {
	spare := n - 1
	for _, t := range b {
		stuck := max(1, t) - 1
		if stuck > spare { // also where their sum is beyond an int
			return false
		}
		spare -= stuck
	}
	return spare >= 0
}
