package plan

// Feasible says whether n requests can never all wait for ever under thresholds
// b: they can only if each queue may hold b-1 of them, so progress is sure iff
// the sum of b-1 is below n (spec 1.4). n counts the active requests of the
// moment, so a vector that is feasible for many may not be for fewer.
func Feasible(b []int, n int) bool {
	idle := 0
	for _, t := range b {
		idle += max(0, t-1)
	}
	return idle < n
}
