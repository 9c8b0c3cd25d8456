//go:build race && !soak

package live_test

const algoProblems = 1
