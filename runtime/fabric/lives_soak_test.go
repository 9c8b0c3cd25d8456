//go:build soak

package fabric_test

// lives is how many long lives TestLongLives and TestDeaths run.
const lives = 400
