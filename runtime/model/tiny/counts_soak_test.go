//go:build soak

package tiny_test

// greedyCounts says how many of the 60 stored answers each model writes again.
var greedyCounts = map[string]int{"tiny-37k": 60, "tiny-114k": 60, "tiny-842k": 60, "tiny-3.7m": 60}

// accuracyModels answer all 300 problems.
var accuracyModels = []string{"tiny-37k", "tiny-114k", "tiny-842k", "tiny-3.7m"}

// mixProblems is how many problems of each family the mix models answer.
var mixProblems = map[string]int{"mix-114k": 300, "mix-842k": 300}
