// Package near finds the word that a misspelt one was meant to be.
//
// The invariant that matters: a suggestion is always one of the candidates, and
// equal distances resolve to the earlier candidate, so messages do not depend
// on map order.
package near

import "strings"

// maxWord is the length of the longest word that is compared, in bytes: nobody
// slips in a longer one, and comparing takes time in proportion to its square.
const maxWord = 64

// Best returns the candidate closest to word, or "" when none is close enough
// to be a likely slip: at most two edits, and at most one for three letters.
// A swap of neighbours counts as one edit; case does not count.
func Best(word string, candidates []string) string {
	if len(word) > maxWord {
		return ""
	}
	w := strings.ToLower(word)
	best, limit := "", min(2, len(w)/3)
	for _, c := range candidates {
		if c == word || len(c) > len(w)+limit || len(c) < len(w)-limit {
			continue // more edits than the limit for the length alone
		}
		if d := distance(w, strings.ToLower(c)); d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// Hint is Best as the tail of a sentence: "; did you mean X?" or nothing.
func Hint(word string, candidates []string) string {
	if b := Best(word, candidates); b != "" {
		return `; did you mean "` + b + `"?`
	}
	return ""
}

// List is Hint followed by everything there is:
// "; did you mean "large"? roles: small, large".
func List(word, noun string, candidates []string) string {
	hint := Hint(word, candidates)
	if hint == "" {
		hint = ";"
	}
	return hint + " " + noun + ": " + strings.Join(candidates, ", ")
}

// distance is the optimal string alignment distance over bytes.
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
