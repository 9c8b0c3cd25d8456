//go:build !soak

package tiny_test

// greedyCounts says how many of the 60 stored answers each model writes again.
var greedyCounts = map[string]int{"tiny-37k": 60, "tiny-114k": 60, "tiny-842k": 12, "tiny-3.7m": 4}

// accuracyModels answer all 300 problems.
var accuracyModels = []string{"tiny-37k"}

// mixProblems is how many problems of each family the mix models answer.
var mixProblems = map[string]int{"mix-114k": 20}
